"""Measure how similar two programs are in their communication, matmuls and results."""

from __future__ import annotations

import numpy as np

from grader.common.observation import Collective, Observation, Outcome
from grader.judging.likeness import Pairs, likeness, shared_traffic
from grader.judging.seen import Finding
from tests.seen import collective, finding, sharded

GATHER, REDUCE = collective("all_gather", "x"), collective("all_reduce", "x")


def program(*sent: Collective, factor: float = 1.0) -> Observation:
    return Observation([[sharded(factor * np.arange(8.0), ("x",), {"x": 4}, "float32")]], list(sent), 0)


def pairs(one: Observation, other: Observation) -> Pairs:
    return [(Finding(one), Finding(other))]


def test_collectives_and_results_are_compared_separately() -> None:
    assert likeness(pairs(program(GATHER), program(GATHER))) == (True, True, True)
    assert likeness(pairs(program(GATHER), program(REDUCE))) == (False, True, True)
    assert likeness(pairs(program(GATHER), program(GATHER, factor=2.0))) == (True, True, False)


def test_a_collective_in_a_loop_equals_as_many_collectives_without_a_loop() -> None:
    three, unknown = collective("all_gather", "x", count=3), collective("all_gather", "x", count=None)
    assert likeness(pairs(program(three), program(GATHER, GATHER, GATHER)))[0]
    assert not likeness(pairs(program(three), program(GATHER, GATHER)))[0]
    assert shared_traffic(pairs(program(three), program(GATHER))) == 0.5
    assert likeness(pairs(program(unknown), program(unknown)))[0]
    assert not likeness(pairs(program(unknown), program(GATHER)))[0]
    assert shared_traffic(pairs(program(unknown), program(unknown, GATHER))) == 2 / 3


def test_plain_functions_are_compared_by_their_outcomes() -> None:
    assert likeness([(finding([Outcome(value=1)]), finding([Outcome(value=1)]))]) == (True, True, True)
    assert likeness([(finding([Outcome(value=1)]), finding([Outcome(value=2)]))]) == (True, True, False)


def test_shared_traffic_is_the_fraction_of_collectives_in_both_programs() -> None:
    assert shared_traffic(pairs(program(GATHER, REDUCE), program(REDUCE, GATHER))) == 1
    assert shared_traffic(pairs(program(GATHER, GATHER), program(GATHER, REDUCE))) == 0.5
    assert shared_traffic(pairs(program(GATHER), program(REDUCE))) == 0
    assert shared_traffic(pairs(program(), program())) == 1
