"""The answers of K1 to K5. The tests derive each answer in a second way."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.common.layout import owner_slices
from grader.course.exercises import load_exercise
from grader.exercise import Cases, Exercise
from grader.hardware import all_reduce_time, matmul_time

MODULE = "11_types_and_meshes"
SOLUTIONS = Path(__file__).parents[1] / "solutions"
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(SOLUTIONS / MODULE / f"{name}.py", name, MODULE, 0.02)
    for name in ["k1_einsum_rule", "k2_einsum_bwd", "k3_dtensor", "k4_mesh_for", "k5_logical_names"]
}
TASKS = {task.name: task.fn for exercise in EXERCISES.values() for task in exercise.tasks.values()}
QUESTIONS = {name: question for exercise in EXERCISES.values() for name, question in exercise.questions.items()}
EINSUMS = [
    "ij,jk->ik",
    "ij,jk->ki",
    "i,j->ij",
    "ij,ij->i",
    "sbi,io->sbo",
    "sbh,h->sbh",
    "bnef,fh->nebh",
    "ij,jk,kl->il",
]


def cases_of(task: str) -> list[dict]:
    exercise = next(one for one in EXERCISES.values() if task in one.tasks)
    asked = {id(check.call): check.call for check in exercise.checks.values()}.values()
    found = []
    for cases in asked:
        assert isinstance(cases, Cases) and cases.hidden is not None
        if cases.task.name == task:
            found += [*cases.public, *cases.hidden(np.random.default_rng(0))]
    assert found
    return found


def outcome(task: str, **args):
    """Return the result of the reference; None if the reference raises ValueError."""
    try:
        return TASKS[task](**args)
    except ValueError:
        return None


def placements(terms: list[str]) -> list[list[str]]:
    return [list(p) for p in itertools.product(*(["R", "P", *(f"S({d})" for d in range(len(t)))] for t in terms))]


def laid_out(rng, whole: np.ndarray, place: str, devices: int) -> list[np.ndarray]:
    if place == "R":
        return [whole] * devices
    if place == "P":
        summands = rng.normal(size=(devices, *whole.shape))
        return list(summands - summands.mean(0) + whole / devices)
    return np.split(whole, devices, int(place[2:-1]))


def lies_as(held: list[np.ndarray], due: np.ndarray) -> str | None:
    """Return the placement for which the devices' parts ``held`` represent the array ``due``; None if none fits."""
    meant = {"R": held[0] if all(np.allclose(h, held[0]) for h in held) else held[0] + np.nan, "P": sum(held)}
    for d in range(due.ndim):
        meant[f"S({d})"] = np.concatenate(held, d)
    right = [place for place, m in meant.items() if np.shape(m) == due.shape and np.allclose(m, due)]
    assert len(right) < 2, "placements of spread data cannot be mistaken"
    return right[0] if right else None


def einsum_cases(devices: int):
    """Yield every equation and placement, with the operands and each device's parts of the operands.

    Some of the parts do not fit the equation.
    """
    rng = np.random.default_rng(3)
    for equation in EINSUMS:
        terms = equation.split("->")[0].split(",")
        sizes = {letter: devices * (2 + i % 3) for i, letter in enumerate(dict.fromkeys("".join(terms)))}
        wholes = [rng.normal(size=[sizes[letter] for letter in term]) for term in terms]
        for places in placements(terms):
            parts = [laid_out(rng, whole, place, devices) for whole, place in zip(wholes, places, strict=True)]
            yield equation, places, wholes, list(zip(*parts, strict=True))


def ring_all_reduce_bytes(numbers: int, devices: int, itemsize: int) -> int:
    """Return the bytes that device 0 sends in a ring all-reduce. In each hop it sends one chunk."""
    chunks = np.array_split(np.zeros(numbers, np.int8), devices)
    sent = 0
    for hop in range(devices - 1):
        sent += len(chunks[-hop % devices]) * itemsize
    for hop in range(devices - 1):
        sent += len(chunks[(1 - hop) % devices]) * itemsize
    return sent


# -- K1 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [2, 4])
def test_einsum_rule_agrees_with_simulated_parts(devices):
    for equation, places, wholes, held in einsum_cases(devices):
        try:
            due = lies_as([np.einsum(equation, *one) for one in held], np.einsum(equation, *wholes))
        except ValueError:  # the shapes do not fit the equation
            due = None
        assert outcome("einsum_rule", equation=equation, placements=places) == due, (equation, places)


def test_elementwise_rule_agrees_with_simulated_parts():
    rng = np.random.default_rng(1)
    ops = {"triple": lambda x: x * 3, "add": np.add, "relu": lambda x: x * (x > 0), "add_one": lambda x: x + 1}
    for case in cases_of("elementwise_rule"):
        wholes = [rng.normal(size=(4, 8, 12)) for _ in case["placements"]]
        parts = [laid_out(rng, whole, place, 4) for whole, place in zip(wholes, case["placements"], strict=True)]
        try:
            held = [ops[case["op"]](*one) for one in zip(*parts, strict=True)]
            due = lies_as(held, ops[case["op"]](*wholes))
        except ValueError:
            due = None
        assert outcome("elementwise_rule", **case) == due, case


def test_pending_bytes_are_those_of_the_hops():
    for drawn in QUESTIONS["pending_bytes"].variants():
        numbers = drawn["B"] * drawn["N"] * drawn["E"] * drawn["H"]
        assert QUESTIONS["pending_bytes"](**drawn) == ring_all_reduce_bytes(numbers, drawn["X"], 4)


def test_pieces_that_meet_are_counted():
    for drawn in QUESTIONS["pieces_that_meet"].variants():
        X, Y = drawn["X"], drawn["Y"]
        mesh = {"x": X, "y": Y}
        columns = owner_slices((1, X * Y), P(None, ("x", "y")), mesh)
        rows = owner_slices((X * Y, 1), P(("y", "x")), mesh)
        met = sum(a[1] == b[0] for a, b in zip(columns, rows, strict=True))
        assert QUESTIONS["pieces_that_meet"](**drawn) == met


# -- K2 ----------------------------------------------------------------------------------------


def test_gradients_are_those_of_jax():
    """Each device differentiates its part. If the output is whole or a partial sum, devices get the whole gradient."""
    rng = np.random.default_rng(5)
    for equation, places, wholes, held in einsum_cases(3):
        out = outcome("einsum_rule", equation=equation, placements=places)
        if out is None:
            continue

        def fn(*operands, equation=equation):
            return np.einsum(equation, *operands)

        upstream = rng.normal(size=fn(*wholes).shape)
        cotangents = laid_out(rng, upstream, "R" if out == "P" else out, 3)
        got = TASKS["einsum_bwd"](equation, places)
        assert len(got) == len(wholes)

        def traced(*operands, equation=equation):
            return jax.numpy.einsum(equation, *operands)

        if "P" not in places and equation in EINSUMS[:4]:  # compare only some equations with JAX, because this is slow
            due = [np.asarray(g) for g in jax.vjp(traced, *wholes)[1](upstream.astype(np.float32))]
            for (eq, _), want, i in zip(got, due, range(9), strict=False):
                operands = [upstream if j == i else whole for j, whole in enumerate(wholes)]
                np.testing.assert_allclose(np.einsum(eq, *operands), want, atol=1e-3)
        for i, (eq, place) in enumerate(got):

            def turned(operands, g, i=i, eq=eq):
                return np.einsum(eq, *[g if j == i else o for j, o in enumerate(operands)])

            found = [turned(operands, g) for operands, g in zip(held, cotangents, strict=True)]
            assert lies_as(found, turned(wholes, upstream)) == place, (equation, places, eq)


def test_gradient_bytes_are_those_of_the_hops():
    for case in cases_of("gradient_bytes"):
        due = 0
        for equation, place in case["gradients"]:
            shape = [case["sizes"][letter] for letter in equation.split("->")[1]]
            due += ring_all_reduce_bytes(math.prod(shape), case["devices"], 4) if place == "P" else 0
        assert TASKS["gradient_bytes"](**case) == due


def test_columns_to_overlap_is_where_matmul_and_all_reduce_times_cross():
    for drawn in QUESTIONS["columns_to_overlap"].variants():
        X, rows, I, chip = drawn["X"], drawn["S"] * drawn["B"], drawn["I"], drawn["chip"]
        reduce = all_reduce_time(2 * rows * I, X, chip)
        least = QUESTIONS["columns_to_overlap"](**drawn)
        matmul = [matmul_time(2 * rows * I * (least * more / X), chip) for more in (0.999, 1.001)]
        assert matmul[0] < reduce < matmul[1]


def test_scale_gradients_are_those_of_the_hops():
    for drawn in QUESTIONS["scale_gradients"].variants():
        norms = itertools.product(range(drawn["L"]), ["attention", "mlp"])
        assert QUESTIONS["scale_gradients"](**drawn) == sum(
            ring_all_reduce_bytes(drawn["H"], drawn["X"], 4) for _ in norms
        )


# -- K3 ----------------------------------------------------------------------------------------


def by_placements(places: list[str], shape: tuple[int, ...], mesh: dict[str, int]) -> list[tuple]:
    """Return the slices of each device. Each mesh axis cuts the slices that the axes before it have made."""
    held = [tuple((0, size) for size in shape)]
    for place, count in zip(places, mesh.values(), strict=True):
        after = []
        for part in held:
            for i in range(count):
                cut = list(part)
                if place[0] == "S":
                    dim = int(place[2:-1])
                    start, stop = part[dim]
                    cut[dim] = (start + (stop - start) * i // count, start + (stop - start) * (i + 1) // count)
                after.append(tuple(cut))
        held = after
    return held


def test_placements_give_each_device_what_the_spec_gives_it():
    for case in cases_of("to_dtensor"):
        places = outcome("to_dtensor", **case)
        if places is None:
            continue
        spec, shape, mesh = case["spec"], case["shape"], case["mesh"]
        assert by_placements(places, shape, mesh) == owner_slices(shape, spec.partitions, mesh)
        assert {axis for axis, place in zip(mesh, places, strict=True) if place == "P"} == spec.unreduced
        back = TASKS["to_spec"](places, shape, mesh)
        again = [*spec.partitions, *[None] * (len(shape) - len(spec.partitions))]
        assert [*back.partitions] == again and back.unreduced == spec.unreduced


def test_no_placement_list_expresses_a_spec_refused_for_its_order():
    refused = 0
    for case in cases_of("to_dtensor"):
        spec, shape, mesh = case["spec"], case["shape"], case["mesh"]
        named = [axis for entry in spec.partitions for axis in ([entry] if isinstance(entry, str) else entry or ())]
        possible = len(set(named)) == len(named) and {*named, *spec.unreduced} <= set(mesh)
        if outcome("to_dtensor", **case) is not None or not possible or min(mesh.values()) == 1:
            continue
        try:
            due = owner_slices(shape, spec.partitions, mesh)
        except ValueError:  # the spec cuts a dimension unevenly, or has too many entries
            continue
        if any(axis_stop - start == 0 for part in due for start, axis_stop in part):
            continue
        lists = itertools.product(["R", *(f"S({d})" for d in range(len(shape)))], repeat=len(mesh))
        even = all(
            size % math.prod(mesh[a] for a in ([e] if isinstance(e, str) else e or ())) == 0
            for size, e in zip(shape, spec.partitions, strict=False)
        )
        if even:
            refused += 1
            assert all(by_placements(list(one), shape, mesh) != due for one in lists)
    assert refused > 20


def test_specs_without_a_list_are_counted():
    question = QUESTIONS["specs_without_a_list"]
    for drawn in question.variants():
        r, k = drawn["r"], drawn["k"]
        if (r + 2) ** k > 400:
            continue
        axes = [f"x{i}" for i in range(k)]
        mesh = dict.fromkeys(axes, 2)
        count = 0
        for where in itertools.product(["R", "P", *range(r)], repeat=k):
            ways = [
                list(itertools.permutations([a for a, w in zip(axes, where, strict=True) if w == d])) for d in range(r)
            ]
            pending = frozenset(a for a, w in zip(axes, where, strict=True) if w == "P")
            for entries in itertools.product(*ways):
                spec = P(*[entry or None for entry in entries], unreduced=pending)
                count += outcome("to_dtensor", spec=spec, shape=(2**k,) * r, mesh=mesh) is None
        assert question(**drawn) == count


def test_the_scattered_gradient_has_the_layout_of_the_spec():
    mesh = {"dp": 2, "fsdp": 3, "tp": 4}
    for drawn in QUESTIONS["scattered_gradient"].variants():
        spec = P(drawn["rows"], "tp" if drawn["rows"] == "fsdp" else "fsdp")
        held = owner_slices((48, 96), spec, mesh)
        kept = []
        for rank, part in enumerate(held):
            dp = rank // 12
            start, stop = part[drawn["dim"]]
            half = (stop - start) // 2
            cut = list(part)
            cut[drawn["dim"]] = (start + dp * half, start + (dp + 1) * half)
            kept.append(tuple(cut))
        answer = QUESTIONS["scattered_gradient"](**drawn)
        assert kept == owner_slices((48, 96), answer, mesh)


# -- K4 ----------------------------------------------------------------------------------------


def touched(mesh: list[tuple[str, int]], axis: str, node: int) -> int:
    """Return the largest number of nodes in which a group over this axis has devices."""
    found: dict[tuple, set[int]] = {}
    for rank, point in enumerate(itertools.product(*(range(size) for _, size in mesh))):
        others = tuple(at for (name, _), at in zip(mesh, point, strict=True) if name != axis)
        found.setdefault(others, set()).add(rank // node)
    return max(map(len, found.values()))


def test_no_order_of_mesh_axes_puts_cp_groups_in_fewer_nodes():
    """If tp stays inside a node, no other order of axes puts cp groups in fewer nodes."""
    tried = 0
    for case in cases_of("mesh_for"):
        mesh = outcome("mesh_for", **case)
        if mesh is None or math.prod(size for _, size in mesh) > 200 or tried > 60:
            continue
        tried += 1
        sizes, node = dict(mesh), case["node"]
        assert math.prod(sizes.values()) == case["devices"]
        assert all(size in (-1, sizes[axis]) for axis, size in case["strategies"].items())
        if "tp" in sizes:
            assert touched(mesh, "tp", node) == 1
        if "cp" in sizes:
            orders = [list(one) for one in itertools.permutations(mesh)]
            near = [one for one in orders if "tp" not in sizes or touched(one, "tp", node) == 1]
            assert touched(mesh, "cp", node) == min(touched(one, "cp", node) for one in near)
    assert tried > 20


def test_groups_differ_along_their_axes_only():
    for case in cases_of("groups"):
        mesh, axes = case["mesh"], case["axes"]
        points = list(itertools.product(*(range(size) for _, size in mesh)))
        outside = [i for i, (name, _) in enumerate(mesh) if name not in axes]
        found = TASKS["groups"](**case)
        assert sorted(rank for group in found for rank in group) == list(range(len(points)))
        keys = [{tuple(points[rank][i] for i in outside) for rank in group} for group in found]
        assert all(len(key) == 1 for key in keys) and len(set(map(frozenset, keys))) == len(found)


def test_axes_for_follow_from_what_each_rank_holds():
    """The test lists each rank's sequence, part of it and weights. It finds the axes along which these differ."""
    for case in cases_of("axes_for"):
        names = [name for name, _ in case["mesh"]]

        def held(point: dict[str, int], what: str = case["what"]) -> tuple:
            def at(*axes):
                return tuple(point.get(axis, 0) for axis in axes)

            sequences = at("dp_replicate", "dp_shard")
            tokens = (*sequences, *at("cp"))
            return {"batch": sequences, "loss": tokens, "weights": at("dp_shard", "cp")}[what]

        here = dict.fromkeys(names, 0)
        assert list(TASKS["axes_for"](**case)) == [axis for axis in names if held(here) != held(here | {axis: 1})]


def test_tp_outermost_time_is_that_of_the_bytes_which_leave_a_node():
    for drawn in QUESTIONS["tp_outermost_time"].variants():
        T, size = drawn["T"], 2 * drawn["B"] * drawn["D"]
        rings = TASKS["groups"]([("tp", T), ("dp_shard", 16)], ("tp",))
        leaving = 0.0
        for ring in rings:  # in each of the 2·(T - 1) hops, each rank sends size / T to the next rank
            for here, there in zip(ring, [*ring[1:], ring[0]], strict=True):
                leaving += 2 * (T - 1) * size / T if here // 8 == 0 and there // 8 != 0 else 0
        assert math.isclose(QUESTIONS["tp_outermost_time"](**drawn), 4 * drawn["L"] * leaving / 400e9)


def test_nodes_of_a_weight_are_counted():
    for drawn in QUESTIONS["nodes_of_a_weight"].variants():
        mesh = list(zip(["pp", "dp_replicate", "dp_shard", "cp", "tp"], drawn.values(), strict=True))
        groups = TASKS["groups"](mesh, TASKS["axes_for"]("weights", mesh))
        counts = {len({rank // 8 for rank in group}) for group in groups}
        assert counts == {QUESTIONS["nodes_of_a_weight"](**drawn)}


# -- K5 ----------------------------------------------------------------------------------------


def best_rules(names: tuple, rules: list[tuple], mesh: dict[str, int]) -> P:
    """Return the spec of the best rules that fit together. Earlier rules have priority."""
    of = [(i, name, (e,) if isinstance(e, str) else e or ()) for i, (name, e) in enumerate(rules) if name in names]
    best: tuple = ()
    for chosen in itertools.product([True, False], repeat=len(of)):  # in falling order
        kept = [rule for rule, keep in zip(of, chosen, strict=True) if keep]
        axes = [axis for _, _, entry in kept for axis in entry]
        once = len({name for _, name, _ in kept}) == len(kept) and len(set(axes)) == len(axes)
        if once and set(axes) <= set(mesh):
            best = tuple(kept)
            break
    entries = {name: entry for _, name, entry in best}
    return P(*[entries.get(name, ()) for name in names])


def test_spec_of_takes_the_first_rules_that_can_serve_together():
    for case in cases_of("spec_of"):
        got = outcome("spec_of", **case)
        if got is None:
            assert any(name and name not in dict(case["rules"]) for name in case["names"])
        else:
            assert got == best_rules(**case), case


def test_bytes_by_rules_are_those_of_the_blocks():
    rules = [("batch", ("dp", "fsdp")), ("mlp", "tp"), ("seq", "tp"), ("embed", "fsdp")]
    for drawn in QUESTIONS["bytes_by_rules"].variants():
        mesh: dict[str, int] = dict(zip(["dp", "fsdp", "tp"], drawn["mesh"], strict=True))
        B, S, E, F = (drawn[name] for name in "BSEF")
        total = 0
        for shape, names in [((B, S, E), ("batch", "seq", "embed")), ((E, F), ("embed", "mlp"))]:
            spec = best_rules(names, rules, mesh)
            block = math.prod(stop - start for start, stop in owner_slices(shape, spec, mesh)[-1])
            assert block * math.prod(mesh.values()) % math.prod(shape) == 0
            total += 2 * block
        assert QUESTIONS["bytes_by_rules"](**drawn) == total


def test_spec_by_rules_follows_the_rules():
    for drawn in QUESTIONS["spec_by_rules"].variants():
        first, weight = drawn["first"], drawn["weight"]
        mesh = {axis: 2 for axis in ("dp", "fsdp", "tp") if axis in drawn["mesh"].replace(",", "").split()}
        second = "seq" if first == "heads" else "heads"
        rules = [
            ("batch", ("dp", "fsdp")),
            (first, "tp"),
            (second, "tp"),
            ("batch", "dp"),
            (weight, "fsdp"),
            (weight, "dp"),
        ]
        answer = QUESTIONS["spec_by_rules"](**drawn)
        assert best_rules(("seq", "batch", "heads", weight), rules, mesh) == P(*[e or () for e in answer])
