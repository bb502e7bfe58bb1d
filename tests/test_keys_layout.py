"""The answers of A3 to A6 and B2 to B4. The tests derive each answer in a second way."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.common.layout import coordinates, owner_slices, spec_of
from grader.common.observation import Outcome
from grader.course.exercises import load_exercise
from grader.exercise import Cases, Exercise
from tests.seen import reason, seen

SOLUTIONS = Path(__file__).parents[1] / "solutions"
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(SOLUTIONS / module / f"{name}.py", name, module, 0.02)
    for module, names in {
        "01_layout": ["a3_owner_slices", "a4_shard_mean", "a5_classify", "a6_three_modes"],
        "02_collectives": ["b2_reshard_plan", "b3_transposes", "b4_halo"],
    }.items()
    for name in names
}
TASKS = {task.name: task.fn for exercise in EXERCISES.values() for task in exercise.tasks.values()}


def cases_of(exercise: str, check: str) -> list[dict]:
    cases = EXERCISES[exercise].checks[check].call
    assert isinstance(cases, Cases) and cases.hidden is not None
    return [*cases.public, *cases.hidden(np.random.default_rng(0))]


def auto_mesh(sizes: dict[str, int]) -> jax.sharding.Mesh:
    count = math.prod(sizes.values())
    auto = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=auto, devices=jax.devices()[:count])


def in_shard_map(body, value, sizes: dict[str, int], spec: P, out: P) -> np.ndarray:
    """Run a body in a shard_map, as the grader does, and return the result."""
    mapped = jax.shard_map(body, mesh=auto_mesh(sizes), in_specs=spec, out_specs=out, check_vma=False)
    return np.asarray(jax.jit(mapped)(value), np.float64)


# -- A3 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["owner_axes", "owner_copies", "owner_tuples", "owner_order"])
def test_owner_slices_are_those_of_addressable_shards(check):
    """JAX places the array of each case on simulated devices. The test leaves out meshes of more than 8 devices."""
    cases = [c for c in cases_of("a3_owner_slices", check) if math.prod(c["mesh_shape"].values()) <= 8]
    assert cases
    for case in cases:
        mesh = auto_mesh(case["mesh_shape"])
        array = jax.device_put(np.zeros(case["shape"], np.int8), NamedSharding(mesh, case["spec"]))
        held = {
            shard.device: tuple(slice(*where.indices(size)[:2]) for where, size in zip(shard.index, case["shape"], strict=True))
            for shard in array.addressable_shards
        }  # fmt: skip
        assert TASKS["owner_slices"](**case) == {n: held[device] for n, device in enumerate(mesh.devices.flat)}


@pytest.mark.parametrize("check", ["owner_axes", "owner_copies", "owner_tuples", "owner_order"])
def test_owner_slices_follow_the_grid_of_devices(check):
    """The test moves a spec entry's axes to the front of the grid of devices. Each row then holds one block."""
    for case in cases_of("a3_owner_slices", check):
        shape, names = case["shape"], list(case["mesh_shape"])
        grid = np.arange(math.prod(case["mesh_shape"].values())).reshape(list(case["mesh_shape"].values()))
        got = TASKS["owner_slices"](**case)
        assert sorted(got) == grid.ravel().tolist()
        for dim, entry in enumerate([*case["spec"], *[None] * (len(shape) - len(case["spec"]))]):
            axes = [names.index(a) for a in ([] if entry is None else [entry] if isinstance(entry, str) else entry)]
            parts = math.prod(grid.shape[a] for a in axes)
            blocks = np.moveaxis(grid, axes, range(len(axes))).reshape(parts, -1)
            edges = np.linspace(0, shape[dim], parts + 1).astype(int).tolist()
            for block, devices in enumerate(blocks):
                assert {(got[d][dim].start, got[d][dim].stop) for d in devices} == {(edges[block], edges[block + 1])}


# -- A5 ----------------------------------------------------------------------------------------

MESH = {"x": 2, "y": 3, "z": 2}


def case_by_ranges(eq: str, spec_a: P, spec_b: P) -> int:
    """Return the matmul's case (1 to 4), from the index ranges that each device of a small mesh holds."""
    operands, kept = eq.split("->")
    held = []
    for letters, spec in zip(operands.split(","), (spec_a, spec_b), strict=True):
        owned = owner_slices((12,) * len(letters), spec, MESH)
        held.append([dict(zip(letters, where, strict=True)) for where in owned])
    both = [tuple(_common(a.get(n, (0, 12)), b.get(n, (0, 12))) for n in kept) for a, b in zip(*held, strict=True)]
    covered = np.zeros((12,) * len(kept), bool)
    for box in both:
        covered[tuple(slice(*where) for where in box)] = True
    if not covered.all() or spec_of(both, covered.shape, MESH) is None:
        return 4
    summed = set(operands) - set(kept) - {","}
    ranges = {n: tuple([device[n] for device in side] for side in held) for n in summed}
    cut = {n: sides for n, sides in ranges.items() if any({*side} != {(0, 12)} for side in sides)}
    return 3 if any(a == b for a, b in cut.values()) else 2 if cut else 1


def _common(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    start = max(a[0], b[0])
    return start, max(start, min(a[1], b[1]))


@pytest.mark.parametrize("check", ["classify_matrices", "classify_clash", "classify_tensors"])
def test_classify_agrees_with_what_the_devices_hold(check):
    for case in cases_of("a5_classify", check):
        assert TASKS["classify"](**case) == case_by_ranges(**case), case


def test_every_case_of_classify_is_asked():
    found = {
        TASKS["classify"](**c) for check in EXERCISES["a5_classify"].checks for c in cases_of("a5_classify", check)
    }
    assert found == {1, 2, 3, 4, "illegal"}


def test_illegal_specs_are_those_that_jax_refuses():
    mesh = auto_mesh({"x": 1, "y": 1, "z": 1})
    for case in cases_of("a5_classify", "classify_illegal"):
        assert TASKS["classify"](**case) == "illegal"
        with pytest.raises(Exception, match=r"has duplicate entries|is incompatible with its sharding"):
            for letters, spec in zip(case["eq"].split(","), (case["spec_a"], case["spec_b"]), strict=True):
                operand = jax.ShapeDtypeStruct((12,) * len(letters.split("->")[0]), "float32")
                jax.eval_shape(lambda a, to=spec: jax.lax.with_sharding_constraint(a, NamedSharding(mesh, to)), operand)


# -- B2 ----------------------------------------------------------------------------------------


class Devices:
    """An array on a mesh: a NumPy block per device. Each step of a plan moves data and counts device 0's bytes."""

    def __init__(self, src, unreduced, shape, mesh, rng):
        self.mesh, self.points, self.sent = mesh, coordinates(mesh), 0
        parts = {key: rng.standard_normal(shape) for key in itertools.product(*(range(mesh[a]) for a in unreduced))}
        self.truth = sum(parts.values())
        owned = owner_slices(shape, src, mesh)
        self.blocks = [
            parts[tuple(point[a] for a in unreduced)][tuple(slice(*w) for w in where)]
            for point, where in zip(self.points, owned, strict=True)
        ]

    def group(self, device: int, axis: str) -> list[int]:
        """Return the devices that differ from this device only along the axis, in the axis's order."""
        return [i for i, p in enumerate(self.points) if {**p, axis: 0} == {**self.points[device], axis: 0}]

    def step(self, kind: str, axis: str, *dims: int) -> None:
        n, old = self.mesh[axis], self.blocks
        total = 4 * old[0].size
        self.sent += {"slice": 0, "all_gather": total * (n - 1), "all_reduce": 2 * total * (n - 1) // n}.get(
            kind, sum(total // n for other in range(n) if other != 0)
        )
        self.blocks = []
        for device, point in enumerate(self.points):
            blocks = [old[i] for i in self.group(device, axis)]
            if kind == "all_gather":
                self.blocks.append(np.concatenate(blocks, dims[0]))
            elif kind == "all_to_all":
                chunks = [np.split(block, n, dims[1])[point[axis]] for block in blocks]
                self.blocks.append(np.concatenate(chunks, dims[0]))
            else:
                whole = old[device] if kind == "slice" else sum(blocks)
                self.blocks.append(np.split(whole, n, dims[0])[point[axis]] if dims else whole)


@pytest.mark.parametrize("check", ["plan_arrives", "plan_moves", "plan_sums", "plan_order"])
def test_plans_move_the_data_and_send_what_they_say(check):
    rng = np.random.default_rng(1)
    for case in cases_of("b2_reshard_plan", check)[:20]:
        start = {k: v for k, v in case.items() if k != "dst"}
        start["shape"] = (math.prod(case["mesh_shape"].values()),) * 3
        plan = TASKS["reshard_plan"](dst=case["dst"], **start)
        devices = Devices(case["src"], case["unreduced"], start["shape"], case["mesh_shape"], rng)
        for step in plan:
            devices.step(*step)
        for where, block in zip(
            owner_slices(start["shape"], case["dst"], case["mesh_shape"]), devices.blocks, strict=True
        ):
            np.testing.assert_allclose(block, devices.truth[tuple(slice(*w) for w in where)])  # type: ignore
        assert run_plan(plan, **start) == (case["dst"], set(), devices.sent)


def run_plan(plan, **start):
    return TASKS["reshard_plan"].__globals__["run_plan"](plan, **start)


def cheapest(case: dict, *, once: bool) -> int:
    """Return the bytes of the cheapest plan. Dijkstra's algorithm searches the layouts.

    With ``once``, a plan uses every axis at most once.
    """
    start = {k: v for k, v in case.items() if k != "dst"}
    queue: list = [(0, 0, case["src"], tuple(sorted(case["unreduced"])), ())]
    seen, number = set(), itertools.count(1)
    while queue:
        sent, _, layout, unreduced, used = heapq.heappop(queue)
        if layout == case["dst"] and not unreduced:
            return sent
        if (layout, unreduced, used) in seen:
            continue
        seen.add((layout, unreduced, used))
        dims = range(len(layout))
        for axis in case["mesh_shape"]:
            if axis in used:
                continue
            steps: list = [(kind, axis, dim) for kind in ("slice", "all_gather", "reduce_scatter") for dim in dims]
            steps += [("all_reduce", axis), *(("all_to_all", axis, i, j) for i in dims for j in dims if i != j)]
            here = {**start, "src": layout, "unreduced": unreduced}
            for step in steps:
                try:
                    end, left, more = run_plan([step], **here)
                except ValueError:
                    continue
                spent = tuple(sorted([*used, axis])) if once else ()
                heapq.heappush(queue, (sent + more, next(number), end, tuple(sorted(left)), spent))
    raise AssertionError("no plan")


def test_the_budget_is_the_cheapest_plan_with_one_step_per_axis():
    """A search over all layouts gives the budget. If a plan may use an axis twice, some cases have a cheaper plan."""
    tricks = 0
    for case in cases_of("b2_reshard_plan", "plan_arrives")[:30] + cases_of("b2_reshard_plan", "plan_order")[:20]:
        start = {k: v for k, v in case.items() if k != "dst"}
        budget = run_plan(TASKS["reshard_plan"](**case), **start)[2]
        assert budget == cheapest(case, once=True)
        best = cheapest(case, once=False)
        assert best <= budget
        tricks += best < budget
    assert tricks > 0


def test_a_plan_over_the_budget_is_shown_with_its_bytes_and_the_budget():
    check = EXERCISES["b2_reshard_plan"].checks["plan_moves"]
    case = cases_of("b2_reshard_plan", "plan_moves")[0]
    slow = Outcome(value=[("all_gather", "x", 0), ("slice", "x", 1)])

    def told(got: Outcome, public: bool) -> str:
        outcomes = [(case, got, Outcome(value=TASKS["reshard_plan"](**case)))]
        return reason(check.fn, replace(seen(), outcomes=outcomes, public=public))

    count, first = told(slow, public=True).split("; ")
    assert count == told(slow, public=False) == "1 of 1 plans fail: a plan must end in dst within its budget of bytes"
    assert first.startswith(
        "from ('x', None, None) to (None, 'x', None), shape (120, 60, 180), x=4, y=2, z=3: the plan [("
    )
    assert first.endswith(" sends 3,888,000 bytes from each device, the budget is 972,000 bytes")
    assert "the plan [] does not end in dst, the budget" in told(Outcome(value=[]), public=True)
    assert "reshard_plan raised ValueError, the budget" in told(Outcome(error="ValueError"), public=True)


# -- B3, B4 ------------------------------------------------------------------------------------

FORWARD = {
    "all_gather_t": (lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True), P("x"), P("x")),
    "reduce_scatter_t": (lambda a: jax.lax.psum_scatter(a, "x", scatter_dimension=0, tiled=True), P("x"), P("x")),
    "all_reduce_t": (lambda a: jax.lax.psum(a, "x"), P("x"), P("x")),
    "all_to_all_t": (
        lambda a: jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=0, tiled=True),
        P("x"),
        P(None, "x"),
    ),
    "shift_t": (lambda a: jax.lax.ppermute(a, "x", [(i, i + 1) for i in range(3)]), P("x"), P("x")),
}


@pytest.mark.parametrize("name", FORWARD)
def test_transposes_keep_the_inner_product(name):
    """⟨A x, y⟩ = ⟨x, Aᵀ y⟩. JAX runs A and Aᵀ, and each inner product sums over the blocks of all devices."""
    forward, spec, out = FORWARD[name]
    rng, sizes = np.random.default_rng(2), {"x": 4}
    x = rng.standard_normal((48, 20)).astype(np.float32)
    ax = in_shard_map(forward, x, sizes, spec, out)
    y = rng.standard_normal(ax.shape).astype(np.float32)
    aty = in_shard_map(TASKS[name], y, sizes, out, spec)
    assert aty.shape == x.shape
    assert np.sum(ax * y) == pytest.approx(np.sum(x * aty), rel=1e-4)
    assert not np.allclose(np.sum(ax * y), np.sum(x * aty) / 4), "the mean would pass"


@pytest.mark.parametrize("w", [1, 4])
def test_halo_is_a_window_of_the_endless_array(w):
    a = np.random.default_rng(3).standard_normal(20).astype(np.float32)
    got = in_shard_map(lambda block: TASKS["halo"](block, w=w), a, {"x": 5}, P("x"), P("x"))
    endless = np.tile(a, 3)
    np.testing.assert_array_equal(got.reshape(5, -1), [endless[20 + 4 * i - w : 24 + 4 * i + w] for i in range(5)])


def test_stencil_is_a_circular_convolution():
    a, weights = np.random.default_rng(4).standard_normal(40).astype(np.float32), (-0.5, 2.0, 0.25, 1.0, -3.0)
    kernel = np.zeros(40)
    kernel[[2, 1, 0, -1, -2]] = weights
    wanted = np.fft.ifft(np.fft.fft(a) * np.fft.fft(kernel)).real
    got = jax.jit(lambda a: TASKS["stencil"](a, mesh=auto_mesh({"x": 8}), weights=weights))(a)
    np.testing.assert_allclose(np.asarray(got), wanted, atol=1e-4)


# -- questions ---------------------------------------------------------------------------------


def moved_blocks(X: int, Y: int) -> int:
    """Return the number of devices that hold different blocks under I_XY and under I_YX."""
    mesh, rows = {"x": X, "y": Y}, (X * Y,)
    pairs = zip(owner_slices(rows, [("x", "y")], mesh), owner_slices(rows, [("y", "x")], mesh), strict=True)
    return sum(a != b for a, b in pairs)


def rows_that_leave(rows: int, parts: int, shift: int) -> int:
    """Return how many rows of the first block get a new owner if all rows move down by ``shift``."""
    size = rows // parts
    return sum((row + shift) // size != 0 for row in range(size))


def rows_asked_of_one(rows: int, parts: int, w: int) -> int:
    """Return how many rows of device 0's block other devices need. A row counts once per device that needs it."""
    size, total = rows // parts, 0
    for device in range(1, parts):
        needed = {row % rows for row in range(device * size - w, (device + 1) * size + w)}
        total += len(needed & set(range(size)))
    return total


def block_of(shape, spec, mesh) -> int:
    return math.prod(stop - start for start, stop in owner_slices(shape, spec, mesh)[0])


def written_shardings(r: int, k: int) -> int:
    """Return the number of specs with r entries over k axes: each order of some axes, split into r entries."""
    found = set()
    for j in range(k + 1):
        for row in itertools.permutations(range(k), j):
            for ends in itertools.combinations_with_replacement(range(j + 1), r - 1):
                bounds = (0, *ends, j)
                found.add(tuple(row[a:b] for a, b in itertools.pairwise(bounds)))
    return len(found)


def test_the_shardings_that_are_counted_give_the_devices_different_blocks():
    mesh, layouts = {"x": 2, "y": 3}, set()
    entries = [(), ("x",), ("y",), ("x", "y"), ("y", "x")]
    for spec in itertools.product(entries, repeat=3):
        named = [axis for entry in spec for axis in entry]
        if len(set(named)) == len(named):
            layouts.add(tuple(owner_slices((6, 6, 6), spec, mesh)))
    assert len(layouts) == QUESTIONS["how_many_shardings"](r=3, k=2) == 19


KEYS = {
    "how_many_shardings": written_shardings,
    "first_row": lambda I, X, Y, device: owner_slices((I,), [("y", "x")], {"x": X, "y": Y})[device][0][0],
    "reorder_bytes": lambda I, J, X, Y: 4 * moved_blocks(X, Y) * I * J / (X * Y),
    "global_roll_bytes": lambda S, D, X, Y, shift: 4 * rows_that_leave(S, X, shift) * len(range(0, D, Y)),
    "partial_sum_bytes": lambda I, J, K, X, Y, Z: 4 * block_of((I, K), ("x", "z"), {"x": X, "y": Y, "z": Z}),
    "gather_of_c_bytes": lambda I, J, K, X, Y: sum(
        4 * block_of((I, K), ("x", "y"), {"x": X, "y": Y}) for step in range(Y) if step != 0
    ),
    "flops_of_one_constraint": lambda I, J, K, X, Y: 2 * J * block_of((I, K), ("x",), {"x": X, "y": Y}),
    "reshard_bytes": lambda I, J, X, Y: cheapest(
        {"src": (None, None), "unreduced": ("x",), "dst": ("x", "y"), "shape": (I, J), "mesh_shape": {"x": X, "y": Y}},
        once=False,
    ),
    "fsdp_backward_bytes": lambda D, F, X: sum(4 * D * F / X for chunk in range(X) if chunk != 0),
    "halo_bytes": lambda N, D, X, w: 4 * D * rows_asked_of_one(N, X, w),
}  # fmt: skip
QUESTIONS = {q.name: q for exercise in EXERCISES.values() for q in exercise.questions.values()}


@pytest.mark.parametrize("name", KEYS)
def test_answer_agrees_with_a_second_derivation(name):
    variants = list(QUESTIONS[name].variants())
    for params in variants[:: max(1, len(variants) // 60)]:
        assert QUESTIONS[name](**params) == pytest.approx(KEYS[name](**params), rel=1e-9), params


def test_every_question_has_its_second_derivation():
    assert set(KEYS) == set(QUESTIONS)
