"""What wrong values look like: each guess, and silence where none fits."""

from __future__ import annotations

import numpy as np

from grader.diagnose import explain
from tests.seen import sharded

RNG = np.random.default_rng(1)
A = RNG.standard_normal((8, 8))
BOUND = 1e-4


def test_a_factor_that_is_an_axis_size_is_named() -> None:
    assert explain(sharded(4 * A), A, BOUND) == (
        "; every value is 4 times too large, the size of axis x: is it summed once too often?"
    )
    assert explain(sharded(A / 2), A, BOUND) == (
        "; every value is 2 times too small, the size of axis y: a mean instead of a sum?"
    )
    assert explain(sharded(3 * A), A, BOUND) == "; every value is 3 times the expected one"


def test_zeros_and_nan_are_named() -> None:
    assert explain(sharded(0 * A), A, BOUND) == "; every value is zero"
    assert explain(sharded(A * np.nan), A, BOUND) == "; there are NaN or infinite values"


def test_partial_sums_are_recognised() -> None:
    got = sharded(A)
    parts = RNG.standard_normal((3, 8, 8))
    pieces = [*parts, A - parts.sum(0)]
    for device in range(8):
        got.shards[device] = pieces[device // 2].astype("float32")
    assert explain(got, A, BOUND) == (
        "; each device holds only a partial sum: together, over axis x, they add up to the result"
    )


def test_replicas_that_differ_are_named() -> None:
    got = sharded(A)
    got.shards[1] = got.shards[1] + 1
    assert "devices (x=0, y=0) and (x=0, y=1) should hold the same values but differ: axis y" in explain(got, A, BOUND)


def test_a_transpose_is_recognised() -> None:
    assert explain(sharded(A.T), A, BOUND) == "; it is the transpose"


def test_a_shard_that_belongs_elsewhere_is_named() -> None:
    rolled = np.roll(A, -2, axis=0)
    assert explain(sharded(rolled, ("x", None)), A, BOUND) == "; device (x=0, y=0) holds rows 2:4, expected rows 0:2"


def test_noise_is_not_explained() -> None:
    assert explain(sharded(RNG.standard_normal((8, 8)), ("x", None)), A, BOUND) == ""
