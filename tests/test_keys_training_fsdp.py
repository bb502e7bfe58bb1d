"""The answers of H4, H7 and H9. The tests derive each answer in a second way.

The tests count bytes in traced programs, or move them over wires (``network.py``). Times come from a simulation of
jobs that wait for other jobs. The tests read in the references' programs which collectives can overlap which matmuls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from grader.course.exercises import load_exercise
from grader.exercise import Exercise, Question
from grader.hardware import CHIPS
from tests import network

SOLUTIONS = Path(__file__).parents[1] / "solutions" / "08_training"
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(SOLUTIONS / f"{name}.py", f"keys_of_{name}", "08_training", 0.02)
    for name in ["h4_fsdp", "h7_fsdp_tp", "h9_seven_layouts"]
}
QUESTIONS = {question.name: question for exercise in EXERCISES.values() for question in exercise.questions.values()}
TASKS = {task.name: task for exercise in EXERCISES.values() for task in exercise.tasks.values()}
SCHEMES: dict[int, tuple[P, P]] = TASKS["stack"].fn.__globals__["SCHEMES"]


# -- what is sent ------------------------------------------------------------------------------


def seconds(collective: str, n: int, size: float, chip: str) -> float:
    return network.moved(collective, "ring whole", n, size, CHIPS[chip].ici).clock


def from_one(collective: str, n: int, size: float) -> float:
    """Return the bytes that a device sends in a collective on a one-way ring."""
    sent = set(network.moved(collective, "one_way_ring", n, size).sent.values())
    assert len(sent) == 1, "every device sends the same"
    return sent.pop()


def inner(eqn: Any) -> Iterator[Any]:
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            found = getattr(part, "jaxpr", part)
            if hasattr(found, "eqns"):
                yield found


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yield all equations, and the equations of inner jaxprs in their places. The programs have no loops."""
    for eqn in jaxpr.eqns:
        within = list(inner(eqn))
        yield from (e for j in within for e in equations(j)) if within else [eqn]


def traced(
    fn: Callable, sizes: Mapping[str, int], *shapes: tuple[int, ...], dtype: Any = jnp.float32, **static: Any
) -> Any:
    """Return the jaxpr of a task on an abstract mesh of these sizes. An abstract mesh needs no devices."""
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    arrays = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return jax.make_jaxpr(lambda *a: fn(*a, mesh=mesh, **static))(*arrays).jaxpr


def axes_of(eqn: Any) -> tuple[str, ...]:
    name = eqn.params.get("axis_name", eqn.params.get("axes"))
    return name if isinstance(name, tuple) else (name,)


def sent_bytes(jaxpr: Any, sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the bytes that a device sends over each axis: all parts of gathered or scattered arrays except one."""
    total = dict.fromkeys(sizes, 0.0)
    for eqn in equations(jaxpr):
        if eqn.primitive.name in ("all_gather", "reduce_scatter"):
            (axis,) = axes_of(eqn)
            whole = (eqn.outvars if eqn.primitive.name == "all_gather" else eqn.invars)[0].aval
            total[axis] += math.prod(whole.shape) * whole.dtype.itemsize * (1 - 1 / sizes[axis])
    return total


def mlp_shapes(B: int, D: int, F: int) -> list[tuple[int, int]]:
    return [(B, D), (D, F), (F, D)]


# -- times -------------------------------------------------------------------------------------


def simulated(jobs: Sequence[tuple[str, str, float, Sequence[str]]]) -> dict[str, float]:
    """Return the time at which each job ends, by name.

    A job is (name, resource, seconds, names of the jobs that it waits for). A resource runs one job at a time, in the
    order of the list.
    """
    ends: dict[str, float] = {}
    free: dict[str, float] = {}
    for name, on, takes, needs in jobs:
        ends[name] = max([free.get(on, 0.0), *(ends[n] for n in needs)]) + takes
        free[on] = ends[name]
    return ends


def forward_pass(L: int, gather: float, matmul: float, *, waits: bool, held: int) -> float:
    """Return the time of a stack of layers with at most ``held`` gathered layers at a time."""
    jobs = []
    for i in range(L):
        behind = i - 1 if waits else i - held
        jobs.append((f"gather {i}", "link", gather, [f"matmul {behind}"] if behind >= 0 else []))
        jobs.append((f"matmul {i}", "core", matmul, [f"gather {i}", *([f"matmul {i - 1}"] if i else [])]))
    return simulated(jobs)[f"matmul {L - 1}"]


def forward_times(chip: str, L: int, D: int, X: int, small: int, large: int) -> dict[str, dict[str, float]]:
    gather = seconds("all_gather", X, 2 * D * D, chip)
    matmuls = {name: 2 * (rows // X) * D * D / CHIPS[chip].bf16 for name, rows in (("small", small), ("large", large))}
    return {
        how: {name: forward_pass(L, gather, m, waits=how == "waiting", held=2) for name, m in matmuls.items()}
        for how in ("waiting", "ahead")
    }


def middle_layer(layer: Callable[[int], list[tuple[str, str, float, Sequence[str]]]], layers: int = 40) -> float:
    """Return the average seconds per layer in the second half of a stack, from one matmul's end to the next one's."""
    ends = simulated([job for i in range(layers) for job in layer(i)])
    return (ends[f"matmul {layers - 1}"] - ends[f"matmul {layers // 2 - 1}"]) / (layers - layers // 2)


def mixed_layer(chip: str, B: int, E: int, X: int, Y: int) -> float:
    rows, inner, columns = B // X, E // Y, E
    matmul = 2 * rows * inner * columns / CHIPS[chip].bf16
    gather = seconds("all_gather", X, 2 * inner * columns, chip)
    scatter = seconds("reduce_scatter", Y, 2 * rows * columns, chip)

    def layer(i: int) -> list[tuple[str, str, float, Sequence[str]]]:
        return [
            (f"gather {i}", "x", gather, []),
            (f"matmul {i}", "core", matmul, [f"gather {i}", *([f"scatter {i - 1}"] if i else [])]),
            (f"scatter {i}", "y", scatter, [f"matmul {i}"]),
        ]

    return middle_layer(layer, layers=400)


def step_bytes(L: int, D: int, X: int) -> float:
    gathers = 2 * from_one("all_gather", X, 2 * D * D)
    return L * (gathers + from_one("reduce_scatter", X, 4 * D * D))


def mlp_bytes(B: int, D: int, F: int, X: int, Y: int) -> dict[str, float]:
    sizes = {"x": X, "y": Y}
    return sent_bytes(traced(TASKS["mlp_2d"].fn, sizes, *mlp_shapes(B, D, F), dtype=jnp.bfloat16), sizes)


KEYS: dict[str, Callable[..., Any]] = {
    "fsdp_forward_times": forward_times,
    "fsdp_step_bytes": step_bytes,
    "mlp_2d_bytes": mlp_bytes,
    "mixed_layer_time": lambda chip, B, L, E, X, Y: mixed_layer(chip, L, E, X, Y) - mixed_layer(chip, B, E, X, Y),
}


def numbers(answer: Any) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield (place, number) for each number of an answer. The place is () unless the answer is a table."""
    if not isinstance(answer, Mapping):
        yield (), float(answer)
        return
    for name, part in answer.items():
        yield from (((name, *place), number) for place, number in numbers(part))


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question):
    rel = (
        1e-2 / 2 if question.name == "mixed_layer_time" else 1e-9
    )  # the simulated mean of 200 layers may differ by one layer's time
    for params in question.variants():
        due, found = dict(numbers(KEYS[question.name](**params))), dict(numbers(question(**params)))
        assert found == pytest.approx(due, rel=rel), params


def test_every_second_derivation_has_its_question():
    assert set(KEYS) == set(QUESTIONS)


@pytest.mark.parametrize(("gather", "matmul"), [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0)])
def test_two_gathered_layers_are_enough_and_one_is_not(gather: float, matmul: float):
    """H4's budget is two gathered layers. A third one saves no time, and with only one every gather waits."""
    two = forward_pass(7, gather, matmul, waits=False, held=2)
    assert two == forward_pass(7, gather, matmul, waits=False, held=7) == gather + 6 * max(gather, matmul) + matmul
    one = forward_pass(7, gather, matmul, waits=False, held=1)
    assert one == forward_pass(7, gather, matmul, waits=True, held=7) == 7 * (gather + matmul)


# -- small cases of the statements -------------------------------------------------------------


def gradient_of(fn: Callable) -> Callable:
    return lambda ws, x, mesh: jax.grad(lambda ws: fn(ws, x, mesh=mesh))(ws)


def test_the_small_case_of_h4():
    sizes = {"dp": 4}
    program = traced(gradient_of(TASKS["fsdp_loss"].fn), sizes, (6, 40, 40), (8, 40))
    assert sent_bytes(program, sizes) == {"dp": 86_400}


def test_the_small_case_of_h7():
    sizes = {"x": 4, "y": 2}
    assert sent_bytes(traced(TASKS["mlp_2d"].fn, sizes, *mlp_shapes(8, 12, 20)), sizes) == {"x": 2 * 360, "y": 2 * 48}


@pytest.mark.parametrize(
    ("scheme", "due"), [(1, (0, 0)), (2, (1728, 0)), (5, (1440, 0)), (6, (1440, 0)), (7, (864, 240))]
)
def test_the_small_case_of_h9(scheme: int, due: tuple[int, int]):
    sizes = {"x": 4, "y": 2}
    program = traced(TASKS["stack"].fn, sizes, (20, 24), (1, 24, 24), scheme=scheme)
    assert sent_bytes(program, sizes) == dict(zip("xy", due, strict=True))


# -- overlap, read from the programs -----------------------------------------------------------


def needs(jaxpr: Any) -> list[tuple[Any, set[int]]]:
    """Return for each equation in shard_map the equation and the indices of all equations on which it depends."""
    (mapped,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "shard_map"]
    made: dict[Any, set[int]] = {}
    found = []
    for i, eqn in enumerate(mapped.params["jaxpr"].eqns):
        before = set().union(*(made.get(v, set()) for v in eqn.invars if not hasattr(v, "val")))
        found.append((eqn, before))
        made.update(dict.fromkeys(eqn.outvars, before | {i}))
    return found


def beside(found: list[tuple[Any, set[int]]], i: int) -> list[int]:
    """Return the matmuls that can overlap equation i: neither depends on the other."""
    matmuls = [j for j, (eqn, _) in enumerate(found) if eqn.primitive.name == "dot_general"]
    return [j for j in matmuls if j not in found[i][1] and i not in found[j][1]]


@pytest.mark.parametrize("scheme", range(1, 8))
def test_collectives_that_can_overlap_match_the_programs_dependences(scheme: int):
    """The answer says which collectives of a layer a matmul can overlap. The test reads this from the program."""
    layers = 3
    found = needs(traced(TASKS["stack"].fn, {"x": 4, "y": 2}, (8, 24), (layers, 24, 24), scheme=scheme))
    talk = [i for i, (eqn, _) in enumerate(found) if eqn.primitive.name in ("all_gather", "reduce_scatter")]
    each = len(talk) // layers
    act, weight = SCHEMES[scheme]
    told = TASKS["overlaps_with"].fn(act=act, weight=weight, hops=False)
    assert len(told) == each and len(talk) == layers * each
    for i, (kind, array, axis, place) in zip(talk[each : 2 * each], told, strict=True):
        eqn, before = found[i]
        assert (eqn.primitive.name, axes_of(eqn)) == (kind, (axis,))
        matmuls = sum(found[j][0].primitive.name == "dot_general" for j in before)
        assert matmuls == {"W": 0, "A": 1, "C": 2}[array], (
            "W needs no matmul, A that of the layer before, C its own as well"
        )
        assert bool(beside(found, i)) == (place == "other layers")


@pytest.mark.parametrize("scheme", [5, 6])
def test_each_permute_can_overlap_with_a_part_of_its_own_matmul(scheme: int):
    other = EXERCISES["h9_seven_layouts"].alternatives["activations_in_hops"].fn
    found = needs(traced(other, {"x": 4, "y": 2}, (8, 24), (1, 24, 24), scheme=scheme))
    hops = [i for i, (eqn, _) in enumerate(found) if eqn.primitive.name == "ppermute"]
    assert len(hops) == 3
    assert all(beside(found, i) for i in hops)
    act, weight = SCHEMES[scheme]
    assert [c[3] for c in TASKS["overlaps_with"].fn(act=act, weight=weight, hops=True)] == ["own matmul"]
