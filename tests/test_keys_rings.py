"""The answers of module 05, B5 and B6. The tests derive each answer in a second way.

Other tests grade right solutions in other styles. Times and bytes come from messages moved over wires, step by step
(``network.py``).
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.common.layout import coordinates
from grader.common.observation import Seen, Sharded
from grader.course.exercises import load_exercise
from grader.exercise import Array, Call, Exercise, Question
from grader.expect import Failure
from grader.hardware import CHIPS, HOP_TIME
from grader.runner import facts, program
from tests import network
from tests.meshes import abstract_mesh
from tests.sampled import sampled

SOLUTIONS = Path(__file__).parents[1] / "solutions"
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(SOLUTIONS / module / f"{name}.py", f"keys_of_{name}", module, 0.02)
    for module, names in {
        "02_collectives": ["b5_rooted", "b6_vmap"],
        "05_rings": [
            "e1_ring_all_gather", "e2_ring_reduce_scatter", "e3_ring_all_reduce", "e4_bidirectional", "e5_ring_all_to_all",
        ],
    }.items()
    for name in names
}  # fmt: skip
QUESTIONS = {question.name: question for exercise in EXERCISES.values() for question in exercise.questions.values()}
TASKS = {task.name: (exercise, task) for exercise in EXERCISES.values() for task in exercise.tasks.values()}


# -- answers -----------------------------------------------------------------------------------


def seconds(collective: str, how: str, n: int, size: float, chip: str) -> float:
    return network.moved(collective, how, n, size, CHIPS[chip].ici).clock


def hopping(collective: str, how: str, n: int, size: float, chip: str) -> float:
    """Return the seconds of a collective. All steps send equal sizes, and no step is shorter than the time of a hop."""
    net = network.moved(collective, how, n, size, CHIPS[chip].ici)
    return net.steps * max(HOP_TIME, net.clock / net.steps)


def from_device_0(net: network.Network) -> float:
    """Return the bytes that device 0 sends on a one-way ring."""  # type: ignore
    return net.sent["+", 0]


def from_all(net: network.Network) -> float:
    return sum(net.sent.values())


def block(shape: tuple[int, ...], spec: P, sizes: Mapping[str, int]) -> tuple[int, ...]:
    mesh = abstract_mesh(sizes)
    return NamedSharding(mesh, spec).shard_shape(shape)


ONE_WAY, BOTH_WAYS = "one_way_ring", "ring whole"
KEYS: dict[str, Callable[..., float]] = {
    "rooted_broadcast_time": lambda chip, I, K, X: seconds("all_reduce", BOTH_WAYS, X, 2 * I * K, chip),
    "rooted_scatter_bytes": lambda I, K, X: from_all(network.moved("reduce_scatter", ONE_WAY, X, 4 * I * K)),
    "batch_gather_time": lambda chip, B, I, J, X, Y: seconds(
        "all_gather", BOTH_WAYS, Y, Y * 2 * math.prod(block((B, I, J), P("y", "x"), {"x": X, "y": Y})), chip
    ),
    "looped_latency": lambda B, X, Y: (
        block((B, X, 1), P("y", "x"), {"x": X, "y": Y})[0]
        * network.moved("all_reduce", BOTH_WAYS, X, 1).steps
        * HOP_TIME
    ),
    "ring_gather_bytes": lambda I, J, X: from_device_0(network.moved("all_gather", ONE_WAY, X, 4 * I * J)),
    "ring_gather_one_way_time": lambda chip, I, J, X: seconds("all_gather", ONE_WAY, X, 2 * I * J, chip),
    "ring_scatter_one_way_time": lambda chip, I, J, X: seconds("reduce_scatter", ONE_WAY, X, 2 * I * J, chip),
    "ring_scatter_small_time": lambda chip, I, L, J, X: sum(
        hopping("reduce_scatter", ONE_WAY, X, 2 * rows * J, chip) for rows in (I, L)
    ),
    "ring_reduce_total_bytes": lambda I, J, X: from_all(network.moved("all_reduce", ONE_WAY, X, 4 * I * J)),
    "ring_reduce_one_way_time": lambda chip, I, J, X: seconds("all_reduce", ONE_WAY, X, 2 * I * J, chip),
    "bidi_gather_time": lambda chip, I, J, X: seconds("all_gather", BOTH_WAYS, X, 2 * I * J, chip),
    "bidi_time_saved": lambda chip, I, L, J, X: sum(
        hopping("all_gather", ONE_WAY, X, 2 * rows * J, chip) - hopping("all_gather", BOTH_WAYS, X, 2 * rows * J, chip)
        for rows in (I, L)
    ),
    "ring_trade_bytes": lambda I, J, X: from_device_0(network.moved("all_to_all", ONE_WAY, X, 4 * I * J)),
    "ring_trade_time": lambda chip, I, J, X: seconds("all_to_all", ONE_WAY, X, 2 * I * J, chip),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question):
    for params in question.variants():
        assert question(**params) == pytest.approx(KEYS[question.name](**params), rel=1e-9), params


def test_every_second_derivation_has_its_question():
    assert set(KEYS) == set(QUESTIONS)


# -- solutions in other styles -----------------------------------------------------------------


def auto_mesh(sizes: Mapping[str, int]) -> Mesh:
    auto, devices = (AxisType.Auto,) * len(sizes), jax.devices()[: math.prod(sizes.values())]
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=auto, devices=devices)


def looked_at(name: str, fn: Callable, call: Call, sizes: Mapping[str, int]) -> Seen:
    """Run ``fn`` in place of the task's function, and return what the checks of ``call`` see."""
    _, task = TASKS[name]
    (arg,) = call.args
    array, mesh = call.args[arg], auto_mesh(sizes)
    spec = P(*array.spec)
    if task.kind == "body":
        fn = jax.shard_map(
            partial(fn, **call.static), mesh=mesh, in_specs=spec, out_specs=task.out_specs, check_vma=task.modes[0]
        )
    else:
        fn = partial(fn, mesh=mesh, **call.static)
    dims = call.sizes(sizes, hidden=True)
    value = array.sample(dims, np.random.default_rng(0))
    placed = jax.device_put(value, NamedSharding(mesh, spec))
    found = facts.read(form_of(fn, placed, array, sizes).parse(), sizes, set())
    inputs = {arg: value.astype(np.float64)}
    return Seen(sizes, dims, inputs, call.static, out=as_seen(jax.jit(fn)(placed), mesh), collectives=found.collectives)  # fmt: skip


def form_of(fn: Callable, placed: jax.Array, array: Array, sizes: Mapping[str, int]) -> program.Program:
    """Lower ``fn``, and return the program in the form that the runner reads."""
    code, lowered = io.BytesIO(), jax.jit(fn).lower(placed)
    lowered.compiler_ir("stablehlo").operation.write_bytecode(code)  # type: ignore[union-attr]
    spec = [{"tuple": list(e)} if isinstance(e, tuple) else e for e in array.spec]
    about = {"shape": list(placed.shape), "dtype": placed.dtype.name, "spec": {"spec": spec}}
    return program.canonical(code.getvalue(), sizes, [about], set())


def as_seen(out: jax.Array, mesh: Mesh) -> Sharded:
    at = {shard.device: shard for shard in out.addressable_shards}
    shards = [at[device] for device in mesh.devices.flat]
    slices = [tuple(s.indices(n)[:2] for s, n in zip(shard.index, out.shape, strict=True)) for shard in shards]
    return Sharded(out.shape, out.dtype, dict(mesh.shape), slices, [np.asarray(shard.data) for shard in shards], np.dtype("float32"))  # fmt: skip


def ring(n: int, step: int = 1) -> list[tuple[int, int]]:
    return [(d, (d + step) % n) for d in range(n)]


def me_and_n() -> tuple[Any, int]:
    return jax.lax.axis_index("x"), jax.lax.axis_size("x")


def gather_in_a_loop(a, step=1):
    me, n = me_and_n()

    def hop(t, carry):
        a, out = carry
        a = jax.lax.ppermute(a, "x", ring(n, step))
        return a, out.at[(me - step * (t + 1)) % n].set(a)

    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    return jax.lax.fori_loop(0, n - 1, hop, (a, out))[1].reshape(-1, a.shape[1])


def gather_in_a_scan(a):
    """Gather in a scan. Shards arrive in descending order, so reverse them and roll them into place."""
    me, n = me_and_n()

    def hop(a, _):
        a = jax.lax.ppermute(a, "x", ring(n))
        return a, a

    _, came = jax.lax.scan(hop, a, length=n - 1)
    return jnp.roll(jnp.concatenate([a[None], came])[::-1], me + 1, axis=0).reshape(-1, a.shape[1])


def scatter_in_a_loop(a, step=1):
    me, n = me_and_n()
    chunks = a.reshape(n, -1, a.shape[1])

    def hop(t, acc):
        return jax.lax.ppermute(acc, "x", ring(n, step)) + chunks[(me - step * (t + 1)) % n]

    return jax.lax.fori_loop(1, n, hop, chunks[(me - step) % n])


def scatter_both_ways(a):
    """Reduce-scatter in both directions. The owner adds the sums that arrive from the two directions."""
    me, n = me_and_n()
    chunks = a.reshape(n, -1, a.shape[1])
    total = chunks[me]
    for step, far in ((1, n // 2), (-1, (n - 1) // 2)):
        acc = chunks[(me + step * far) % n]
        for hop in range(1, far + 1):
            acc = jax.lax.ppermute(acc, "x", ring(n, step))
            acc = acc + chunks[(me + step * (far - hop)) % n] if hop < far else acc
        total = total + acc if far else total
    return total


def reduce_in_loops(a):
    return gather_in_a_loop(scatter_in_a_loop(a, -1), -1)


def both_ways_in_a_loop(a):
    me, n = me_and_n()

    def put(out, t, right, left):
        return out.at[(me - t) % n].set(right).at[(me + t) % n].set(left)

    def hop(t, carry):
        out, right, left = carry
        right, left = jax.lax.ppermute(right, "x", ring(n)), jax.lax.ppermute(left, "x", ring(n, -1))
        return put(out, t, right, left), right, left

    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    out, _, left = jax.lax.fori_loop(1, (n - 1) // 2 + 1, hop, (out, a, a))
    if n % 2 == 0:
        out = out.at[(me + n // 2) % n].set(jax.lax.ppermute(left, "x", ring(n, -1)))
    return out.reshape(-1, a.shape[1])


def both_ways_with_split_middle(a):
    """Gather in both directions. Half of the opposite shard arrives from each side, so equal loads move both ways."""
    me, n = me_and_n()
    out, half = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a), a.shape[0] // 2
    right = left = a
    for t in range(1, n // 2 + 1):
        if 2 * t == n:
            right = jax.lax.ppermute(right[:half], "x", ring(n))
            left = jax.lax.ppermute(left[half:], "x", ring(n, -1))
            return out.at[(me - t) % n].set(jnp.concatenate([right, left])).reshape(-1, a.shape[1])
        right, left = jax.lax.ppermute(right, "x", ring(n)), jax.lax.ppermute(left, "x", ring(n, -1))
        out = out.at[(me - t) % n].set(right).at[(me + t) % n].set(left)
    return out.reshape(-1, a.shape[1])


def trade_one_by_one(a):
    """Send each chunk to its device by one permute, at any distance. The network takes the shorter direction."""
    me, n = me_and_n()
    chunks = a.reshape(a.shape[0], n, -1).swapaxes(0, 1)
    out = jnp.zeros_like(chunks).at[me].set(chunks[me])
    for far in range(1, n):
        out = out.at[(me - far) % n].set(jax.lax.ppermute(chunks[(me + far) % n], "x", ring(n, far)))
    return out.reshape(-1, out.shape[2])


def trade_with_two_bags(a):
    me, n = me_and_n()
    chunks = a.reshape(a.shape[0], n, -1).swapaxes(0, 1)
    out = jnp.zeros_like(chunks).at[me].set(chunks[me])
    for step, far in ((1, n // 2), (-1, (n - 1) // 2)):
        bag = chunks[(me + step * jnp.arange(1, far + 1)) % n]
        for hop in range(1, far + 1):
            bag = jax.lax.ppermute(bag, "x", ring(n, step))
            out, bag = out.at[(me - step * hop) % n].set(bag[0]), bag[1:]
    return out.reshape(-1, out.shape[2])


def scatter_by_trading(a, *, root):
    n = jax.lax.axis_size("x")
    return jax.lax.all_to_all(a.reshape(n, -1, a.shape[1]), "x", split_axis=0, concat_axis=0)[root]


def broadcast_in_two_halves(a, *, root):
    return jax.lax.all_gather(scatter_by_trading(a, root=root), "x", tiled=True)


def vmap_inside(a, *, mesh):
    local = jax.vmap(lambda example: example - jax.lax.pmean(example.mean(0), "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)


STYLES: list[tuple[str, Callable]] = [
    ("ring_all_gather", gather_in_a_loop),
    ("ring_all_gather", partial(gather_in_a_loop, step=-1)),
    ("ring_all_gather", gather_in_a_scan),
    ("ring_reduce_scatter", scatter_in_a_loop),
    ("ring_reduce_scatter", partial(scatter_in_a_loop, step=-1)),
    ("ring_reduce_scatter", scatter_both_ways),
    ("ring_all_reduce", reduce_in_loops),
    ("bidi_all_gather", both_ways_in_a_loop),
    ("bidi_all_gather", both_ways_with_split_middle),
    ("ring_all_to_all", trade_one_by_one),
    ("ring_all_to_all", trade_with_two_bags),
    ("rooted_broadcast", broadcast_in_two_halves),
    ("rooted_scatter", scatter_by_trading),
    ("centre_batch", vmap_inside),
]


@pytest.mark.parametrize(("name", "fn"), sampled(4, STYLES), ids=lambda v: v if isinstance(v, str) else "")
def test_a_right_solution_in_another_style_passes(name: str, fn: Callable):
    exercise, task = TASKS[name]
    checks = [check for check in exercise.checks.values() if check.call.task is task]
    assert checks
    for call in {id(check.call): check.call for check in checks}.values():
        assert isinstance(call, Call)
        for sizes in call.meshes[:2]:  # a larger and a smaller ring; in module 05, an even and an odd ring
            seen = looked_at(name, fn, call, sizes)
            for check in checks:
                if check.call is call:
                    check.fn(seen)


RINGS = ["ring_all_gather", "ring_reduce_scatter", "ring_all_reduce", "bidi_all_gather", "ring_all_to_all"]


# On two devices, the wrong all-reduce sends as much as the right one, so no budget can separate them.
@pytest.mark.parametrize(
    ("name", "n"), sampled(4, [(name, n) for n in (3, 2, 7) for name in RINGS if (name, n) != ("ring_all_reduce", 2)])
)
def test_references_hold_on_rings_of_other_sizes(name: str, n: int):
    exercise, task = TASKS[name]
    (call,) = {id(check.call): check.call for check in exercise.checks.values()}.values()
    assert isinstance(call, Call)
    call = Call(call.task, call.args, call.static, call.meshes, {}, {"I": 2 * n * n, "J": 3 * n})
    seen = looked_at(name, task.fn, call, {"x": n})
    for check in exercise.checks.values():
        check.fn(seen)


# -- budgets and small cases of the statements -------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes", "dims", "bytes_"),
    [
        ("ring_all_gather", {"x": 4}, {"I": 120, "J": 5}, 1800),
        ("ring_all_gather", {"x": 3}, {"I": 120, "J": 5}, 1600),
        ("ring_reduce_scatter", {"x": 4}, {"I": 120, "J": 4 * 48}, 17_280),
        ("ring_all_reduce", {"x": 4}, {"I": 120, "J": 4 * 48}, 34_560),
        ("ring_all_reduce", {"x": 8}, {"I": 120, "J": 8 * 48}, 40_320),
        ("bidi_all_gather", {"x": 4}, {"I": 120, "J": 5}, 3 * 600),
        ("bidi_all_gather", {"x": 5}, {"I": 120, "J": 5}, 4 * 480),
        ("ring_all_to_all", {"x": 4}, {"I": 120, "J": 240}, 43_200),
        ("rooted_broadcast", {"x": 4}, {"I": 40, "J": 80}, 4800),
        ("rooted_scatter", {"x": 4}, {"I": 40, "J": 80}, 2400),
        ("rooted_gather", {"x": 4}, {"I": 40, "J": 80}, 9600),
        ("rooted_reduce", {"x": 4}, {"I": 40, "J": 80}, 4800),
        ("centre_batch", {"x": 4, "y": 2}, {"B": 12, "I": 8, "J": 10}, 360),
    ],
)
def test_the_small_case_of_a_statement(name: str, sizes: dict, dims: dict, bytes_: int):
    exercise, task = TASKS[name]
    call = next(check.call for check in exercise.checks.values() if check.call.task is task)
    assert isinstance(call, Call)
    seen = looked_at(name, task.fn, Call(task, call.args, call.static, (), {}, dims), sizes)
    assert sum(c.sent * (c.count or 0) for c in seen.collectives) == bytes_


def test_whole_arrays_round_the_ring_differ_from_a_ring_all_reduce():
    """The check of bytes must fail an all-reduce that sends whole arrays. On two devices it could not."""
    exercise, _ = TASKS["ring_all_reduce"]
    check, misconception = exercise.checks["ring_reduce_traffic"], exercise.misconceptions["reduced_whole_arrays"]
    assert isinstance(check.call, Call)
    for sizes in check.call.meshes[:2]:
        with pytest.raises(Failure, match="each device sends"):
            check.fn(looked_at("ring_all_reduce", misconception.fn, check.call, sizes))


def test_a_middle_shard_sent_twice_shows_on_even_rings_only():
    exercise, _ = TASKS["bidi_all_gather"]
    check, misconception = exercise.checks["bidi_gather_traffic"], exercise.misconceptions["bidi_middle_twice"]
    assert isinstance(check.call, Call)
    for sizes in check.call.meshes[:2]:
        seen = looked_at("bidi_all_gather", misconception.fn, check.call, sizes)
        if sizes["x"] % 2:
            check.fn(seen)
        else:
            with pytest.raises(Failure, match="each device sends"):
                check.fn(seen)


def test_devices_are_seen_in_mesh_order():
    mesh = auto_mesh({"x": 4, "y": 2})
    seen = as_seen(jax.device_put(np.arange(8), NamedSharding(mesh, P(("x", "y")))), mesh)
    assert [int(s[0]) for s in seen.shards] == [2 * p["x"] + p["y"] for p in coordinates(seen.mesh)]
