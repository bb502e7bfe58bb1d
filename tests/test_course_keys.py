"""The answers of modules 01 to 03. The tests derive each answer in a second way."""

from __future__ import annotations

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.common.layout import owner_slices
from grader.course.loading import load_course
from grader.course.sources import read_sources
from grader.exercise import Cases, Exercise, Question
from grader.hardware import CHIPS
from tests.meshes import abstract_mesh

COURSE = load_course(Path(__file__).parents[1] / "course.yaml")


def cases_of(exercise: Exercise, check: str) -> list[dict]:
    cases = exercise.checks[check].call
    assert isinstance(cases, Cases) and cases.hidden is not None
    return [*cases.public, *cases.hidden(np.random.default_rng(0))]


def blocks(shape: tuple[int, ...], spec: tuple, mesh: dict[str, int]) -> list[tuple[int, ...]]:
    """Return the shape of each device's block of an array, from the slices that the device owns."""
    return [tuple(stop - start for start, stop in where) for where in owner_slices(shape, spec, mesh)]


def ring_seconds(size: float, n: int, chip: str) -> float:
    """Return the time of an all-gather of whole shards on an even ring, step by step, in both directions."""
    assert n % 2 == 0
    return sum(size / n / CHIPS[chip].ici for _ in range(n // 2))


def wire_bytes_of_all_to_all(size: float, n: int) -> float:
    """Return the bytes on device 0's clockwise wire. Half of the opposite device's chunk moves in each direction."""
    chunk, load = size / n**2, 0.0
    for source in range(n):
        for distance in range(1, n // 2 + 1):
            passes = any((source + hop) % n == 0 for hop in range(distance))
            load += passes * chunk * (0.5 if 2 * distance == n else 1)
    return load


def all_reduce_sends(size: float, n: int) -> float:
    """Return the bytes that one device sends in a ring all-reduce: in each of two passes, all chunks except one."""
    reduce_scatter = sum(size / n for chunk in range(n) if chunk != 0)
    all_gather = sum(size / n for chunk in range(n) if chunk != 1)
    return reduce_scatter + all_gather


@pytest.mark.parametrize("check", ["local_shape_axes", "local_shape_tuples"])
def test_local_shape_agrees_with_jax(check):
    exercise = COURSE.exercise("a1_local_shape")
    for case in cases_of(exercise, check):
        mesh = abstract_mesh(case["mesh_shape"])
        assert exercise.tasks["local_shape"](**case) == NamedSharding(mesh, case["spec"]).shard_shape(case["shape"])


def test_local_shape_refuses_what_jax_refuses():
    exercise = COURSE.exercise("a1_local_shape")
    for case in cases_of(exercise, "local_shape_uneven"):
        mesh = abstract_mesh(case["mesh_shape"])
        with pytest.raises(ValueError):
            NamedSharding(mesh, case["spec"]).shard_shape(case["shape"])
        with pytest.raises(ValueError):
            exercise.tasks["local_shape"](**case)


@pytest.mark.parametrize("check", ["memory_spread", "memory_dtypes", "memory_copies"])
def test_memory_is_the_sum_of_what_the_devices_hold(check):
    exercise = COURSE.exercise("a2_memory")
    for case in cases_of(exercise, check):
        held = [math.prod(block) for block in blocks(case["shape"], case["spec"], case["mesh_shape"])]
        size = jnp.zeros((), case["dtype"]).nbytes
        assert exercise.tasks["memory"](**case) == (held[0] * size, sum(held) * size)


@pytest.mark.parametrize("check", ["choose_small_batch", "choose_large_batch"])
def test_choose_follows_the_crossovers_on_paper(check):
    """The faster plan does not depend on F. Below B = C/W, communication limits both plans: 2·D·F against 4·B·F bytes.

    Above, compute limits the first plan.
    """
    exercise = COURSE.exercise("c5_choose")
    cases = cases_of(exercise, check)
    for case in cases:
        crossover = 2 * min(case["B"], case["flops"] / case["bandwidth"])
        assert not crossover / 1.05 < case["D"] < crossover * 1.05, "a near tie"
        assert exercise.tasks["choose"](**case) == (1 if case["D"] < crossover else 2)
    assert {exercise.tasks["choose"](**case) for case in cases} == {1, 2}


KEYS = {
    "local_load_time": lambda chip, I, J, X, Y, Z: (
        4 * math.prod(blocks((I, J), (("x", "y"),), {"x": X, "y": Y, "z": Z})[0]) / CHIPS[chip].hbm_bw
    ),
    "weights_in_all": lambda I, J, X, Y, Z: sum(
        2 * math.prod(block) for block in blocks((I, J), ("x",), {"x": X, "y": Y, "z": Z})
    ),
    "placed_and_unplaced": lambda I, J, X, Y: sum(
        2 * math.prod(block)
        for spec, mesh in (((), {}), ((), {"x": X, "y": Y}))
        for block in blocks((I, J), spec, mesh)
    ),
    "all_to_all_on_ring": lambda chip, I, J, X: wire_bytes_of_all_to_all(2 * I * J, X) / CHIPS[chip].ici,
    "flops_per_device": lambda I, J, K, X, Y, Z: (
        2 * J * math.prod(blocks((I, K), ("x", "y"), {"x": X, "y": Y, "z": Z})[0])
    ),
    "gather_first_time": lambda chip, I, J, K, X: ring_seconds(2 * I * J, X, chip),
    "slice_first_time": lambda chip, I, J, K, X: 2 * ring_seconds(2 * I * K, X, chip),
    "scatter_time": lambda chip, I, K, X: ring_seconds(2 * I * K, X, chip),
    "all_reduce_bytes": lambda I, K, X: all_reduce_sends(4 * I * K, X),
    "cheaper_gather_time": lambda chip, I, J, K, X: min(ring_seconds(2 * n * J, X, chip) for n in (I, K)),
    "gather_first_total": lambda chip, B, L, D, F, X: sum(
        max(2 * b * D * F / CHIPS[chip].bf16, ring_seconds(2 * D * F, X, chip)) for b in (B, L)
    ),
    "reduce_last_total": lambda chip, B, D, F, X: (
        max(2 * B * (D / X) * F / CHIPS[chip].bf16, 2 * ring_seconds(2 * B * F, X, chip))
        + max(2 * B * (F / X) * D / CHIPS[chip].bf16, 2 * ring_seconds(2 * B * D, X, chip))
    ),
}
QUESTIONS = {
    question.name: question
    for module in ("01_layout", "02_collectives", "03_matmuls")
    for exercise in COURSE.module(module).exercises
    for question in COURSE.exercise(exercise).questions.values()
}


@pytest.mark.parametrize("question", [q for q in QUESTIONS.values() if q.name in KEYS], ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question):
    for params in question.variants():
        assert question(**params) == pytest.approx(KEYS[question.name](**params), rel=1e-9), params


def test_every_second_derivation_has_its_question():
    assert set(KEYS) <= set(QUESTIONS)


def test_an_array_without_a_sharding_is_on_one_device(devices: int):
    host = np.ones((4, 6), np.float32)
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    assert len(jnp.asarray(host).devices()) == 1
    assert len(jax.device_put(host, NamedSharding(mesh, P())).devices()) == devices


def test_the_table_of_readers_comments_has_30_rows() -> None:
    readers, *_ = read_sources(COURSE)
    assert len(readers.items) == 30
