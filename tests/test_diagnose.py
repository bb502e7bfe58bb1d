"""What wrong values look like: each guess, and silence where none fits."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(["scaled", "zero", "nan", "rolled", "transposed", "noise", "replica"]))
def test_no_expected_value_is_told(seed: int, kind: str) -> None:
    """Numbers in a guess are sizes, places and ratios."""
    rng = np.random.default_rng(seed)
    want = rng.uniform(1000, 9000, (8, 8))
    wrong = {
        "scaled": 4 * want, "zero": 0 * want, "nan": want * np.nan, "rolled": np.roll(want, 2, 0),
        "transposed": want.T, "noise": rng.uniform(1000, 9000, (8, 8)), "replica": want,
    }[kind]  # fmt: skip
    got = sharded(wrong, ("x",))
    if kind == "replica":
        got.shards[1] = got.shards[1] + 5
    told = explain(got, want, 0.1)
    assert bool(told) == (kind != "noise")
    assert all(float(n) < 100 for n in re.findall(r"\d+(?:\.\d+)?", told))


@pytest.mark.parametrize("spec", [(), ("x",), (None, ("x", "y"))])
def test_a_single_wrong_element_is_not_explained(spec: tuple) -> None:
    wrong = A.copy()
    wrong[3, 5] += 1
    assert explain(sharded(wrong, spec), A, BOUND) == ""


def test_a_negative_factor_is_told() -> None:
    assert explain(sharded(-A), A, BOUND) == "; every value is -1 times the expected one"


def test_the_size_of_an_axis_of_1_is_no_explanation() -> None:
    mesh = {"x": 8, "y": 1}
    assert "axis x" in explain(sharded(8 * A, (), mesh), A, BOUND)
    assert "axis" not in explain(sharded(4 * A, (), mesh), A, BOUND)


def test_one_nan_is_enough_to_be_named() -> None:
    got = sharded(A)
    got.shards[7][2, 2] = np.nan
    assert explain(got, A, BOUND) == "; there are NaN or infinite values"


def test_partial_sums_over_the_second_axis_are_recognised() -> None:
    got = sharded(A, ("x",))
    rest = RNG.standard_normal((8, 8))
    for device in range(8):
        rows = slice(2 * (device // 2), 2 * (device // 2) + 2)
        got.shards[device] = (rest[rows] if device % 2 else A[rows] - rest[rows]).astype("float32")
    assert explain(got, A, BOUND) == (
        "; each device holds only a partial sum: together, over axis y, they add up to the result"
    )


def test_a_moved_column_is_called_a_column() -> None:
    got = sharded(np.roll(A, -4, axis=1), (None, "y"))
    assert explain(got, A, BOUND) == "; device (x=0, y=0) holds columns 4:8, expected columns 0:4"


def test_axes_in_the_wrong_order_are_told_by_the_first_device_that_is_wrong() -> None:
    """Data laid out as P(('y', 'x')) under the name of P(('x', 'y'))."""
    got, other = sharded(A, (("x", "y"),)), sharded(A, (("y", "x"),))
    got.shards[:] = other.shards
    assert explain(got, A, BOUND) == "; device (x=0, y=1) holds rows 4:5, expected rows 1:2"


def test_a_shape_that_is_not_square_has_no_transpose() -> None:
    wide = RNG.standard_normal((8, 4))
    assert explain(sharded(RNG.standard_normal((8, 4))), wide, BOUND) == ""
