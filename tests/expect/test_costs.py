"""Budgets of memory and of FLOPs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from grader.common.budget import BudgetUse
from grader.common.intervals import UNKNOWN, Interval
from grader.expect import (
    Failure,
    between,
    expect_at_most,
    expect_collectives,
    expect_flops,
    expect_memory,
    expect_no_collectives,
    expect_other_flops,
    expect_traffic,
    needed,
    show_bytes,
    show_time,
)
from grader.expect.costs import as_different_texts
from tests.seen import collective, reason, seen


def test_memory_and_flops_have_budgets() -> None:
    expect_memory(seen(memory=1024), at_most=1024)
    assert "needs 2 KiB of temporary memory per device, the budget is 1 KiB" in reason(
        expect_memory, seen(memory=2048), at_most=1024
    )
    expect_flops(seen(flops=20, dot_flops=10), at_most=10)
    assert "each device spends 1,100 FLOPs" in reason(expect_flops, seen(flops=1100, dot_flops=1100), at_most=1000)


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (2048, 1024, ("2 KiB", "1 KiB")),
        (12_700, 12_680, ("12.40 KiB", "12.38 KiB")),
        (2048, 2049, ("2 KiB", "2.001 KiB")),
        (1 << 30, (1 << 30) + 1, ("1 GiB", "1.000000001 GiB")),
        (5, 5, ("5 B", "5 B")),
        (1e300, math.inf, (show_bytes(1e300), "inf")),
    ],
)
def test_two_amounts_have_enough_digits_to_differ(one: float, other: float, shown: tuple[str, str]) -> None:
    assert as_different_texts(show_bytes, one, other) == shown


def test_a_narrowly_missed_budget_differs_from_the_amount_in_the_message() -> None:
    told = reason(expect_memory, seen(memory=12_700), at_most=12_699)
    assert "needs 12.402 KiB of temporary memory per device, the budget is 12.401 KiB" in told
    assert as_different_texts(show_time, 298_970_001, 298_970_000, 5) == ("298.970001 us", "298.97 us")


def test_arithmetic_besides_matmuls_has_its_own_budget() -> None:
    expect_flops(seen(flops=20, dot_flops=10), at_most=10)
    assert "each device spends 11 FLOPs besides matmuls, the budget is 10" in reason(
        expect_flops, seen(flops=21, dot_flops=10), at_most=10
    )
    assert "cannot be counted: the number of a loop" in reason(expect_flops, seen(flops=UNKNOWN), at_most=math.inf)


def test_expect_flops_requires_matmuls_that_are_sure_to_run() -> None:
    expect_flops(seen(dot_flops=10), at_least=10)
    told = "each device spends 0 FLOPs on matmuls that are sure to run, but 10 are needed; is part of the work missing?"
    for spent in (0, UNKNOWN, Interval(0, 10)):
        assert told in reason(expect_flops, seen(dot_flops=spent), at_least=10)
    with pytest.raises(ValueError, match=r"give at_most=.* or at_least="):
        expect_flops(seen())
    with pytest.raises((Failure, ValueError)):
        expect_flops(seen(dot_flops=10), at_least=math.nan)


def test_a_budget_is_between_a_right_and_a_wrong_program() -> None:
    budget = between(100, 400)
    assert (budget, budget.right, budget.wrong) == (200, 100, 400)
    expect_memory(seen(memory=200), at_most=budget)
    assert "needs 201 B of temporary memory per device, the budget is 200 B" in reason(
        expect_memory, seen(memory=201), at_most=budget
    )


@pytest.mark.parametrize(
    ("right", "wrong"), [(100, 149), (100, 100), (400, 100), (0, 1), (100, math.inf), (math.nan, 2)]
)
def test_between_refuses_amounts_that_are_too_close(right: float, wrong: float) -> None:
    with pytest.raises(ValueError, match=r"but must need at least 1.5 times as much as right programs"):
        between(right, wrong)
    assert between(100, 150) == 122


def test_between_leaves_room_for_other_styles() -> None:
    budget = between(100, 800, styles=2)
    assert (budget, budget.right, budget.wrong) == (400, 100, 800)
    with pytest.raises(ValueError, match=r"1.5 times as much as right programs, which need up to 200; choose sizes"):
        between(100, 290, styles=2)


def test_between_does_not_round_a_budget_below_one() -> None:
    assert between(0.002, 0.008) == pytest.approx(0.004)


def test_between_takes_the_budget_that_a_statement_names() -> None:
    budget = between(100, 200, at=115)
    assert (budget, budget.right, budget.wrong) == (115, 100, 200)
    assert between(6, 12, at=6) == 6
    for outside in (99, 200, math.nan):
        with pytest.raises(
            ValueError, match=r"at=.* is not between the amounts of right programs, 100, and of the wrong program, 200"
        ):
            between(100, 200, at=outside)


def test_a_known_amount_is_the_budget() -> None:
    budget = needed(100, 150)
    assert (budget, budget.right, budget.wrong, budget.known) == (100, 100, 150, True)
    assert needed(100, 150, at=136) == 136
    assert needed(0, 1, at=0.5) == 0.5  # a right program may need 0 FLOPs
    assert needed(100, 110, near="the nearest wrong program sends one block more") == 100
    assert not between(100, 150).known


@pytest.mark.parametrize(
    ("right", "wrong", "more"),
    [
        (100, 149, {}),
        (100, 100, {"near": "there is no other"}),
        (100, 150, {"at": 150}),
        (100, 150, {"at": 99}),
        (0, 1, {}),
        (100, math.inf, {}),
        (math.nan, 2, {}),
    ],
)
def test_a_wrong_program_must_need_more_than_a_known_amount(right: float, wrong: float, more: Any) -> None:
    with pytest.raises(ValueError, match=r"the wrong program needs|is not between"):
        needed(right, wrong, **more)


def test_a_selection_of_collectives_records_budgets_in_the_whole_seen() -> None:
    whole, budget = seen(memory=300), between(100, 400)
    with pytest.raises(Failure):
        expect_memory(whole.only(kind="permute"), at_most=budget)
    assert whole.spent == [BudgetUse("expect_memory", 300, budget)]
    assert seen().spent == []


@pytest.mark.parametrize("word", [expect_memory, expect_flops, expect_traffic])
@pytest.mark.parametrize("got", [seen(), seen(collective("permute", "x"), memory=1, flops=9, dot_flops=4)])
def test_a_budget_that_is_not_finite_raises_only_failure(word: object, got: object) -> None:
    with pytest.raises(Failure):
        word(got, at_most=math.nan)  # type: ignore[operator]
    with pytest.raises(Failure):
        word(got, at_most=-math.inf)  # type: ignore[operator]


def test_each_expect_function_records_its_amount_and_budget() -> None:
    program, count = seen(collective("permute", "x"), flops=6, dot_flops=4), between(1, 2, at=1)
    expect_flops(program, at_most=9)
    expect_other_flops(program, at_most=8)
    expect_at_most(program, permute={"x": count})
    expect_collectives(program, permute={"x": 1})
    with pytest.raises(Failure):
        expect_no_collectives(program)
    over_x = "permute over x"
    assert program.spent == [
        BudgetUse("expect_flops", 4, 9),
        BudgetUse("expect_other_flops", 2, 8),
        BudgetUse("expect_at_most", 1, count, over_x),
        BudgetUse("expect_collectives", 1, 1, over_x),
        BudgetUse("expect_collectives", 1, 0),
    ]
    with pytest.raises(Failure):
        expect_traffic(program, at_most=0)
    assert (program.spent[-1].word, program.spent[-1].budget) == ("expect_traffic", 0)
    twice = seen(*[collective("permute", "x")] * 2)
    assert "permute over x 2 times" in reason(expect_at_most, twice, permute={"x": count})


def test_measuring_records_each_comparison_and_fails_none() -> None:
    program = replace(seen(collective("permute", "x"), memory=9, flops=9, dot_flops=4), measuring=True)
    expect_collectives(program, all_gather={"x": 1})
    expect_at_most(program, all_gather={"x": 1})
    expect_traffic(program, at_most=0)
    expect_flops(program, at_most=1)
    expect_other_flops(program, at_most=1)
    expect_memory(program.only(kind="permute"), at_most=between(2, 4))
    assert [use.word for use in program.spent] == [
        "expect_collectives",
        "expect_at_most",
        "expect_traffic",
        "expect_flops",
        "expect_other_flops",
        "expect_memory",
    ]


def test_bytes_are_shown_in_powers_of_1024() -> None:
    assert [show_bytes(n) for n in (0, 1023, 1024, 1536, 3 << 20)] == ["0 B", "1023 B", "1 KiB", "1.5 KiB", "3 MiB"]


@pytest.mark.parametrize("word", [expect_memory, expect_flops, expect_traffic])
def test_a_budget_that_is_nan_is_never_met(word: object) -> None:
    got = seen(collective("permute", "x", sent=1), memory=1, flops=1)
    with pytest.raises((Failure, ValueError)):
        word(got, at_most=math.nan)  # type: ignore[operator]
