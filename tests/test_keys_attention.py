"""The answers of J1 to J4. The tests derive each answer in a second way."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from grader.common.layout import owner_slices
from grader.course.exercises import load_exercise
from grader.exercise import Exercise
from grader.hardware import CHIPS

SOLUTIONS = Path(__file__).parents[1] / "solutions" / "10_experts_attention"
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(SOLUTIONS / f"{name}.py", name, "10_experts_attention", 0.02)
    for name in ("j1_moe", "j2_ring_attention", "j3_ulysses", "j4_decode")
}
QUESTIONS = {q.name: q for exercise in EXERCISES.values() for q in exercise.questions.values()}


def numbers_on_device(shape: tuple[int, ...], spec: tuple, mesh: dict[str, int]) -> int:
    """Return how many elements of an array device 0 holds, from the slices that device 0 owns."""
    size = 1
    for start, stop in owner_slices(shape, spec, mesh)[0]:
        size *= stop - start
    return size


def cache_seconds(chip: str, B: int, S: int, X: int) -> float:
    mesh = {"z": 4, "x": X, "y": 4}
    return sum(2 * numbers_on_device((B, S, 8, 128), ("z", "x", "y"), mesh) for _ in "kv") / CHIPS[chip].hbm_bw


def all_reduce_seconds(size: float, n: int, chip: str) -> float:
    """Return the time of an all-reduce on an even ring: a reduce-scatter and an all-gather, each of n / 2 steps."""
    return sum(size / n / CHIPS[chip].ici for _ in range(2) for _ in range(n // 2))


def wire_seconds(size: float, n: int, chip: str) -> float:
    """Return the time that an all-to-all's busiest wire needs. Chunks for opposite devices use both directions."""
    load: dict[tuple[int, int], float] = dict.fromkeys(itertools.product(range(n), (1, -1)), 0.0)
    for source, target in itertools.permutations(range(n), 2):
        right = (target - source) % n
        for step, share in (
            (1, 0.5 if 2 * right == n else right < n / 2),
            (-1, 0.5 if 2 * right == n else right > n / 2),
        ):
            for hop in range(right if step == 1 else n - right):
                load[(source + step * hop) % n, step] += share * size / n**2
    return max(load.values()) / CHIPS[chip].ici


def rows_that_hide(chip: str, N: int, Q: int) -> float:
    """Return the sequence length at which a round's matmuls take as long as its permute, by bisection."""
    low, high = 1.0, 1e7
    while high / low > 1 + 1e-12:
        rows = (low * high) ** 0.5
        hop = sum(2 * rows * 8 * 128 for _ in "kv") / CHIPS[chip].ici
        matmuls = sum(2 * rows * 128 * rows * Q for _ in ("q k", "w v")) / CHIPS[chip].bf16
        low, high = (rows, high) if matmuls < hop else (low, rows)
    return N * low


def rounds_seconds(chip: str, places: list[range], H: int) -> float:
    """Return the time of causal ring attention. A round takes the time of the device with the most pairs to compute."""
    n, pairs = len(places), 0
    for hop in range(n):
        pairs += max(seen_pairs(places[me], places[(me - hop) % n]) for me in range(n))
    return pairs * H * (2 * 128 + 2 * 128) / CHIPS[chip].bf16


def seen_pairs(queries: range, keys: range) -> int:
    """Return the number of pairs (query, key) that the causal mask keeps."""
    return int(np.clip((np.array(queries) - keys.start) // keys.step + 1, 0, len(keys)).sum())


def stripes_gain(chip: str, T: int, N: int, H: int) -> float:
    blocks = [range(i * T // N, (i + 1) * T // N) for i in range(N)]
    stripes = [range(i, T, N) for i in range(N)]
    return rounds_seconds(chip, blocks, H) - rounds_seconds(chip, stripes, H)


def slots_sent(S: int, D: int, k: int, room: int, N: int) -> float:
    """Return the bytes that device 0 sends: its rows to the experts of other devices, and results for their rows."""
    experts, cap = 128, S * k * room / 100 / 128
    owner = [e * N // experts for e in range(experts)]
    there = sum(cap * D * 2 for e in range(experts) if owner[e] != 0)
    home = sum(cap * D * 2 for _ in range(1, N) for e in range(experts) if owner[e] == 0)
    return there + home


def width_that_overlaps(chip: str, N: int, matrices: int) -> float:
    """Return the F at which the matmuls take as long as the two all-to-alls. Their time is that of the busiest wire."""
    rows, D = 1000, 512
    exchanges = sum(wire_seconds(2 * N * rows * D, N, chip) for _ in ("there", "back"))
    for_one_column = sum(2 * rows * D for _ in range(matrices)) / CHIPS[chip].bf16
    return exchanges / for_one_column


KEYS = {
    "moe_bytes": slots_sent,
    "moe_overlaps_from": width_that_overlaps,
    "ring_overlaps_from": rows_that_hide,
    "stripes_save": stripes_gain,
    "cache_read_time": cache_seconds,
    "merge_time": lambda chip, B, X: all_reduce_seconds(4 * (B * 64 * 32 + B * 64), X, chip),
    "ulysses_bytes": lambda B, T, N: sum(
        2 * numbers_on_device((B, T, heads, 128), (None, "x"), {"x": N}) * (N - 1) / N for heads in (48, 16, 16, 48)
    ),
    "ulysses_time": lambda chip, B, T, N: sum(
        wire_seconds(2 * B * T * heads * 128, N, chip) for heads in (48, 16, 16, 48)
    ),
}


@pytest.mark.parametrize("name", KEYS)
def test_answer_agrees_with_a_second_derivation(name: str) -> None:
    for params in QUESTIONS[name].variants():
        assert QUESTIONS[name](**params) == pytest.approx(KEYS[name](**params), rel=1e-9), params


def test_every_question_has_its_second_derivation() -> None:
    assert set(KEYS) == set(QUESTIONS)
