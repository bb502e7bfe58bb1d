"""Results and errors of plain functions, compared with the reference's."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.common.observation import Outcome
from grader.expect import (
    Failure,
    expect_outcomes,
    same_outcome,
)
from grader.wire.frames import NOT_PLAIN, NotPlain, decode, encode
from tests.seen import reason, seen


def value(v: object) -> Outcome:
    return Outcome(value=v)


def test_equal_values_of_similar_types_are_right() -> None:
    """For example, a list equals a tuple, a whole float an integer, and ``slice(1, 2, 1)`` equals ``slice(1, 2)``."""
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


def test_complex_numbers_are_compared() -> None:
    assert same_outcome(value(1j), value(1j)) and same_outcome(value(2), value(2 + 0j))
    assert not same_outcome(value(-1j), value(1j)) and not same_outcome(value(5 + 0j), value(5))
    assert same_outcome(value(1.0001j), value(1j), rtol=1e-3) and not same_outcome(value(1.1j), value(1j), rtol=1e-3)
    assert not same_outcome(value(complex("nanj")), value(1j), rtol=0.5)
    text = reason(expect_outcomes, seen(outcomes=[({"n": 2}, value(-1j), value(1j))]))
    assert text == "for n=2 the function returned (-0-1j), but the solution returned 1j"


def test_unreduced_axes_are_part_of_a_spec() -> None:
    pending = P("x", unreduced=frozenset({"z", "y"}))
    assert same_outcome(value(P("x", None, unreduced=frozenset({"y", "z"}))), value(pending))
    assert not same_outcome(value(P("x")), value(pending))
    assert not same_outcome(value(P("x", unreduced=frozenset({"y"}))), value(pending))
    text = reason(expect_outcomes, seen(outcomes=[({"spec": pending}, value(P("x")), value(pending))]))
    shown = "P('x', unreduced={'y', 'z'})"
    assert text == f"for spec={shown} the function returned P('x'), but the solution returned {shown}"


def test_a_spec_with_reduced_axes_cannot_be_returned() -> None:
    with pytest.raises(NotPlain):
        encode(P("x", reduced=frozenset({"y"})))


FLOAT = "is a float where an int is needed: use //"


@pytest.mark.parametrize(
    ("got", "want", "ints", "note"),
    [
        ((3.0, 4), (3, 4), True, f"; 3.0 {FLOAT}"),
        ({0: (slice(0, 3.0),)}, {0: (slice(0, 3),)}, False, f"; 3.0 {FLOAT}"),
        ((4, 5), (3, 4), True, ""),
        ((4.0, 5), (3, 4), True, f"; 4.0 {FLOAT}"),
        ((0.125, 8), (1, 8), True, "; 0.125 is a float where an int is needed"),
        (None, 3, False, "; is a return missing?"),
    ],
)
def test_a_shape_and_the_bounds_of_a_slice_are_ints(got: object, want: object, ints: bool, note: str) -> None:
    text = reason(expect_outcomes, seen(outcomes=[({"n": 3}, value(got), value(want))]), ints=ints)
    assert text == f"for n=3 the function returned {got!r}, but the solution returned {want!r}{note}"


def test_fractions_decimals_and_numpy_floats_are_compared_as_numbers() -> None:
    """The test encodes and decodes each number, as the grader does with a learner's result."""
    for number in (Fraction(6, 2), Decimal("3.00"), np.float64(3), 3):
        expect_outcomes(seen(outcomes=[({}, value(decode(encode(number))), value(3))]), ints=isinstance(number, int))
    expect_outcomes(seen(outcomes=[({}, value(decode(encode(Fraction(1, 3)))), value(1 / 3))]), rtol=1e-12)
    expect_outcomes(seen(outcomes=[({}, value(decode(encode(Decimal(2**70)))), value(2**70))]))


def test_a_long_value_is_cut() -> None:
    text = reason(expect_outcomes, seen(outcomes=[({"n": 3}, value([1] * 10_000), value(2))]))
    assert len(text) < 500 and "..." in text


def test_a_value_that_cannot_be_returned_is_not_reported_as_raised() -> None:
    got = Outcome(error=NOT_PLAIN, message="returned something that is of type set")
    text = reason(expect_outcomes, seen(outcomes=[({"n": 3}, got, value(2))]))
    assert text == "for n=3 the function returned something that is of type set, but the solution returned 2"


def test_errors_are_compared_by_kind() -> None:
    wanted = Outcome(error="ValueError")
    assert same_outcome(Outcome(error="IndivisibleError", kinds=("IndivisibleError", "ValueError")), wanted)
    assert not same_outcome(Outcome(error="TypeError", kinds=("TypeError",)), wanted)
    assert not same_outcome(value(3), wanted) and not same_outcome(wanted, value(3))


def test_specs_are_equal_up_to_trailing_none() -> None:
    assert same_outcome(value(P("x", None)), value(P("x")))
    assert not same_outcome(value(P(None, "x")), value(P("x")))


def test_hidden_cases_are_reported_to_staff_only() -> None:
    cases = [({"n": 3}, value(4), value(5))]
    with pytest.raises(Failure) as public:
        expect_outcomes(seen(outcomes=cases, public=True))
    assert public.value.reason == "for n=3 the function returned 4, but the solution returned 5"
    with pytest.raises(Failure) as hidden:
        expect_outcomes(seen(outcomes=cases, public=False))
    assert hidden.value.reason == "the function is wrong for arguments that are not shown here"
    assert (
        hidden.value.staff
        == "in 1 of 1 cases the function is wrong: for n=3 the function returned 4, but the solution returned 5"
    )
    assert hidden.value.expected is None


def test_a_check_that_selects_no_case_is_the_authors_fault() -> None:
    with pytest.raises(ValueError, match="selects no case"):
        expect_outcomes(seen(outcomes=[({"n": 3}, value(4), value(4))]), where=lambda args: args["n"] > 9)


def test_a_huge_integer_is_wrong_and_raises_nothing() -> None:
    assert not same_outcome(value(10**400), value(1.5), rtol=0.1)


def test_infinity_equals_only_infinity_of_its_sign() -> None:
    assert same_outcome(value(math.inf), value(math.inf), rtol=0.1)
    assert not same_outcome(value(-math.inf), value(math.inf), rtol=0.1)


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
def test_values_of_different_kinds_are_not_equal(got: object, want: object, same: bool) -> None:
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
def test_all_failures_on_hidden_cases_have_one_message(got: Outcome, want: Outcome, case: int) -> None:
    """A program could hide its arguments in a count, a kind of error, a line or a value. So the message has none of these."""
    cases = [({"n": 1}, value(0), value(0)), *[({"n": case}, got, want)] * (1 + case % 2)]
    with pytest.raises(Failure) as failure:
        expect_outcomes(seen(outcomes=cases, public=False), ints=True)
    failed = failure.value
    assert failed.reason == "the function is wrong for arguments that are not shown here"
    assert (failed.where, failed.expected, failed.actual, failed.layouts) == ("", None, None, ())
    assert f"n={case}" in failed.staff


def test_where_selects_some_of_the_cases() -> None:
    cases = [({"n": n}, value(n), value(abs(n))) for n in (-2, 1, 2)]
    expect_outcomes(seen(outcomes=cases), where=lambda args: args["n"] > 0)
    assert "for n=-2 the function returned -2" in reason(expect_outcomes, seen(outcomes=cases))
