"""``explain`` describes wrong values by their cause, and returns no text if it does not know the cause."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.common.diagnose import explain
from tests.seen import sharded

RNG = np.random.default_rng(1)
A = RNG.standard_normal((8, 8))
BOUND = 1e-4


def test_a_factor_equal_to_an_axis_size_is_reported() -> None:
    assert explain(sharded(4 * A), A, BOUND) == (
        "; every value is 4 times too large, and 4 is the size of axis x: is there one sum too many?"
    )
    assert explain(sharded(A / 2), A, BOUND) == (
        "; every value is 2 times too small, and 2 is the size of axis y: did you take a mean instead of a sum?"
    )
    assert explain(sharded(3 * A), A, BOUND) == "; every value is 3 times the expected one"


def test_a_conjugate_is_recognised() -> None:
    z = A + 1j * RNG.standard_normal((8, 8))
    assert (
        explain(sharded(z.conj(), dtype="complex64"), z, BOUND)
        == "; the result is the complex conjugate of the expected one"
    )
    assert explain(sharded(z.conj() + 1, dtype="complex64"), z, BOUND) == ""
    assert explain(sharded(3 * z, dtype="complex64"), z, BOUND) == "; every value is 3 times the expected one"


def test_zeros_and_nan_are_reported() -> None:
    assert explain(sharded(0 * A), A, BOUND) == "; every value is zero"
    assert explain(sharded(A * np.nan), A, BOUND) == "; there are NaN or infinite values"


def test_partial_sums_are_recognised() -> None:
    got = sharded(A)
    parts = RNG.standard_normal((3, 8, 8))
    pieces = [*parts, A - parts.sum(0)]
    for device in range(8):
        got.shards[device] = pieces[device // 2].astype("float32")
    assert explain(got, A, BOUND) == (
        "; each device holds only a partial sum: the sum of the devices' values over axis x is the result"
    )


def test_replicas_that_differ_are_reported() -> None:
    got = sharded(A + 1)
    got.shards[1] = got.shards[1] + 1
    assert explain(got, A, BOUND) == (
        "; devices (x=0, y=0) and (x=0, y=1) should hold the same values but differ: "
        "their values depend on the device's place along axis y"
    )
    got = sharded(A + 1)
    got.shards[5] = got.shards[5] + 1
    assert explain(got, A, BOUND).endswith("their values depend on the device's place along the axes x and y together")


@pytest.mark.parametrize("wrong", [0, 1])
def test_if_one_of_two_replicas_is_right_the_message_names_it(wrong: int) -> None:
    got = sharded(A)
    got.shards[wrong] = got.shards[wrong] + 1
    right, other = ("(x=0, y=1)", "(x=0, y=0)") if wrong == 0 else ("(x=0, y=0)", "(x=0, y=1)")
    start = f"; device {right} holds the right values, but device {other}, which should hold the same values, holds "
    assert explain(got, A, BOUND) == f"{start}other values"
    got.shards[wrong] = 0 * got.shards[wrong]
    assert explain(got, A, BOUND) == f"{start}only zeros"


def test_a_result_held_by_one_device_is_not_called_a_partial_sum() -> None:
    """Zeros on the other devices also add up to the result, but are no partial sums."""
    got = sharded(A)
    for device in range(2, 8):
        got.shards[device] = 0 * got.shards[device]
    assert "partial sum" not in explain(got, A, BOUND) and "holds only zeros" in explain(got, A, BOUND)


def test_parts_that_add_up_for_some_rows_are_not_called_partial_sums() -> None:
    """Rows 0:4 add up to the expected values, but rows 4:8 do not."""
    got = sharded(A, ("x",), {"x": 2, "y": 2})
    rest = RNG.standard_normal((8, 8)).astype("float32")
    got.shards[:] = [A[:4] - rest[:4], rest[:4], A[4:] - rest[4:], rest[4:]]
    assert explain(got, A, BOUND).startswith("; each device holds only a partial sum")
    got.shards[3] = rest[4:] + 1
    assert "partial sum" not in explain(got, A, BOUND)


def rotated(device: int, axis: int = 0) -> np.ndarray:
    return np.roll(A, 2 * (device // 2 + 1), axis).astype("float32")


def test_chunks_rotated_by_each_devices_position_are_recognised() -> None:
    """A device has all chunks, but each chunk is shifted by the device's position."""
    got = sharded(A)
    got.shards[:] = [rotated(device) for device in range(8)]
    assert explain(got, A, BOUND) == (
        "; device (x=0, y=0) holds the right chunks in the wrong order, such as rows 6:8 where rows 0:2 belong"
    )
    got.shards[:] = [A.astype("float32") if device < 4 else rotated(device, 1) for device in range(8)]
    assert explain(got, A, BOUND) == (
        "; device (x=0, y=0) holds the right values, but device (x=2, y=0), which should hold the same values, "
        "holds the right chunks in the wrong order, such as columns 2:4 where columns 0:2 belong"
    )


def test_missing_chunks_are_described_as_zeros() -> None:
    got = sharded(A)
    for device in range(8):
        got.shards[device][2 * (device // 2) : 2 * (device // 2) + 2] = 0
    assert explain(got, A, BOUND) == "; device (x=0, y=0) holds zeros where rows 0:2 belong"


def test_chunks_of_a_shard_in_the_wrong_order_are_recognised() -> None:
    got = sharded(A, (None, "y"))
    for shard in got.shards:
        shard[:] = np.roll(shard, 2, 0)
    assert explain(got, A, BOUND) == (
        "; device (x=0, y=0) holds the right chunks in the wrong order, such as rows 6:8 where rows 0:2 belong"
    )


def test_a_shard_of_zeros_is_called_zeros_and_not_a_misplaced_part() -> None:
    """The expected result has zeros on other devices. The text must not say that the first two devices have the parts of those devices."""
    want = A.copy()
    want[6:] = 0
    got = sharded(want, ("x",))
    for device in (0, 1):
        got.shards[device][:] = 0
    assert explain(got, want, BOUND) == "; device (x=0, y=0) holds only zeros"


def test_values_where_zeros_belong_are_recognised() -> None:
    want = np.zeros((8, 8))
    want[2:4] = A[2:4]
    got = sharded(np.tile(A[2:4], (4, 1)), ("x",))
    assert explain(got, want, BOUND) == (
        "; device (x=0, y=0) holds rows 2:4 of the expected result, where zeros belong"
    )


def test_parts_are_called_elements_rows_and_columns_by_rank() -> None:
    line = sharded(np.roll(A[0], 2), ("x",))
    assert explain(line, A[0], BOUND) == (
        "; device (x=0, y=0) holds elements 6:8 of the expected result, where elements 0:2 belong"
    )
    block = RNG.standard_normal((2, 2, 8))
    got = sharded(np.roll(block, 2, 2), (None, None, "x"))
    assert "holds 6:8 of dimension 2 of the expected result, where 0:2 of dimension 2 belong" in explain(
        got, block, BOUND
    )
    got = sharded(np.roll(A, (2, 4), (0, 1)), ("x", "y"))
    assert "holds rows 6:8 and columns 4:8 of the expected result" in explain(got, A, BOUND)


def test_a_factor_equal_to_the_size_of_two_axes_is_reported() -> None:
    assert explain(sharded(8 * A), A, BOUND) == (
        "; every value is 8 times too large, and 8 is the size of the axes x and y together: is there one sum too many?"
    )


@pytest.mark.parametrize(
    ("factor", "named"),
    [
        (2, "2 times too large, and 2 is the size of either axis dp, axis tp or axis sp: is there one sum too many?"),
        (
            1 / 4,
            "4 times too small, and 4 is the size of either the axes dp and tp together, the axes dp and sp together "
            "or the axes tp and sp together: did you take a mean instead of a sum?",
        ),
        (8, "8 times too large, and 8 is the size of the axes dp and tp and sp together: is there one sum too many?"),
    ],
)
def test_all_axes_of_the_size_of_a_factor_are_named(factor: float, named: str) -> None:
    got = sharded(factor * A, mesh={"dp": 2, "tp": 2, "sp": 2})
    assert explain(got, A, BOUND) == f"; every value is {named}"


def test_a_single_value_gets_no_factor_but_that_of_an_axis() -> None:
    assert explain(sharded(np.array(3.0)), np.array(2.0), BOUND) == ""
    assert "4 times too large" in explain(sharded(np.array(8.0)), np.array(2.0), BOUND)


def test_a_transpose_is_recognised() -> None:
    assert explain(sharded(A.T), A, BOUND) == "; the result is the transpose of the expected one"


def test_a_shard_that_belongs_on_another_device_is_recognised() -> None:
    rolled = np.roll(A, -2, axis=0)
    assert (
        explain(sharded(rolled, ("x", None)), A, BOUND)
        == "; device (x=0, y=0) holds rows 2:4 of the expected result, where rows 0:2 belong"
    )


def test_noise_is_not_explained() -> None:
    assert explain(sharded(RNG.standard_normal((8, 8)), ("x", None)), A, BOUND) == ""


@settings(max_examples=40)
@given(st.integers(0, 1 << 32), st.sampled_from(["scaled", "zero", "nan", "rolled", "transposed", "noise", "replica"]))
def test_no_expected_value_is_reported(seed: int, kind: str) -> None:
    """Numbers in a description are sizes, places and ratios, and never values."""
    rng = np.random.default_rng(seed)
    want = rng.uniform(1000, 9000, (8, 8))
    wrong = {
        "scaled": 4 * want, "zero": 0 * want, "nan": want * np.nan, "rolled": np.roll(want, 2, 0),
        "transposed": want.T, "noise": rng.uniform(1000, 9000, (8, 8)), "replica": want,
    }[kind]  # fmt: skip
    got = sharded(wrong, ("x",))
    if kind == "replica":
        got.shards[1] = got.shards[1] + 5
    text = explain(got, want, 0.1)
    assert bool(text) == (kind != "noise")
    assert all(float(n) < 100 for n in re.findall(r"\d+(?:\.\d+)?", text))


@pytest.mark.parametrize("spec", [(), ("x",), (None, ("x", "y"))])
def test_a_single_wrong_element_is_not_explained(spec: tuple) -> None:
    wrong = A.copy()
    wrong[3, 5] += 1
    assert explain(sharded(wrong, spec), A, BOUND) == ""


def test_a_negative_factor_is_reported() -> None:
    assert explain(sharded(-A), A, BOUND) == "; every value is -1 times the expected one"


def test_a_factor_is_not_explained_by_an_axis_of_size_1() -> None:
    mesh = {"x": 8, "y": 1}
    assert "axis x" in explain(sharded(8 * A, (), mesh), A, BOUND)
    assert "axis" not in explain(sharded(4 * A, (), mesh), A, BOUND)


def test_one_nan_is_enough_to_be_reported() -> None:
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
        "; each device holds only a partial sum: the sum of the devices' values over axis y is the result"
    )


def test_a_moved_column_is_called_a_column() -> None:
    got = sharded(np.roll(A, -4, axis=1), (None, "y"))
    assert (
        explain(got, A, BOUND)
        == "; device (x=0, y=0) holds columns 4:8 of the expected result, where columns 0:4 belong"
    )


def test_axes_in_the_wrong_order_are_reported_by_the_first_device_that_is_wrong() -> None:
    """The devices have the parts of P(('y', 'x')), but the result's spec is P(('x', 'y'))."""
    got, other = sharded(A, (("x", "y"),)), sharded(A, (("y", "x"),))
    got.shards[:] = other.shards
    assert explain(got, A, BOUND) == "; device (x=0, y=1) holds rows 4:5 of the expected result, where rows 1:2 belong"


def test_a_shape_that_is_not_square_has_no_transpose() -> None:
    wide = RNG.standard_normal((8, 4))
    assert explain(sharded(RNG.standard_normal((8, 4))), wide, BOUND) == ""


def test_float32_values_with_the_precision_of_bfloat16_are_reported() -> None:
    rounded = A.astype(ml_dtypes.bfloat16).astype(np.float64)
    assert explain(sharded(rounded), A, BOUND) == (
        "; every value has the precision of bfloat16: is there a conversion to bfloat16?"
    )
    assert explain(sharded(A + 0.01), A, BOUND) == ""  # nearly right, but not rounded
    assert explain(sharded(rounded + 1), A, BOUND) == ""  # rounded, but too far from the expected values
