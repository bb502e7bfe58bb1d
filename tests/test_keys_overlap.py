"""The answers of module 06. The tests derive each answer in a second way.

In the answers, a round takes as long as the longer of its hop and its matmul. The tests simulate when the core and the link are busy in each
round. Bytes and hops come from messages moved over wires (``network.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from grader.course.exercises import load_exercise
from grader.exercise import Exercise, Question
from grader.hardware import CHIPS
from tests import network
from tests.meshes import abstract_mesh

SOLUTIONS = Path(__file__).parents[1] / "solutions"
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(SOLUTIONS / "06_overlap" / f"{name}.py", f"keys_of_{name}", "06_overlap", 0.02)
    for name in ("f1_ag_matmul", "f2_matmul_rs", "f3_both_ways")
}
QUESTIONS = {question.name: question for exercise in EXERCISES.values() for question in exercise.questions.values()}
TASKS = {task.name: (task.fn, exercise) for exercise in EXERCISES.values() for task in exercise.tasks.values()}


# -- answers -----------------------------------------------------------------------------------


def gathered(how: str, n: int, size: float, chip: str = "v5p") -> network.Network:
    """Return a network after the gather of an array of ``size`` bytes."""
    net = network.Network(CHIPS[chip].ici)
    network.all_gather(net, how, n, size)
    return net


def sent_forwards(net: network.Network) -> float:
    return net.sent["+", 0]


def local_flops(rows: int, summed: int, columns: int) -> float:
    """Return the FLOPs of a local matmul: XLA's count for a small matmul, scaled to these sizes."""
    small = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((2, 4), (4, 8))]
    counted = jax.jit(jnp.matmul).lower(*small).compile().cost_analysis()["flops"]  # type: ignore[index]
    return counted / (2 * 4 * 8) * rows * summed * columns


def hop_and_matmul(chip: str, B: int, D: int, F: int, Y: int) -> tuple[float, float]:
    """Return the seconds of a one-way hop of bfloat16[B, D/Y], and of the local matmul. For F2, D and F are swapped."""
    net = gathered("one_way_ring", Y, 2 * B * D, chip)
    return net.clock / net.steps, local_flops(B, D, F) / Y / Y / CHIPS[chip].bf16


def gather_ring(n: int, hop: float, matmul: float) -> float:
    """Return the time at which the last matmul ends. An operand is sent on as soon as it has arrived."""
    core = link = arrived = 0.0
    for r in range(n):
        core = max(core, arrived) + matmul
        if r < n - 1:
            link = max(link, arrived) + hop
            arrived = link
    return core


def scatter_ring(n: int, hop: float, matmul: float) -> float:
    """Return the time at which the last sum is complete. A hop waits for the sum that it sends; matmuls never wait."""
    core = matmul
    total = core
    for _ in range(n - 1):
        arrived = total + hop
        core += matmul
        total = max(arrived, core)
    return total


def bound(holds: Callable[[float], bool]) -> float:
    """Return the smallest number for which ``holds`` is true. ``holds`` must also be true for all larger numbers."""
    low, high = 0.0, 1e9
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def hides(chip: str, Y: float, F: float, itemsize: float, rows: int = 1000, columns: int = 64) -> bool:
    """Return whether a hop of [rows, columns] takes no longer than the matmul that makes or uses this array."""
    hop = rows * columns * itemsize / CHIPS[chip].ici
    return hop <= local_flops(rows, columns, 1) * F / Y / CHIPS[chip].bf16


def scatter_saved(chip: str, B: int, F: int, G: int, D: int, Y: int) -> float:
    saved = 0.0
    for summed in (F, G):
        hop, matmul = hop_and_matmul(chip, B, D, summed, Y)
        net = network.Network(CHIPS[chip].ici)
        network.reduce_scatter(net, "ring", Y, 2 * B * D)
        saved += Y * matmul + net.clock - scatter_ring(Y, hop, matmul)
    return saved


def both_ways_saved(chip: str, B: int, D: int, F: int, G: int, Y: int) -> float:
    times = [hop_and_matmul(chip, B, D, columns, Y) for columns in (F, G)]
    return sum(gather_ring(Y, hop, matmul) - gather_ring(Y, hop / 2, matmul) for hop, matmul in times)


def halves_one_direction(B: int, D: int, X: int, Y: int) -> float:
    """Return the bytes sent forwards. Half of each shard goes forwards, as in a one-way ring of half the array."""
    return sent_forwards(gathered("one_way_ring", Y, 2 * (B // X) * D / 2))


KEYS: dict[str, Callable[..., float]] = {
    "ag_matmul_bytes": lambda B, D, X, Y: sent_forwards(gathered("one_way_ring", Y, 2 * (B // X) * D)),
    "ag_matmul_overlaps_from": lambda chip, Y: bound(lambda F: hides(chip, Y, F, 2)),
    "ag_matmul_time": lambda chip, B, D, F, G, Y: sum(
        gather_ring(Y, *hop_and_matmul(chip, B, D, columns, Y)) for columns in (F, G)
    ),
    "matmul_rs_bytes": lambda B, F, D, X, Y: sent_forwards(gathered("one_way_ring", Y, 4 * (B // X) * D)),
    "matmul_rs_overlaps_from": lambda chip, Y: bound(lambda F: hides(chip, Y, F, 4)),
    "matmul_rs_time_saved": scatter_saved,
    "both_ways_bytes": halves_one_direction,
    "both_ways_most_chips": lambda chip, N: 20 * N / bound(lambda columns: hides(chip, 1, columns, 2 / 2)),
    "both_ways_time_saved": both_ways_saved,
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question) -> None:
    for params in question.variants():
        assert question(**params) == pytest.approx(KEYS[question.name](**params), rel=1e-6), params


def test_every_second_derivation_has_its_question() -> None:
    assert set(KEYS) == set(QUESTIONS)


# -- claims of the statements ------------------------------------------------------------------


def body(task: str, sizes: dict[str, int], mesh: jax.sharding.Mesh | AbstractMesh) -> Callable:
    scatters = task.endswith("_rs")
    specs = (P("x", "y"), P("y", None)) if scatters else (P("x", "y"), P(None, "y"))
    return jax.shard_map(TASKS[task][0], mesh=mesh, in_specs=specs, out_specs=P("x", "y"), check_vma=False)


def permutes(task: str, sizes: dict[str, int], left: tuple[int, int], right: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the bytes and the direction (1 or -1) of each permute of a solution."""
    fn = body(task, sizes, abstract_mesh(sizes))
    traced = jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in (left, right)))
    (inner,) = [e.params["jaxpr"] for e in traced.eqns if "shard_map" in e.primitive.name]
    hops = [e for e in inner.eqns if e.primitive.name == "ppermute"]
    ways = [1 if dict(e.params["perm"])[0] == 1 else -1 for e in hops]
    return [(math.prod(e.invars[0].aval.shape) * 4, way) for e, way in zip(hops, ways, strict=True)]


@pytest.mark.parametrize(
    ("task", "left", "right", "forth", "back"),
    [
        ("ag_matmul", (10, 60), (60, 84), [300] * 3, []),
        ("matmul_rs", (10, 84), (84, 60), [300] * 3, []),
        ("both_ways_ag_matmul", (12, 60), (60, 84), [180] * 3, [180] * 3),
        ("both_ways_matmul_rs", (12, 84), (84, 60), [180] * 3, [180] * 3),
    ],
)
def test_the_small_case_of_a_statement(task: str, left: tuple, right: tuple, forth: list, back: list) -> None:
    hops = permutes(task, {"x": 2, "y": 4}, left, right)
    assert [size for size, way in hops if way == 1] == forth
    assert [size for size, way in hops if way == -1] == back


@pytest.mark.parametrize("task", TASKS)
def test_a_solution_is_right_on_a_ring_of_five(task: str) -> None:
    """The test uses sizes and a ring that no call of the course has."""
    sizes = {"x": 1, "y": 5}
    devices = np.array(jax.devices()[:5]).reshape(1, 5)
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(7, 15)), rng.normal(size=(15, 35))
    found = jax.jit(body(task, sizes, jax.sharding.Mesh(devices, ("x", "y"))))(jnp.asarray(left, jnp.float32), right)
    np.testing.assert_allclose(np.asarray(found), left @ right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ring", [gather_ring, scatter_ring])
def test_a_round_takes_the_longer_of_hop_and_matmul(ring: Callable[[int, float, float], float]) -> None:
    assert ring(8, 3.0, 5.0) == pytest.approx(7 * 5 + 5)
    assert ring(8, 5.0, 3.0) == pytest.approx(7 * 5 + 3)


def test_one_way_round_gathering_first_is_faster_where_hops_are_more_than_twice_as_long() -> None:
    """This is a claim of F1's statement. A gather that uses both directions takes the time of (N - 1) / 2 hops."""
    first = lambda n, hop, matmul: (n - 1) * hop / 2 + n * matmul  # noqa: E731
    assert gather_ring(8, 2.1, 1.0) > first(8, 2.1, 1.0)
    assert gather_ring(8, 1.9, 1.0) < first(8, 1.9, 1.0)
