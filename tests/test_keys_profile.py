"""The answers of L2. The tests derive each answer in a second way.

The tests simulate rings hop by hop, and a device's queue call by call. The spread of run times is their standard
deviation.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.course.exercises import load_exercise
from grader.exercise import Cases
from tests import network

PATH = Path(__file__).parents[1] / "solutions/12_predict_profile/l2_predict_profile.py"
EXERCISE = load_exercise(PATH, "keys_of_l2", "12_predict_profile", 0.02)
TASKS: dict[str, Any] = {task.name: task.fn for task in EXERCISE.tasks.values()}


def ring(kinds: list[Any], N: int, size: float, alpha: float, beta: float) -> float:
    """Return the seconds of collectives in sequence on a one-way ring: α for each step, plus the time of the wires."""
    total = 0.0
    for kind in kinds:
        net = network.Network(beta)
        kind(net, "one_way_ring", N, size)
        total += net.steps * alpha + net.clock
    return total


def bisect(share: Any, low: float, high: float) -> float:
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if share(middle) else (low, middle)
    return low


def time_without_compiling(R: int, L: int, mean: float, std: float) -> float:
    """Return the mean time without the run that compiled. Only this run is slower, by as much as ``std`` requires."""
    odd = np.array([1.0] + [0.0] * (R - 1))
    slower = std / odd.std()
    return float(mean - slower * odd.mean()) * 1e-3


def all_reduce_predicted(N: int, a: float, b: float, V: float) -> float:
    return ring([network.reduce_scatter, network.all_gather], N, V * 1e6, a * 1e-6, b * 1e9)


def latency_small_from(N: int, a: float, b: float, p: float) -> float:
    """Return the size below which the steps' α takes more than p % of a gather's time, by bisection."""
    hops = ring([network.all_gather], N, 1e-9, a * 1e-6, b * 1e9)
    return bisect(lambda V: hops > p / 100 * ring([network.all_gather], N, V, a * 1e-6, b * 1e9), 1.0, 1e12)


KEYS = {
    "time_without_compiling": time_without_compiling,
    "all_reduce_predicted": all_reduce_predicted,
    "latency_small_from": latency_small_from,
}


@pytest.mark.parametrize("question", EXERCISE.questions.values(), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Any):
    for params in list(question.variants())[::5]:
        assert question(**params) == pytest.approx(KEYS[question.name](**params)), params


@pytest.mark.parametrize(("mean", "slowest", "due"), [(27.9, 10.40, 9.8), (21.4, 29.52, 3.3)])
def test_a_notebooks_spread_is_that_of_one_call_that_compiled(mean: float, slowest: float, due: float):
    """The notebook MinText 1 times 5 runs of 5 loops in cells 23 and 24. Both report a standard deviation of 36.2 ms.

    It reports that "the slowest run took 10.40 (29.52) times longer than the fastest". One run that compiled explains
    both: a call takes 9.8 ms (3.3 ms), and compilation 0.45 s. So four devices are 3 times as fast, not 1.3 times.
    """
    call = time_without_compiling(5, 5, mean, 36.2) * 1e3
    assert call == pytest.approx(due, abs=0.05)
    slower = 5 * (mean - call)
    assert np.std([call + slower, *[call] * 4]) == pytest.approx(36.2)
    assert (call + slower) / call == pytest.approx(slowest, rel=0.05)  # the given mean and spread are rounded
    assert slower * 5 == pytest.approx(452, abs=1)  # a run has 5 loops


@pytest.mark.parametrize("N", [2, 3, 5, 8])
def test_a_line_through_simulated_gathers_gives_back_the_ring(N: int):
    sizes = [N * 1000 * k for k in (1, 2, 5, 9)]
    measured = [(V, [ring([network.all_gather], N, V, 3e-6, 4e9)] * 3) for V in sizes]
    assert TASKS["fit"](measured, N) == pytest.approx((3e-6, 4e9))


def test_only_a_fit_of_all_sizes_gives_the_expected_line():
    """A line through the first and last point is off by over 5 %. A fit with weights 1/time is off by up to 3 %."""

    def off(one: tuple[float, float], other: tuple[float, float]) -> float:
        return max(abs(a / b - 1) for a, b in zip(one, other, strict=True))

    [cases] = EXERCISE.checks["fitted"].calls
    assert isinstance(cases, Cases) and cases.hidden is not None
    ends, weighed = [], []
    for seed in range(10):
        for case in cases.hidden(np.random.default_rng(seed)):
            measured, N = case["measured"], case["devices"]
            if len(measured) < 2:
                continue
            due, x = TASKS["fit"](**case), np.array([size * (N - 1) / N for size, _ in measured])
            took = np.array([np.median(seconds) for _, seconds in measured])
            slope, start = np.polyfit(x, took, 1, w=1 / took)
            weighed.append(off((start / (N - 1), 1 / slope), due))
            ends.append(off(TASKS["fit"]([measured[0], measured[-1]], N), due))
    assert sum(one > 0.06 for one in ends) == 10 * 3
    assert max(weighed) < 0.03


@pytest.mark.parametrize("seed", range(20))
def test_durations_are_those_of_calls_that_had_a_device_for_themselves(seed: int):
    """The test simulates a device and its queue. So it knows which calls waited or compiled, and the bytes of each."""
    rng = random.Random(seed)
    log, due = [], {}
    now, queue, compiled = 0.0, [], set()
    for _ in range(40):
        size, cut = rng.choice([10, 20, 30]), rng.random() < 0.7
        if rng.random() < 0.6:
            now = max([now, *queue])  # block_until_ready
        called, idle = now, all(end <= now for end in queue)
        fresh = (size, cut) not in compiled
        compiled.add((size, cut))
        now += 5.0 if fresh else 0.1
        end = max([now, *queue]) + (size / 10 if cut else 0.05)
        queue.append(end)
        log.append({"bytes": size, "cut": cut, "called": called, "returned": now, "ready": end})
        if idle and cut and not fresh:
            due.setdefault(size, []).append(end - called)
        if rng.random() < 0.2:
            now += rng.random() * 3
    assert TASKS["durations"](log) == sorted(due.items()) and due
