"""The words of a check: what passes, what fails, and what a failure says."""

from __future__ import annotations

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

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
from grader.observation import Outcome
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
    expect_flops(seen(flops=10), at_most=10)
    assert "each device spends 1,100 FLOPs" in reason(expect_flops, seen(flops=1100), at_most=1000)


def test_bytes_are_shown_in_powers_of_1024() -> None:
    assert [show_bytes(n) for n in (0, 1023, 1024, 1536, 3 << 20)] == ["0 B", "1023 B", "1 KiB", "1.5 KiB", "3 MiB"]


# -- outcomes


def value(v: object) -> Outcome:
    return Outcome(value=v)


def test_a_list_counts_as_a_tuple_and_a_float_is_no_int() -> None:
    assert same_outcome(value([2, 3]), value((2, 3)))
    assert not same_outcome(value((2.0, 3)), value((2, 3)))
    assert not same_outcome(value(True), value(1)) and not same_outcome(value(1), value(True))
    assert same_outcome(value(5), value(5.0)) and same_outcome(value(1.0001), value(1.0), rtol=1e-3)
    assert not same_outcome(value(float("nan")), value(1.0), rtol=0.5)


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
    assert hidden.value.reason == "in 1 of 1 hidden cases it is wrong: gives a wrong value"
    assert hidden.value.staff == "for n=3 it returned 4, expected: it returned 5" and hidden.value.expected is None


def test_a_check_that_selects_no_case_is_the_authors_fault() -> None:
    with pytest.raises(ValueError, match="selects no case"):
        expect_outcomes(seen(outcomes=[({"n": 3}, value(4), value(4))]), where=lambda args: args["n"] > 9)
