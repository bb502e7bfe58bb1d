"""The words of a check: what passes, what fails, and what a failure says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.common.observation import UNKNOWN, Interval, Outcome, Sharded
from grader.exercise import Call, Task, normal
from grader.expect import (
    Failure,
    expect_close,
    expect_collectives,
    expect_dtype,
    expect_equal,
    expect_flops,
    expect_memory,
    expect_no_collectives,
    expect_only,
    expect_outcomes,
    expect_spec,
    expect_traffic,
    same_outcome,
    show_bytes,
)
from grader.wire.frames import NOT_PLAIN, decode, encode
from tests.seen import collective, seen, sharded

A = np.random.default_rng(0).standard_normal((8, 12))


def reason(check: object, *args: object, **kwargs: object) -> str:
    with pytest.raises(Failure) as failure:
        check(*args, **kwargs)  # type: ignore[operator]
    return failure.value.reason


# -- values


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


def test_a_wrong_shape_is_told_before_values() -> None:
    assert reason(expect_close, sharded(A[:4]), A) == "the result has shape (4, 12), expected (8, 12)"


def test_a_tuple_where_one_array_was_asked_is_told() -> None:
    assert reason(expect_close, [sharded(A), sharded(A)], A) == "the result should be one array, not a tuple of 2"


def test_every_device_is_looked_at() -> None:
    """A replica that differs fails, though the global value reads well."""
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


def test_dtype_is_named() -> None:
    assert reason(expect_dtype, sharded(A), "bfloat16") == "the result is float32, expected bfloat16"


# -- layout


def test_layouts_are_compared_not_texts() -> None:
    expect_spec(sharded(A, ("x",)), P("x", None))
    text = reason(expect_spec, sharded(np.zeros((8, 8)), (("x", "y"),)), P(("y", "x")))
    assert text.startswith(
        "the result is sharded P(('x', 'y')), expected P(('y', 'x'), None): device (x=0, y=1) holds [1:2, 0:8]"
    )


def test_axes_of_size_1_cut_nothing() -> None:
    expect_spec(sharded(A, ("x",), {"x": 8, "y": 1}), P("x", "y"))


# -- communication


def test_the_asked_collectives_pass() -> None:
    expect_collectives(seen(collective("all_gather", "x")), all_gather={"x": 1})
    expect_collectives(seen(collective("all_reduce", "x", "y")), all_reduce={("y", "x"): 1})
    expect_no_collectives(seen())


def test_loops_are_multiplied_out() -> None:
    expect_collectives(seen(collective("permute", "x", count=3)), permute={"x": 3})
    assert "permute over x 3 times" in reason(
        expect_collectives, seen(collective("permute", "x", count=3)), permute={"x": 2}
    )


def test_a_collective_too_many_is_named_with_its_line_and_bytes() -> None:
    text = reason(expect_collectives, seen(collective("all_gather", "x", line=14, sent=3072)), reduce_scatter={"x": 1})
    assert text == "line 14: all_gather over x (3 KiB sent by each device); the budget is reduce_scatter over x"


def test_a_notebooks_cell_is_named() -> None:
    text = reason(expect_no_collectives, seen(collective("all_gather", "x", line=3, file="cell 7")))
    assert text.startswith("cell 7, line 3: all_gather over x") and text.endswith("no communication is needed")


def test_a_collective_too_few_is_told() -> None:
    text = reason(expect_collectives, seen(), all_reduce={"x": 1})
    assert text == "the budget is all_reduce over x; the program has none"


def test_a_budget_on_an_axis_of_size_1_asks_for_nothing() -> None:
    expect_collectives(seen(mesh={"x": 8, "y": 1}), all_gather={"y": 1})


def test_rounds_that_cannot_be_read_fail() -> None:
    text = reason(expect_collectives, seen(collective("permute", "x", count=None, line=4)), permute={"x": 3})
    assert "line 4: permute over x runs in a loop whose number of rounds cannot be read" in text


def test_what_the_compiler_added_is_told_as_such() -> None:
    text = reason(expect_no_collectives, seen(collective("all_gather", "x", by_compiler=True)))
    assert text.startswith("put in by the compiler, because shardings do not match: all_gather over x")


def test_only_names_what_is_not_allowed() -> None:
    expect_only(seen(collective("permute", "x", count=9)), "permute")
    assert "all_gather over x is not allowed here, only permute" in reason(
        expect_only, seen(collective("all_gather", "x")), "permute"
    )


def test_traffic_is_counted_over_an_axis_or_in_all() -> None:
    both = seen(collective("permute", "x", sent=10, count=3), collective("all_gather", "y", sent=100))
    assert both.traffic == {"x": 30, "y": 100}
    expect_traffic(both, at_most=130)
    expect_traffic(both, at_most=30, axis="x")
    assert "each device sends 130 B, the budget is 129 B; most of it by all_gather over y" in reason(
        expect_traffic, both, at_most=129
    )
    assert reason(expect_traffic, both, at_most=29, axis="x").startswith("each device sends 30 B")


def test_memory_and_flops_have_budgets() -> None:
    expect_memory(seen(memory=1024), at_most=1024)
    assert "needs 2 KiB of temporary memory per device, the budget is 1 KiB" in reason(
        expect_memory, seen(memory=2048), at_most=1024
    )
    expect_flops(seen(flops=20, dot_flops=10), at_most=10)
    assert "each device spends 1,100 FLOPs" in reason(expect_flops, seen(flops=1100, dot_flops=1100), at_most=1000)


def test_what_cannot_be_counted_is_a_failure_and_not_ours() -> None:
    """Loops in loops: whole numbers that no float holds made facts and checks raise, for "pending" at no cost."""
    many = Interval.of(1)
    for _ in range(40):
        many *= 2**31
    assert not many.known and many.least > 1e70 and str(many * UNKNOWN + UNKNOWN)
    found = seen(collective("all_reduce", "x", count=many, sent=many), flops=many, dot_flops=many)
    assert "unknown" in reason(expect_flops, found, at_most=10.0)
    assert "unknown" in reason(expect_traffic, found, at_most=10.0)
    assert "cannot be read" in reason(expect_collectives, found, all_reduce={"x": 1})


def test_a_budget_holds_for_the_most_and_a_requirement_for_the_least() -> None:
    maybe = seen(collective("permute", "x", sent=10, path=((0, 0, 2),)))
    expect_traffic(maybe, at_most=10)
    assert reason(expect_traffic, maybe, at_most=9).startswith("a device sends up to 10 B, the budget is 9 B")
    text = reason(expect_collectives, maybe, permute={"x": 1})
    assert text == "the budget is permute over x; the program has permute over x 0 to 1 times"
    assert "0 to 1 times" in reason(expect_no_collectives, maybe)
    expect_only(seen(collective("all_gather", "x", count=0)), "permute")


def test_not_every_device_sends_in_every_permute() -> None:
    hops = [collective("permute", "x", sent=Interval(0, 32768), senders=(i,)) for i in range(3)]
    expect_traffic(seen(*hops), at_most=32768)
    assert reason(expect_traffic, seen(*hops), at_most=1024).startswith(
        "a device sends up to 32 KiB, the budget is 1 KiB"
    )


def test_other_arithmetic_has_a_budget_of_its_own() -> None:
    expect_flops(seen(flops=20, dot_flops=10), at_most=10)
    assert "each device spends 11 FLOPs besides matrix products, the budget is 10" in reason(
        expect_flops, seen(flops=21, dot_flops=10), at_most=10
    )
    assert "FLOPs are unknown" in reason(expect_flops, seen(flops=UNKNOWN), at_most=math.inf)


@pytest.mark.parametrize("word", [expect_memory, expect_flops, expect_traffic])
@pytest.mark.parametrize("got", [seen(), seen(collective("permute", "x"), memory=1, flops=9, dot_flops=4)])
def test_a_budget_that_is_no_number_raises_nothing_but_a_failure(word: object, got: object) -> None:
    with pytest.raises(Failure):
        word(got, at_most=math.nan)  # type: ignore[operator]
    with pytest.raises(Failure):
        word(got, at_most=-math.inf)  # type: ignore[operator]


def test_bytes_are_shown_in_powers_of_1024() -> None:
    assert [show_bytes(n) for n in (0, 1023, 1024, 1536, 3 << 20)] == ["0 B", "1023 B", "1 KiB", "1.5 KiB", "3 MiB"]


# -- outcomes


def value(v: object) -> Outcome:
    return Outcome(value=v)


def test_what_is_equal_is_right() -> None:
    """A list of the same, ``/`` that comes out even, a step of 1."""
    assert same_outcome(value([2, 3]), value((2, 3)))
    assert same_outcome(value((2.0, 3)), value((2, 3)))
    assert not same_outcome(value((2.5, 3)), value((2, 3)))
    assert not same_outcome(value(2.0**60), value(2**60 + 1))
    assert same_outcome(value(slice(0, 12, 1)), value(slice(0, 12)))
    assert same_outcome(value(slice(None, 12)), value(slice(0, 12)))
    assert not same_outcome(value(slice(None)), value(slice(0, 12)))
    assert not same_outcome(value(slice(0, 12, 2)), value(slice(0, 12)))
    assert not same_outcome(value(slice(None, 12, -1)), value(slice(0, 12, -1)))
    assert not same_outcome(value(True), value(1)) and not same_outcome(value(1), value(True))
    assert same_outcome(value(5), value(5.0)) and same_outcome(value(1.0001), value(1.0), rtol=1e-3)
    assert not same_outcome(value(float("nan")), value(1.0), rtol=0.5)


FLOAT = "is a float where an int is needed: use //"


@pytest.mark.parametrize(
    ("got", "want", "ints", "told"),
    [
        ((3.0, 4), (3, 4), True, f"; 3.0 {FLOAT}"),
        ({0: (slice(0, 3.0),)}, {0: (slice(0, 3),)}, False, f"; 3.0 {FLOAT}"),
        ((4, 5), (3, 4), True, ""),
        ((4.0, 5), (3, 4), True, f"; 4.0 {FLOAT}"),
        (None, 3, False, "; is a return missing?"),
    ],
)
def test_a_shape_and_the_bounds_of_a_slice_are_ints(got: object, want: object, ints: bool, told: str) -> None:
    text = reason(expect_outcomes, seen(outcomes=[({"n": 3}, value(got), value(want))]), ints=ints)
    assert text == f"for n=3 it returned {got!r}, expected: it returned {want!r}{told}"


def test_numbers_of_every_kind_are_numbers() -> None:
    """As they come from the process where they were computed."""
    for number in (Fraction(6, 2), Decimal("3.00"), np.float64(3), 3):
        expect_outcomes(seen(outcomes=[({}, value(decode(encode(number))), value(3))]), ints=isinstance(number, int))
    expect_outcomes(seen(outcomes=[({}, value(decode(encode(Fraction(1, 3)))), value(1 / 3))]), rtol=1e-12)
    expect_outcomes(seen(outcomes=[({}, value(decode(encode(Decimal(2**70)))), value(2**70))]))


def test_a_long_value_is_cut() -> None:
    text = reason(expect_outcomes, seen(outcomes=[({"n": 3}, value([1] * 10_000), value(2))]))
    assert len(text) < 500 and "..." in text


def test_what_cannot_be_returned_is_not_said_to_be_raised() -> None:
    got = Outcome(error=NOT_PLAIN, message="returned something that is of type set")
    text = reason(expect_outcomes, seen(outcomes=[({"n": 3}, got, value(2))]))
    assert text == "for n=3 it returned something that is of type set, expected: it returned 2"


def test_errors_are_compared_by_kind() -> None:
    wanted = Outcome(error="ValueError")
    assert same_outcome(Outcome(error="IndivisibleError", kinds=("IndivisibleError", "ValueError")), wanted)
    assert not same_outcome(Outcome(error="TypeError", kinds=("TypeError",)), wanted)
    assert not same_outcome(value(3), wanted) and not same_outcome(wanted, value(3))


def test_specs_are_the_same_up_to_trailing_none() -> None:
    assert same_outcome(value(P("x", None)), value(P("x")))
    assert not same_outcome(value(P(None, "x")), value(P("x")))


def test_hidden_cases_are_told_to_staff_only() -> None:
    cases = [({"n": 3}, value(4), value(5))]
    with pytest.raises(Failure) as public:
        expect_outcomes(seen(outcomes=cases, public=True))
    assert public.value.reason == "for n=3 it returned 4, expected: it returned 5"
    with pytest.raises(Failure) as hidden:
        expect_outcomes(seen(outcomes=cases, public=False))
    assert hidden.value.reason == "it is wrong for arguments that are not shown here"
    assert hidden.value.staff == "in 1 of 1 cases it is wrong: for n=3 it returned 4, expected: it returned 5"
    assert hidden.value.expected is None


def test_a_check_that_selects_no_case_is_the_authors_fault() -> None:
    with pytest.raises(ValueError, match="selects no case"):
        expect_outcomes(seen(outcomes=[({"n": 3}, value(4), value(4))]), where=lambda args: args["n"] > 9)


# -- laws


@settings(max_examples=60, deadline=None)
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


def test_a_scale_takes_the_place_of_the_largest_value() -> None:
    """For references that are zero where everything cancels."""
    noise = np.full((8, 12), 1e-6)
    assert "all values are wrong" in reason(expect_close, sharded(noise), np.zeros((8, 12)))
    expect_close(sharded(noise), np.zeros((8, 12)), scale=1.0)


def test_a_scalar_is_compared_too() -> None:
    expect_close(sharded(np.array(2.0)), np.array(2.0))
    assert reason(expect_close, sharded(np.array(3.0)), np.array(2.0)) == "on device (x=0, y=0), the value is wrong"
    line = sharded(np.array([1.0, 3.0]), ("y",))
    assert reason(expect_close, line, np.array([1.0, 2.0])) == "on device (x=0, y=1), the value at [1] is wrong"


def test_no_expected_value_is_told() -> None:
    """A learner who is told it could write it down."""
    want = np.full((8, 12), 123.456)
    with pytest.raises(Failure) as failure:
        expect_close(sharded(A), want)
    assert "123" not in failure.value.reason
    assert failure.value.expected is None and failure.value.actual is None and failure.value.where == "(x=0, y=0)"


def test_an_imaginary_part_never_passes() -> None:
    whole = np.arange(96.0).reshape(8, 12)
    assert "complex64" in reason(expect_close, sharded(whole + 1j, dtype="complex64", due="float32"), whole)
    assert reason(expect_close, sharded(whole + 0j, dtype="complex64", due="float32"), whole, dtype=None) == (
        "the result is complex64, expected real numbers"
    )
    assert "all values are wrong" in reason(expect_close, sharded(whole + 1j, dtype="complex64"), whole)
    expect_close(sharded(whole + 1j, dtype="complex64"), whole + 1j)


# -- the reference sets the terms


@pytest.mark.parametrize("word", [expect_close, expect_equal])
@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float64", "float8_e5m2", "int4", "uint2", "bool", "complex64"]
)
def test_another_dtype_than_the_arguments_fails(word: Callable, dtype: str) -> None:
    """Though its values are right, or right within what such a dtype can say."""
    ones = np.ones((8, 12))
    assert reason(word, sharded(ones, dtype=dtype, due="float32"), ones) == f"the result is {dtype}, expected float32"


def test_zeros_of_a_coarse_dtype_do_not_pass() -> None:
    """The tolerance of float8 was as wide as the values."""
    zeros = sharded(np.zeros((8, 12)), dtype="float8_e5m2", due="float32")
    assert reason(expect_close, zeros, A) == "the result is float8_e5m2, expected float32"
    assert reason(expect_close, zeros, A, dtype=None).endswith("every value is zero")


def test_an_author_may_ask_for_another_dtype() -> None:
    counts = sharded(np.arange(8), ("x",), dtype="int32", due="float32")
    expect_equal(counts, np.arange(8), dtype="int32")
    expect_close(counts, np.arange(8), dtype="int32")
    expect_close(counts, np.arange(8), dtype=None)
    assert reason(expect_equal, counts, np.arange(8)) == "the result is int32, expected float32"
    assert reason(expect_equal, counts, np.arange(8), dtype="bool") == "the result is int32, expected bool"


def test_any_dtype_will_do_only_if_it_is_accurate_enough() -> None:
    rounded = sharded(A, dtype="bfloat16", due="float32")
    assert "values are wrong" in reason(expect_close, rounded, A, dtype=None)
    expect_close(sharded(A, dtype="float64", due="float32"), A, dtype=None)


def test_a_dtype_that_nothing_settles_is_the_authors_fault() -> None:
    got = replace(sharded(A), due=None)
    with pytest.raises(ValueError, match="do not settle the dtype of the result: name it, dtype='float32'"):
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
def test_the_arguments_settle_the_dtype(dtypes: list[str], due: str | None) -> None:
    """Where they do, JAX gives the result of both that dtype, too."""
    args = {f"a{i}": normal(8, dtype=dtype) for i, dtype in enumerate(dtypes)}
    found = Call(Task("f", "array", print), args, {}, (), {}, {}).dtype
    assert (found and found.name) == due
    if due and "float8" not in due:
        assert jnp.result_type(*(jnp.dtype(dtype) for dtype in dtypes)) == due


def test_zero_has_no_sign() -> None:
    expect_equal(sharded(np.full(8, -0.0)), np.zeros(8))
    expect_close(sharded(np.full(8, -0.0)), np.zeros(8))


def test_nothing_has_no_wrong_values() -> None:
    empty = np.zeros((0, 4))
    expect_close(sharded(empty), empty)
    assert reason(expect_close, sharded(empty), A) == "the result has shape (0, 4), expected (8, 12)"


# -- shapes, in the words of who wrote what was returned


@pytest.mark.parametrize(
    ("got", "want", "told"),
    [
        (sharded(A, ("x",), per_device=True), (32, 12), "(2, 12), expected (8, 12); put together that is (8, 12), expected (32, 12)"),
        (sharded(A, (), per_device=True), (2, 12), "(8, 12), expected (2, 12)"),
        (sharded(A, ("x",), per_device=True), (6, 12), "(2, 12); put together that is (8, 12), expected (6, 12)"),
        (sharded(A, ("x",), per_device=True), (), "(2, 12); put together that is (8, 12), expected ()"),
        (sharded(A[:, 0], ("x",), per_device=True), (8, 12), "(2,), expected (2, 12); put together that is (8,), expected (8, 12)"),
        (sharded(A[:0], ("x",), per_device=True), (8, 12), "(0, 12); put together that is (0, 12), expected (8, 12)"),
    ],
)  # fmt: skip
def test_of_a_body_the_shape_that_each_device_returns_is_told(got: Sharded, want: tuple, told: str) -> None:
    assert reason(expect_close, got, np.zeros(want)) == f"each device returns shape {told}"


# -- what a learner returned is never an error of ours


@pytest.mark.parametrize(
    ("got", "told"),
    [
        ([], "returned nothing; is a return missing?"),
        ([sharded(A)], "the result should be one array, not a tuple of 1"),
        ((sharded(A), sharded(A)), "the result should be one array, not a tuple of 2"),
        (None, "the result should be one array, not NoneType"),
    ],
)
def test_what_is_not_one_array_is_told_by_every_word(got: object, told: str) -> None:
    for word, asked in ((expect_close, A), (expect_equal, A), (expect_spec, P("x")), (expect_dtype, "float32")):
        assert reason(word, got, asked) == told


@pytest.mark.parametrize("got", [sharded(A[0]), sharded(A[:6])])
def test_an_array_of_another_shape_has_another_layout(got: object) -> None:
    assert "shape" in reason(expect_spec, got, P("x", "y"))


def test_a_huge_integer_is_a_wrong_number() -> None:
    assert not same_outcome(value(10**400), value(1.5), rtol=0.1)


def test_infinity_is_infinity() -> None:
    assert same_outcome(value(math.inf), value(math.inf), rtol=0.1)
    assert not same_outcome(value(-math.inf), value(math.inf), rtol=0.1)


# -- more of what failures say


def test_a_layout_that_differs_comes_with_both_pictures() -> None:
    with pytest.raises(Failure) as failure:
        expect_spec(sharded(A, ("x",)), P(None, "x"))
    assert (failure.value.expected, failure.value.actual) == ("P(None, 'x')", "P('x')")
    assert failure.value.layouts is not None
    mine, wanted = failure.value.layouts
    assert mine[2] != wanted[2] and len(mine[2]) == len(wanted[2]) == 8


def test_a_tuple_of_axes_is_one_budget_in_any_order_and_not_two() -> None:
    joint = seen(collective("all_reduce", "x", "y"))
    expect_collectives(joint, all_reduce={("x", "y"): 1})
    assert "all_reduce over x and y" in reason(expect_collectives, joint, all_reduce={"x": 1, "y": 1})


def test_a_budget_of_zero_is_none() -> None:
    expect_collectives(seen(), all_gather={"x": 0})
    assert reason(expect_collectives, seen(collective("all_gather", "x")), all_gather={"x": 0}).endswith(
        "no communication is needed"
    )


def test_what_is_found_and_wanted_is_data_too() -> None:
    with pytest.raises(Failure) as failure:
        expect_collectives(seen(collective("all_gather", "x", line=4)), reduce_scatter={("x", "y"): 2})
    assert failure.value.expected == {"reduce_scatter x,y": 2}
    assert failure.value.actual == {"all_gather x": 1} and failure.value.where == "line 4"


def test_groups_that_follow_no_axis_never_fit_a_budget() -> None:
    text = reason(expect_collectives, seen(collective("all_reduce")), all_reduce={"x": 1})
    assert text.startswith("all_reduce over devices that follow no mesh axis")


def test_only_local_work() -> None:
    expect_only(seen())
    assert reason(expect_only, seen(collective("permute", "x"))) == (
        "permute over x is not allowed here, only local work"
    )


def test_traffic_in_a_loop_of_unknown_length_fails_on_its_axis_only() -> None:
    unknown = seen(collective("permute", "x", count=None), collective("permute", "y", sent=5))
    assert "rounds cannot be read" in reason(expect_traffic, unknown, at_most=1e9)
    assert "rounds cannot be read" in reason(expect_traffic, unknown, at_most=1e9, axis="x")
    expect_traffic(unknown, at_most=5, axis="y")


def test_traffic_of_a_joint_group_counts_on_each_of_its_axes() -> None:
    joint = seen(collective("all_gather", "x", "y", sent=7))
    for axis in ("x", "y"):
        expect_traffic(joint, at_most=7, axis=axis)
        assert "each device sends 7 B" in reason(expect_traffic, joint, at_most=6, axis=axis)


@pytest.mark.parametrize("word", [expect_memory, expect_flops, expect_traffic])
def test_a_budget_that_is_nan_is_never_met(word: object) -> None:
    got = seen(collective("permute", "x", sent=1), memory=1, flops=1)
    with pytest.raises((Failure, ValueError)):
        word(got, at_most=math.nan)  # type: ignore[operator]


# -- more outcomes


@pytest.mark.parametrize(
    ("got", "want", "same"),
    [
        ([1, [2]], (1, (2,)), True),
        ((1, 2), (1, 2, 3), False),
        ((1, 2, 3), (1, 2), False),
        (1, (1,), False),
        ((1,), 1, False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1, "b": 1}, {"a": 1}, False),
        ([("a", 1)], {"a": 1}, False),
        (slice(0, 2), slice(0, 2), True),
        (slice(0, 2), slice(0, 2, 1), True),
        (slice(0, 2.0), slice(0, 2), False),
        (slice(0, 2), slice(0, 3), False),
        (slice(False, 2), slice(0, 2), False),
        (slice(0, "x"), slice(0, 2), False),
        ((0, 2), slice(0, 2), False),
        ("x", "x", True),
        ("x", ("x",), False),
        (None, None, True),
        (None, 0, False),
        (0, None, False),
        (False, None, False),
        ("1", 1, False),
        (True, (True,), False),
        ((True, 0), (1, False), False),
        (("x", None), P("x", None), False),
        (P("x", ("y", "z")), P("x", ("z", "y")), False),
    ],
)
def test_values_are_the_same_only_with_their_kinds(got: object, want: object, same: bool) -> None:
    assert same_outcome(value(got), value(want)) is same


@given(st.floats(1e-3, 1e3), st.floats(1e-6, 0.2))
def test_a_tolerance_is_relative_to_the_reference(want: float, rtol: float) -> None:
    assert same_outcome(value(want * (1 + 0.99 * rtol)), value(want), rtol)
    assert not same_outcome(value(want * (1 + 1.01 * rtol)), value(want), rtol)
    assert not same_outcome(value([want * (1 + 2 * rtol)]), value([want]), rtol)


@pytest.mark.parametrize("want", [1.0, 0.0, (1.0,), {"a": 1.0}])
def test_nan_never_passes_anywhere_in_a_value(want: object) -> None:
    nan = {1.0: math.nan, 0.0: math.nan, (1.0,): (math.nan,)}[want] if not isinstance(want, dict) else {"a": math.nan}
    assert not same_outcome(value(nan), value(want), 0.5) and not same_outcome(value(nan), value(nan), 0.5)


@pytest.mark.parametrize("case", [1, 777])
@pytest.mark.parametrize(
    ("got", "want"),
    [
        (value(1), value(2)),
        (value(2.0), value(2)),
        (value(None), value(2)),
        (value(1), Outcome(error="ValueError")),
        (Outcome(error="KeyError", message="'a'", line=3), value(2)),
    ],
)
def test_of_a_hidden_case_everybody_is_told_the_same(got: Outcome, want: Outcome, case: int) -> None:
    """No count, kind, line or value: a program could put its arguments into any of them."""
    cases = [({"n": 1}, value(0), value(0)), *[({"n": case}, got, want)] * (1 + case % 2)]
    with pytest.raises(Failure) as failure:
        expect_outcomes(seen(outcomes=cases, public=False), ints=True)
    told = failure.value
    assert told.reason == "it is wrong for arguments that are not shown here"
    assert (told.where, told.expected, told.actual, told.layouts) == ("", None, None, None)
    assert f"n={case}" in told.staff


def test_where_keeps_a_part_of_the_cases() -> None:
    cases = [({"n": n}, value(n), value(abs(n))) for n in (-2, 1, 2)]
    expect_outcomes(seen(outcomes=cases), where=lambda args: args["n"] > 0)
    assert "for n=-2 it returned -2" in reason(expect_outcomes, seen(outcomes=cases))
