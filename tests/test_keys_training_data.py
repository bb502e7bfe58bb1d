"""The answers of H1, H2, H3 and H8. The tests derive each answer in a second way: they simulate or count.

Bytes and times come from messages moved over wires (``network.py``). A simulation sends buckets one by
one during a backward pass. Other tests count memory chip by chip, and average losses token by token.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from grader.course.exercises import load_exercise
from grader.exercise import Exercise, Question
from grader.hardware import CHIPS, GPUS
from tests import network

SOLUTIONS = Path(__file__).parents[1] / "solutions"
NAMES = ["h1_ddp", "h2_buckets", "h3_zero1", "h8_hsdp"]
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(SOLUTIONS / "08_training" / f"{name}.py", f"keys_of_{name}", "08_training", 0.02)
    for name in NAMES
}
QUESTIONS = {question.name: question for exercise in EXERCISES.values() for question in exercise.questions.values()}
BOTH_WAYS, ONE_WAY = "ring whole", "one_way_ring"


def seconds(collective: str, n: int, size: float, chip: str) -> float:
    return network.moved(collective, BOTH_WAYS, n, size, CHIPS[chip].ici).clock


def sent_by_each(collective: str, n: int, size: float) -> float:
    """Return the bytes that each device sends on a one-way ring: the bytes on all wires, divided by n."""
    return sum(network.moved(collective, ONE_WAY, n, size).sent.values()) / n


# -- simulations -------------------------------------------------------------------------------


def averaged(A: int, B: int, a: float, b: float) -> float:
    """Return the mean loss of A tokens on one device and B tokens on the other. Padding does not count."""
    losses = np.full((2, 512), np.nan)
    losses[0, :A], losses[1, :B] = a, b
    return float(np.nanmean(losses))


def training_flops(parameters: float, tokens: int) -> float:
    """Return the FLOPs of one square layer and its gradients. These are three matmuls over all tokens."""
    width = math.sqrt(parameters)
    forward = 2 * tokens * width * width
    of_weights, of_inputs = 2 * width * tokens * width, 2 * tokens * width * width
    return forward + of_weights + of_inputs


def dealt_out(V: int, D: int, L: int, N: int) -> float:
    """Return the bytes on the fullest of N chips: all weights, and the moments of its parts of all tensors."""
    tensors = [V * D, *[D * D] * 12 * L]
    part = math.gcd(*tensors, 1024)
    moments = [0] * N
    for k, size in itertools.groupby(sorted(tensors)):
        parts = k // part * len(list(size))
        for chip in range(N):
            moments[chip] += (parts // N + (chip < parts % N)) * part
    return 2 * sum(tensors) + max(moments) * 2 * 4


def bare(size: float, speed: float, overhead: float, n: int, backward: float) -> float:
    """Return the exposed seconds of a step with n buckets. A bucket waits for its gradients and for the link."""
    free = 0.0
    for k in range(1, n + 1):
        free = max(free, backward * k / n) + overhead + size / n / speed
    return free - backward


def all_reduce_speed(chip: str) -> float:
    """Return the bytes of an array divided by the seconds of its all-reduce, on a ring of 16 chips."""
    n = 16
    return 1e9 / network.moved("all_reduce", BOTH_WAYS, n, 1e9, CHIPS[chip].ici).clock


def searched(chip: str, M: int, o: int) -> float:
    """Return the bucket size with the least exposed time, by a fine search.

    ``test_the_link_is_never_idle_when_gradients_come_as_fast_as_it_takes_them`` tests the formula of the exposed time.
    """
    size, speed = 2e6 * M, all_reduce_speed(chip)
    buckets = np.geomspace(size / 4000, size, 1_000_001)
    return float(buckets[np.argmin(buckets / speed + size / buckets * o * 1e-6)])


def near_then_far(chip: str, M: int, R: int) -> float:
    """Return the time of reduce-scatters in nodes of 8 GPUs, then of 8 all-reduces that share a node's egress."""
    row, size = GPUS[chip], 2e9 * M
    near = sum(size / 8 for _ in range(7)) / row.egress
    out_of_a_node = sum(sent_by_each("all_reduce", R, size / 8) for _ in range(8))
    assert row.node_egress
    return near + out_of_a_node / row.node_egress


KEYS: dict[str, Callable[..., float]] = {
    "ddp_loss": averaged,
    "ddp_exposed": lambda chip, M, T, N: (
        training_flops(1e6 * M, T) / CHIPS[chip].bf16 + seconds("all_reduce", N, 2e6 * M, chip)
    ),
    "best_bucket": searched,
    "zero1_held": dealt_out,
    "hsdp_time": near_then_far,
}
NEAR = {"best_bucket": 1e-5}  # the search takes relative steps of this size


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question):
    for params in question.variants():
        due = KEYS[question.name](**params)
        assert question(**params) == pytest.approx(due, rel=NEAR.get(question.name, 1e-9)), params


def test_every_second_derivation_has_its_question():
    assert set(KEYS) == set(QUESTIONS)


# -- how large buckets should be ---------------------------------------------------------------

SIZE, SPEED, OVERHEAD = 2e9, 9e10, 5e-5


@pytest.mark.parametrize("n", [1, 2, 7, 40, 300])
def test_the_link_is_never_idle_when_gradients_come_as_fast_as_it_takes_them(n: int):
    found = bare(SIZE, SPEED, OVERHEAD, n, SIZE / SPEED)
    assert found == pytest.approx(SIZE / (n * SPEED) + n * OVERHEAD, rel=1e-9)


def test_the_best_bucket_is_the_root_of_size_and_speed_and_overhead():
    """The exposed time is s/(nw) + no for n buckets (size s, speed w, overhead o). It is at least 2 √(so/w)."""
    best = math.sqrt(SIZE / (SPEED * OVERHEAD))
    bound = 2 * math.sqrt(SIZE * OVERHEAD / SPEED)
    sums = {n: bare(SIZE, SPEED, OVERHEAD, n, SIZE / SPEED) for n in range(1, 200)}
    assert all(found >= bound * (1 - 1e-12) for found in sums.values())
    least = min(sums, key=sums.__getitem__)
    assert least in (math.floor(best), math.ceil(best))
    assert sums[least] == pytest.approx(bound, rel=1e-3)
    assert SIZE / best == pytest.approx(math.sqrt(SIZE * SPEED * OVERHEAD))


@pytest.mark.parametrize("n", [1, 5, 60])
def test_a_faster_backward_pass_keeps_the_link_busy_after_its_first_bucket(n: int):
    backward = SIZE / SPEED / 3
    found = bare(SIZE, SPEED, OVERHEAD, n, backward) + backward
    assert found == pytest.approx(backward / n + SIZE / SPEED + n * OVERHEAD, rel=1e-9)


@pytest.mark.parametrize("n", [1, 5, 60])
def test_after_a_much_slower_backward_pass_only_the_last_bucket_is_bare(n: int):
    backward = 2 * (SIZE / SPEED + n * OVERHEAD)
    assert bare(SIZE, SPEED, OVERHEAD, n, backward) == pytest.approx(OVERHEAD + SIZE / (n * SPEED), rel=1e-9)


# -- small cases of the statements -------------------------------------------------------------


def test_the_buckets_of_the_statement():
    tensors = [["embed", 40, True], ["norm", 8, False], ["w1", 30, True], ["w2", 20, True], ["embed", 40, True]]
    buckets = EXERCISES["h2_buckets"].tasks["buckets"].fn
    assert buckets(tensors=tensors, cap=50) == [["w2", "w1"], ["embed"]]


def test_the_padding_of_the_statement():
    """The statement's example: three devices have 3, 1 and 0 rows without padding, with sums 6, 8 and 0."""
    sums, counts = np.array([6, 8, 0]), np.array([3, 1, 0])
    assert sums.sum() / counts.sum() == 3.5
    assert np.mean(sums[:2] / counts[:2]) == 5


@pytest.mark.parametrize(
    ("collective", "n", "size", "sent"),
    [
        ("all_reduce", 4, 4 * (6 * 16 + 16 * 3), 864),
        ("reduce_scatter", 4, 4 * 132, 396),
        ("all_gather", 4, 4 * 24 * 5, 360),
        ("all_reduce", 2, 4 * 24 * 5 / 4, 120),
        ("all_reduce", 8, 4 * 24 * 5, 840),
    ],
)
def test_the_small_case_of_a_statement(collective: str, n: int, size: float, sent: int):
    assert sent_by_each(collective, n, size) == pytest.approx(sent)
