"""The answers of module 12. The tests derive each answer in a second way.

The learner's functions read compiled texts. The tests compare them with counts in jaxprs, before any compiler, and
with the grader's reader of compiled programs. Bytes come from messages moved over wires (``network.py``).
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from grader.course.exercises import load_exercise
from grader.exercise import Exercise
from grader.runner import hlo, hlo_text
from grader.runner.groups import axis_groups, crossed_axes
from tests import network
from tests.meshes import abstract_mesh

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "solutions/12_predict_profile"


def made_by_docs() -> Any:
    """Return the module docs/make_hlo.py, which compiled the texts."""
    spec = importlib.util.spec_from_file_location("make_hlo", ROOT / "docs/make_hlo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__name__"] = "make_hlo"
    import sys

    sys.modules["make_hlo"] = module  # dataclasses look up their module in sys.modules
    spec.loader.exec_module(module)
    return module


MAKE = made_by_docs()
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(MODULE / f"{name}.py", f"keys_of_{name}", "12_predict_profile", 0.02)
    for name in ("l1_collectives", "l3_global_shapes")
}
TASKS = {task.name: task.fn for exercise in EXERCISES.values() for task in exercise.tasks.values()}
TEXTS = {path.stem: path.read_text() for path in sorted((MODULE / "grading/hlo").glob("*.txt"))}
SENT = {"psum": "all-reduce", "psum_invariant": "all-reduce", "all_gather": "all-gather", "ppermute": "collective-permute",
        "reduce_scatter": "reduce-scatter", "all_to_all": "all-to-all"}  # fmt: skip
Key = tuple[str, str, int]


def written(jaxpr: Any, mesh: dict[str, int], trips: int = 1) -> Iterator[tuple[Key, int, int]]:
    """Yield for each collective of a jaxpr (kind, groups, executions), and elements and bytes of its input."""
    for equation in jaxpr.eqns:
        named = equation.primitive.name
        if named in SENT:
            axes = equation.params.get("axes", equation.params.get("axis_name"))
            axes = axes if isinstance(axes, tuple) else (axes,)
            among = axis_groups(mesh, list(range(8)), [(axis, 1, None) for axis in axes])
            if named == "ppermute":
                among = [[group[a], group[b]] for group in among for a, b in equation.params["perm"]]
            arrays = [v.aval for v in equation.invars]
            key = (SENT[named], str(sorted(among)), trips)
            yield key, sum(a.size for a in arrays), sum(a.size * a.dtype.itemsize for a in arrays)
        rounds = trips * equation.params["length"] if named == "scan" else trips
        for inner in (p for p in equation.params.values() if hasattr(p, "eqns") or hasattr(p, "jaxpr")):
            yield from written(getattr(inner, "jaxpr", inner), mesh, rounds)


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_has_its_program_here(name: str):
    program = MAKE.PROGRAMS[name]
    axes = " ".join(f"{axis}={size}" for axis, size in program.mesh.items())
    platform, release = program.by.split()
    assert TEXTS[name].startswith(f"// {name}: jax {release}.") and platform.upper() in TEXTS[name].split("\n")[0]
    assert TEXTS[name].split("\n")[0].endswith(f"mesh {axes}")
    assert set(TEXTS) == set(MAKE.PROGRAMS)


@pytest.mark.parametrize("name", [n for n in TEXTS if not n.startswith(("step", "layouts")) and n != "exchange-tpu"])
def test_collectives_are_those_of_the_source(name: str):
    program = MAKE.PROGRAMS[name]
    mesh = abstract_mesh(program.mesh)
    function, arguments = program.make(mesh, *program.sizes)
    sent: Counter[Key] = Counter()
    wide = name.split("-")[1] == "cpu"  # on the CPU, bfloat16 is sent as float32
    for key, elements, size in written(jax.make_jaxpr(function)(*arguments).jaxpr, program.mesh):
        sent[key] += 4 * elements if wide else size
    read: Counter[Key] = Counter()
    for kind, size, among, trips in TASKS["collectives"](TEXTS[name]):
        read[kind, str(sorted(among)), trips] += size
    assert read == sent


def test_a_tpu_reduce_scatter_is_an_all_reduce_of_padded_rows():
    """The TPU program pads 1024 rows to 1056, sums them with an all-reduce and keeps 264 rows per device.

    The device needs 256 rows. The bounds of the parts differ by up to 24 rows, which a permute moves.
    """
    found = {kind: size for kind, size, _, _ in TASKS["collectives"](TEXTS["exchange-tpu"])}
    assert found == {
        "all-reduce": 4 * 264 * 4096 * 2,
        "all-to-all": 1024 * 4096 * 2,
        "collective-permute": 24 * 4096 * 2,
    }


@pytest.mark.parametrize("name", TEXTS)
def test_collectives_are_those_that_the_grader_reads(name: str):
    mesh = MAKE.PROGRAMS[name].mesh
    theirs: Counter[tuple[str, int, str]] = Counter()
    known = {}
    for visit in hlo.walk(TEXTS[name]):
        one = hlo.collective(visit, mesh)
        if one is not None:
            key = (one.kind, one.bytes, str([list(group) for group in one.groups]))
            theirs[key] = 1 if name.startswith("prefetch") else theirs[key] + 1  # its all-gather is sent in pieces
            known[key] = visit.times
    ours: Counter[tuple[str, int, str]] = Counter()
    for kind, size, among, trips in TASKS["collectives"](TEXTS[name]):
        key = (hlo.KINDS[kind], size, str(among))
        ours[key] += 1
        assert not known[key].known or known[key].most == trips
    assert ours == theirs


@pytest.mark.parametrize("name", [n for n in TEXTS if n.startswith("layers-cpu") or n == "ring-cpu"])
def test_trip_counts_from_conditions_equal_those_that_cpu_prints(name: str):
    parts, _ = hlo_text.parse(TEXTS[name])
    loops = [one for lines in parts.values() for one in lines if one.opcode == "while"]
    for loop in loops:
        constants = [one.text for one in parts[loop.called("condition")[0]] if one.opcode == "constant"]
        assert [hlo_text.trip_count(loop).most] == [int(n) for n in constants]
    assert len(loops) == (2 if name.startswith("layers") else 1)


@pytest.mark.parametrize(
    "shape, dims, order", [((4, 2), (2, 4), (1, 0)), ((4, 3), (2, 3, 2), (0, 2, 1)), ((4, 4), (2, 4, 2), (1, 2, 0))]
)
def test_groups_of_grids_by_coordinates(shape: tuple[int, ...], dims: tuple[int, ...], order: tuple[int, ...]):
    """The test computes each device's place in the transposed grid from the device's coordinates."""
    spelled = f"[{','.join(map(str, shape))}]<=[{','.join(map(str, dims))}]T({','.join(map(str, order))})"
    due: list[list[int]] = [[-1] * shape[1] for _ in range(shape[0])]
    for device in range(math.prod(dims)):
        at = [int(i) for i in np.unravel_index(device, dims)]
        place = 0
        for dimension in order:
            place = place * dims[dimension] + at[dimension]
        due[place // shape[1]][place % shape[1]] = device
    assert TASKS["device_groups"](spelled) == due


def sent_by_loops(M: int, L: int, A: int, B: int, G: int, N: int) -> float:
    total = 0.0
    among = TASKS["device_groups"](f"[{G},{N}]<=[{N},{G}]T(1,0)")
    for _ in range(M):
        for _ in range(L):
            net = network.Network(1.0)
            network.all_gather(net, "one_way_ring", len(among[0]), len(among[0]) * A * B * 2)
            total += net.sent["+", 0]
    return total


def whole_matmul(B: int, K: int, F: int, X: int, Y: int, Z: int) -> float:
    """Return the FLOPs of a whole matmul. Devices along z hold copies, so the sum is over devices with z = 0."""
    devices = np.arange(X * Y * Z).reshape(X, Y, Z)
    return sum(2 * B * K * F for device in devices.flat if device % Z == 0)


KEYS = {"sent_by_loops": sent_by_loops, "whole_matmul": whole_matmul}
QUESTIONS = [q for exercise in EXERCISES.values() for q in exercise.questions.values()]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Any):
    for params in list(question.variants())[::7]:
        assert question(**params) == pytest.approx(KEYS[question.name](**params)), params


@pytest.mark.parametrize("name", [n for n in TEXTS if not n.startswith("step")])
def test_whole_shapes_are_those_of_the_arguments(name: str):
    program = MAKE.PROGRAMS[name]
    mesh = abstract_mesh(program.mesh)
    _, arguments = program.make(mesh, *program.sizes)
    due = []
    for one in arguments:
        spec = [*one.sharding.spec, *[None] * (len(one.shape) - len(one.sharding.spec))]
        due.append((list(one.shape), [list(cut) if isinstance(cut, tuple) else [cut] if cut else [] for cut in spec]))
    assert TASKS["global_shapes"](TEXTS[name], program.mesh) == due


@pytest.mark.parametrize("name", [n for n in TEXTS if not n.startswith("ring")])
def test_axes_are_those_that_the_grader_names(name: str):
    mesh = MAKE.PROGRAMS[name].mesh
    for kind, _, among, _ in TASKS["collectives"](TEXTS[name]):
        if kind != "collective-permute":
            assert tuple(TASKS["axes"](among, mesh)) == crossed_axes(among, mesh)


def test_texts_are_short_and_hold_no_paths():
    for text in TEXTS.values():
        assert len(text) < 12_000 and not re.search(r"/tmp|/home|/work|metadata=", text)
