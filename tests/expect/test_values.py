"""Results are close, equal, of the right dtype and layout; trees of results are compared leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.common.observation import Sharded
from grader.exercise import Call, Task, normal
from grader.expect import (
    Failure,
    expect_close,
    expect_equal,
    expect_spec,
)
from tests.seen import reason, sharded

A = np.random.default_rng(0).standard_normal((8, 12))
W, B = np.arange(32.0).reshape(8, 4), np.arange(4.0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rounding_passes_and_a_wrong_element_does_not(dtype: str) -> None:
    expect_close(sharded(A, ("x", None), dtype=dtype), A)
    wrong = A.copy()
    wrong[3, 5] += 0.9
    assert "1 of" in reason(expect_close, sharded(wrong, dtype=dtype), A)
    assert "the first at [3, 5]" in reason(expect_close, sharded(wrong, dtype=dtype), A)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_never_pass(bad: float) -> None:
    value = A.copy()
    value[0, 0] = bad
    assert "NaN or infinite" in reason(expect_close, sharded(value), A)


def test_a_wrong_shape_is_reported_before_values() -> None:
    assert reason(expect_close, sharded(A[:4]), A) == "the result has shape (4, 12), expected (8, 12)"


def test_a_tuple_in_place_of_one_array_is_reported() -> None:
    assert reason(expect_close, [sharded(A), sharded(A)], A) == "the result should be one array, not a tuple of 2"


def test_every_device_is_compared() -> None:
    """A wrong replica fails even if the global value is right."""
    got = sharded(A)
    got.shards[5][0, 0] += 1
    assert "on device (x=2, y=1)" in reason(expect_close, got, A)


def test_a_reference_that_is_not_finite_is_the_authors_fault() -> None:
    with pytest.raises(ValueError, match="reference"):
        expect_close(sharded(A), np.full_like(A, np.nan))


def test_integers_are_compared_exactly() -> None:
    whole = np.arange(8)
    expect_equal(sharded(whole, ("x",), dtype="int32"), whole)
    assert "1 of 2 values are wrong" in reason(
        expect_equal, sharded(np.where(whole == 3, 9, whole), ("x",), dtype="int32"), whole
    )


def test_a_wrong_dtype_is_reported() -> None:
    assert reason(expect_close, sharded(A), A, dtype="bfloat16") == "the result is float32, expected bfloat16"


@settings(max_examples=60)
@given(
    st.sampled_from(["float32", "bfloat16", "float16"]),
    st.sampled_from([(), ("x",), (None, "y"), (("x", "y"),)]),
    st.integers(0, 1 << 32),
    st.integers(0, 95),
)
def test_rounding_always_passes_and_a_lost_element_never(dtype: str, spec: tuple, seed: int, lost: int) -> None:
    value = np.random.default_rng(seed).standard_normal((8, 12))
    expect_close(sharded(value, spec, dtype=dtype), value)
    value.flat[lost] = np.max(np.abs(value))
    wrong = value.copy()
    wrong.flat[lost] = 0
    with pytest.raises(Failure):
        expect_close(sharded(wrong, spec, dtype=dtype), value)


@given(st.integers(0, 7), st.sampled_from([np.nan, np.inf, -np.inf]), st.sampled_from(["expect_close", "expect_equal"]))
def test_nan_on_any_one_device_never_passes(device: int, bad: float, word: str) -> None:
    got = sharded(A)
    got.shards[device][3, 3] = bad
    with pytest.raises(Failure):
        {"expect_close": expect_close, "expect_equal": expect_equal}[word](got, A.astype("float32").astype("float64"))


def test_a_long_sum_may_err_more_than_a_short_one() -> None:
    near = A * (1 + 3e-6)
    expect_close(sharded(near), A, terms=1024)
    assert "values are wrong" in reason(expect_close, sharded(near), A, terms=1)


def test_scale_replaces_the_largest_value_in_the_tolerance() -> None:
    """An author passes ``scale`` if the expected values are zero because terms cancel."""
    noise = np.full((8, 12), 1e-6)
    assert "all values are wrong" in reason(expect_close, sharded(noise), np.zeros((8, 12)))
    expect_close(sharded(noise), np.zeros((8, 12)), scale=1.0)


def test_scalars_and_single_elements_are_compared() -> None:
    expect_close(sharded(np.array(2.0)), np.array(2.0))
    assert reason(expect_close, sharded(np.array(3.0)), np.array(2.0)) == "on device (x=0, y=0), the value is wrong"
    line = sharded(np.array([1.0, 3.0]), ("y",))
    assert reason(expect_close, line, np.array([1.0, 2.0])) == "on device (x=0, y=1), the value at [1] is wrong"


def test_no_expected_value_is_reported() -> None:
    """A learner could copy an expected value from a message.

    So the failure has the values in a separate attribute. The judge shows them only for public inputs.
    """
    want = np.full((8, 12), 123.456)
    with pytest.raises(Failure) as failure:
        expect_close(sharded(A), want)
    assert "123" not in failure.value.reason
    assert failure.value.expected is None and failure.value.actual is None and failure.value.where == "(x=0, y=0)"
    assert failure.value.values == ("123.46, 123.46, 123.46, 123.46, ...", failure.value.values[1])
    assert failure.value.values[1].startswith(f"{A[0, 0]:.5g}"[:5])


def test_a_picture_is_drawn_where_some_devices_are_right() -> None:
    want = np.array(A)
    want[0, -1] += 1
    with pytest.raises(Failure) as failure:
        expect_close(sharded(A, ("x", "y")), want)
    assert failure.value.wrong == [1] and len(failure.value.layouts) == 1
    with pytest.raises(Failure) as failure:
        expect_close(sharded(A, ("x", "y")), want + 1)
    assert failure.value.wrong == [] and len(failure.value.layouts) == 0


@pytest.mark.parametrize(
    ("got", "want", "shown"),
    [
        (np.array(3.0), np.array(2.0), ("2", "3")),
        (np.array([1.0, np.nan, np.inf]), np.array([1.0, 2.0, 1e-9]), ("2, 1e-09", "nan, inf")),
        (np.array([1, 2**60 + 1]), np.array([1, 2**60]), ("1152921504606846976", "1152921504606846977")),
        (np.array([True, False]), np.array([True, True]), ("True", "False")),
        (np.array([1 + 2j]), np.array([1 - 2j]), ("1-2j", "1+2j")),
    ],
)
def test_a_failure_holds_a_few_values_for_public_data(
    got: np.ndarray, want: np.ndarray, shown: tuple[str, str]
) -> None:
    with pytest.raises(Failure) as failure:
        expect_equal(sharded(got, dtype=got.dtype.name), want)
    assert failure.value.values == shown


def test_an_imaginary_part_never_passes() -> None:
    whole = np.arange(96.0).reshape(8, 12)
    assert "complex64" in reason(expect_close, sharded(whole + 1j, dtype="complex64", due="float32"), whole)
    assert reason(expect_close, sharded(whole + 0j, dtype="complex64", due="float32"), whole, dtype=None) == (
        "the result is complex64, expected real numbers"
    )
    assert "all values are wrong" in reason(expect_close, sharded(whole + 1j, dtype="complex64"), whole)
    expect_close(sharded(whole + 1j, dtype="complex64"), whole + 1j)


@pytest.mark.parametrize("word", [expect_close, expect_equal])
@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float64", "float8_e5m2", "int4", "uint2", "bool", "complex64"]
)
def test_a_result_with_a_different_dtype_than_the_arguments_fails(word: Callable, dtype: str) -> None:
    """It fails even if its values are right."""
    ones = np.ones((8, 12))
    assert reason(word, sharded(ones, dtype=dtype, due="float32"), ones) == f"the result is {dtype}, expected float32"


def test_zeros_of_a_coarse_dtype_do_not_pass() -> None:
    """Earlier, zeros of float8 passed, because the tolerance for this dtype was as large as the expected values."""
    zeros = sharded(np.zeros((8, 12)), dtype="float8_e5m2", due="float32")
    assert reason(expect_close, zeros, A) == "the result is float8_e5m2, expected float32"
    assert reason(expect_close, zeros, A, dtype=None).endswith("every value is zero")


def test_an_author_may_require_a_different_dtype() -> None:
    counts = sharded(np.arange(8), ("x",), dtype="int32", due="float32")
    expect_equal(counts, np.arange(8), dtype="int32")
    expect_close(counts, np.arange(8), dtype="int32")
    expect_close(counts, np.arange(8), dtype=None)
    assert reason(expect_equal, counts, np.arange(8)) == "the result is int32, expected float32"
    assert reason(expect_equal, counts, np.arange(8), dtype="bool") == "the result is int32, expected bool"


def test_with_dtype_none_a_result_must_still_be_accurate_enough() -> None:
    rounded = sharded(A, dtype="bfloat16", due="float32")
    assert "values are wrong" in reason(expect_close, rounded, A, dtype=None)
    expect_close(sharded(A, dtype="float64", due="float32"), A, dtype=None)


def test_a_dtype_that_no_argument_determines_is_the_authors_fault() -> None:
    got = replace(sharded(A), due=None)
    with pytest.raises(ValueError, match="do not determine the dtype of the result; pass dtype='float32'"):
        expect_close(got, A)
    expect_close(got, A, dtype="float32")


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_a_tolerance_that_zeros_would_meet_is_the_authors_fault(dtype: str) -> None:
    with pytest.raises(ValueError, match=f"{dtype} is so coarse that wrong values would pass"):
        expect_close(sharded(np.ones(8), dtype=dtype), np.ones(8))
    expect_equal(sharded(np.ones(8), dtype=dtype), np.ones(8))


@pytest.mark.parametrize(
    ("dtypes", "due"),
    [
        (["float32"], "float32"),
        (["bfloat16", "bfloat16"], "bfloat16"),
        (["float32", "int32"], "float32"),
        (["int32", "bool"], "int32"),
        (["bool"], "bool"),
        (["int4", "float8_e5m2"], "float8_e5m2"),
        (["float32", "complex64"], "complex64"),
        (["float32", "bfloat16"], None),
        (["int32", "uint8"], None),
        ([], None),
    ],
)
def test_the_arguments_determine_the_dtype(dtypes: list[str], due: str | None) -> None:
    """The expected dtype follows JAX's type promotion. It is None if several dtypes have the highest rank."""
    args = {f"a{i}": normal(8, dtype=dtype) for i, dtype in enumerate(dtypes)}
    found = Call(Task("f", "array", print), args, {}, (), {}, {}).dtype
    assert (found and found.name) == due
    if due and "float8" not in due:
        assert jnp.result_type(*(jnp.dtype(dtype) for dtype in dtypes)) == due


def test_negative_zero_equals_zero() -> None:
    expect_equal(sharded(np.full(8, -0.0)), np.zeros(8))
    expect_close(sharded(np.full(8, -0.0)), np.zeros(8))


def test_empty_arrays_are_equal() -> None:
    empty = np.zeros((0, 4))
    expect_close(sharded(empty), empty)
    assert reason(expect_close, sharded(empty), A) == "the result has shape (0, 4), expected (8, 12)"


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        (sharded(A, ("x",), per_device=True), (32, 12), "(2, 12), expected (8, 12); the whole result has shape (8, 12), expected (32, 12)"),
        (sharded(A, (), per_device=True), (2, 12), "(8, 12), expected (2, 12)"),
        (sharded(A, ("x",), per_device=True), (6, 12), "(2, 12); the whole result has shape (8, 12), expected (6, 12)"),
        (sharded(A, ("x",), per_device=True), (), "(2, 12); the whole result has shape (8, 12), expected ()"),
        (sharded(A[:, 0], ("x",), per_device=True), (8, 12), "(2,), expected (2, 12); the whole result has shape (8,), expected (8, 12)"),
        (sharded(A[:0], ("x",), per_device=True), (8, 12), "(0, 12); the whole result has shape (0, 12), expected (8, 12)"),
    ],
)  # fmt: skip
def test_a_failure_shows_the_shape_that_each_device_returns(got: Sharded, want: tuple, message: str) -> None:
    assert reason(expect_close, got, np.zeros(want)) == f"each device returns shape {message}"


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([], "returned nothing; is a return missing?"),
        ([sharded(A)], "the result should be one array, not a tuple of 1"),
        ((sharded(A), sharded(A)), "the result should be one array, not a tuple of 2"),
        (None, "the result should be one array, not NoneType"),
    ],
)
def test_every_expect_function_reports_a_result_that_is_not_one_array(got: object, message: str) -> None:
    for word, asked in ((expect_close, A), (expect_equal, A), (expect_spec, P("x"))):
        assert reason(word, got, asked) == message


def test_expect_spec_compares_layouts_not_texts() -> None:
    expect_spec(sharded(A, ("x",)), P("x", None))
    text = reason(expect_spec, sharded(np.zeros((8, 8)), (("x", "y"),)), P(("y", "x")))
    assert text.startswith(
        "the result is sharded P(('x', 'y')), expected P(('y', 'x'), None): device (x=0, y=1) holds [1:2, 0:8]"
    )


def test_axes_of_size_1_do_not_change_a_layout() -> None:
    expect_spec(sharded(A, ("x",), {"x": 8, "y": 1}), P("x", "y"))


@pytest.mark.parametrize("got", [sharded(A[0]), sharded(A[:6])])
def test_expect_spec_reports_a_wrong_shape(got: object) -> None:
    assert "shape" in reason(expect_spec, got, P("x", "y"))


def test_a_layout_that_differs_comes_with_both_pictures() -> None:
    with pytest.raises(Failure) as failure:
        expect_spec(sharded(A, ("x",)), P(None, "x"))
    assert (failure.value.expected, failure.value.actual) == ("P(None, 'x')", "P('x')")
    assert failure.value.layouts is not None
    returned, wanted = failure.value.layouts
    assert returned[2] != wanted[2] and len(returned[2]) == len(wanted[2]) == 8


def named(value: np.ndarray, name: str, spec: tuple = (), **more) -> Sharded:
    return sharded(value, spec, name=name, **more)


GOT = (named(np.array(2.0), "loss"), {"w": named(W, "grads['w']", ("x",)), "b": named(B, "grads['b']")})


def test_all_leaves_of_a_tree_are_compared() -> None:
    expect_close(GOT, (np.array(2.0), {"b": B, "w": W}))
    expect_equal(GOT, [np.array(2.0), {"b": B, "w": W}])
    expect_spec(GOT, (P(), {"w": P("x"), "b": P()}))


def test_the_wrong_leaf_of_a_tree_is_reported() -> None:
    assert reason(expect_close, GOT, (np.array(2.0), {"b": B, "w": 2 * W})).startswith(
        "grads['w']: on device (x=0, y=0), "
    )
    assert reason(expect_close, GOT[0], np.array(3.0)) == "loss: on device (x=0, y=0), the value is wrong"
    assert reason(expect_equal, GOT[1], {"b": B + 1, "w": W}).startswith("grads['b']: on device")
    assert reason(expect_spec, GOT, (P(), P("x"))).startswith("grads['b']: the result is sharded P()")


@pytest.mark.parametrize(
    ("want", "told"),
    [
        ({"b": B, "w": W}, "the expected value is a dict of 'b', 'w', expected (loss, {'b', 'w'})"),
        ((B, {"w": W}), "the expected value is a dict of 'w' at [1], expected {'b', 'w'}"),
        (W, "the expected value is one array, expected (loss, {'b', 'w'})"),
    ],
)
def test_a_reference_with_a_different_tree_is_the_authors_mistake(want: object, told: str) -> None:
    with pytest.raises(ValueError) as error:
        expect_close(GOT, want)
    assert str(error.value) == told


def test_several_undeclared_results_are_not_a_tree() -> None:
    """A program that returns more results than required must not pass."""
    got = [sharded(W), sharded(W)]
    assert reason(expect_close, got, [W, W]) == "the result should be one array, not a tuple of 2"
    assert reason(expect_spec, got, P()) == "the result should be one array, not a tuple of 2"


def test_a_reference_made_of_results_may_be_infinite() -> None:
    """The reference of a later step uses the learner's results. Infinite results then fail the check, and do not break it."""
    expected = np.full(4, np.inf)
    told = "step 2: b: the results of the previous step lead to NaN or infinite values"
    assert reason(expect_close, named(B, "step 2: b", step=2), expected) == told
    with pytest.raises(ValueError, match="the reference's result in this check has NaN or infinite values"):
        expect_close(named(B, "step 1: b", step=1), expected)


@pytest.mark.parametrize(
    ("shape", "want", "remark"),
    [
        ((8, 4, 3), (8, 12), "; dimension 1 has the size of axis x: did you leave out tiled=True?"),
        ((4, 2, 12), (8, 12), "; dimension 0 has the size of axis x: did you leave out tiled=True?"),
        ((8, 6, 2), (8, 12), "; dimension 2 has the size of axis y: did you leave out tiled=True?"),
        ((8, 3, 3), (8, 9), ""),  # no axis has this size
        ((1, 8, 12), (8, 12), ""),
        ((4, 8, 12), (8, 12), ""),
    ],
)
def test_a_failure_names_a_dimension_that_a_collective_added(shape: tuple, want: tuple, remark: str) -> None:
    assert reason(expect_close, sharded(np.zeros(shape)), np.zeros(want)) == (
        f"the result has shape {shape}, expected {want}{remark}"
    )
