"""Simulate rings hop by hop, and compare the times with those that ``profile`` predicts."""

from __future__ import annotations

import pytest

from grader.wings.predict.cases import CASES, TimeModel
from tests import network
from tests.test_keys_profile import ring


@pytest.mark.parametrize("N", [2, 4, 8])
def test_predicted_times_equal_those_of_a_simulated_ring(N: int):
    rounds = {"all_gather": [network.all_gather], "all_reduce": [network.reduce_scatter, network.all_gather]}
    for case in CASES:
        if case.program == "matmul":
            rows = case.size // N
            assert case.seconds(TimeModel(1, 1, 7.0), N) == 2 * rows * case.size * case.size / 7
        else:
            due = ring(rounds[case.program], N, case.size, 2e-6, 3e9)
            assert case.seconds(TimeModel(2e-6, 3e9, 1), N) == pytest.approx(due)
