"""Budgets of collectives and of traffic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.common.intervals import UNKNOWN, Interval
from grader.expect import (
    Failure,
    expect_at_most,
    expect_collectives,
    expect_flops,
    expect_no_collectives,
    expect_only,
    expect_traffic,
)
from tests.seen import collective, reason, seen


def test_the_required_collectives_pass() -> None:
    expect_collectives(seen(collective("all_gather", "x")), all_gather={"x": 1})
    expect_collectives(seen(collective("all_reduce", "x", "y")), all_reduce={("y", "x"): 1})
    expect_no_collectives(seen())


def test_expect_at_most_accepts_fewer_collectives() -> None:
    two = collective("all_gather", "x", count=2, line=7)
    for allowed in (2, 3):
        expect_at_most(seen(two), all_gather={"x": allowed})
    expect_at_most(seen(), all_gather={"x": 1})
    told = reason(expect_at_most, seen(two), all_gather={"x": 1})
    assert told == "line 7: all_gather over x 2 times (64 B sent by each device); the budget is all_gather over x"
    assert "permute over x" in reason(expect_at_most, seen(two, collective("permute", "x")), all_gather={"x": 2})
    unknown = seen(collective("all_gather", "x", count=None))
    assert "rounds cannot be read" in reason(expect_at_most, unknown, all_gather={"x": 9})


def test_collectives_in_loops_are_multiplied_by_the_rounds() -> None:
    expect_collectives(seen(collective("permute", "x", count=3)), permute={"x": 3})
    assert "permute over x 3 times" in reason(
        expect_collectives, seen(collective("permute", "x", count=3)), permute={"x": 2}
    )


def test_an_unexpected_collective_is_reported_with_its_line_and_bytes() -> None:
    text = reason(expect_collectives, seen(collective("all_gather", "x", line=14, sent=3072)), reduce_scatter={"x": 1})
    assert text == "line 14: all_gather over x (3 KiB sent by each device); the budget is reduce_scatter over x"


def test_the_message_names_a_notebooks_cell_and_line() -> None:
    text = reason(expect_no_collectives, seen(collective("all_gather", "x", line=3, file="cell 7")))
    assert text.startswith("cell 7, line 3: all_gather over x") and text.endswith("no communication is needed")


def test_a_missing_collective_is_reported() -> None:
    text = reason(expect_collectives, seen(), all_reduce={"x": 1})
    assert text == "the budget is all_reduce over x; the program has none"


def test_the_message_has_the_word_once_for_one_collective() -> None:
    text = reason(expect_collectives, seen(collective("all_reduce", "x")), all_reduce={"x": 3})
    assert text == "the budget is all_reduce over x 3 times; the program has all_reduce over x once"


def test_a_budget_on_an_axis_of_size_1_requires_nothing() -> None:
    expect_collectives(seen(mesh={"x": 8, "y": 1}), all_gather={"y": 1})


def test_a_collective_in_a_loop_of_unknown_rounds_fails() -> None:
    text = reason(expect_collectives, seen(collective("permute", "x", count=None, line=4)), permute={"x": 3})
    assert "line 4: permute over x runs in a loop whose number of rounds cannot be read" in text


def test_collectives_added_by_the_compiler_are_reported_as_such() -> None:
    text = reason(expect_no_collectives, seen(collective("all_gather", "x", by_compiler=True)))
    assert text.startswith("added by the compiler, because shardings do not match: all_gather over x")


def test_expect_only_reports_the_collective_that_is_not_allowed() -> None:
    expect_only(seen(collective("permute", "x", count=9)), "permute")
    assert "all_gather over x is not allowed here; use only permute" in reason(
        expect_only, seen(collective("all_gather", "x")), "permute"
    )


def test_expect_only_does_not_fail_when_measuring() -> None:
    program = replace(seen(collective("all_gather", "x", sent=10)), measuring=True)
    expect_only(program, "permute")
    expect_traffic(program, at_most=0)
    assert [(use.word, use.amount) for use in program.spent] == [("expect_traffic", 10)]


def test_traffic_is_summed_by_line_before_a_line_is_blamed() -> None:
    twice = [collective("reduce_scatter", "x", sent=60, line=63)] * 2
    text = reason(expect_traffic, seen(collective("all_gather", "x", sent=70, line=59), *twice), at_most=150)
    assert (
        text
        == "each device sends 190 B, the budget is 150 B; the largest part is sent by line 63: reduce_scatter over x"
    )


def test_traffic_is_counted_over_one_axis_or_all_axes() -> None:
    both = seen(collective("permute", "x", sent=10, count=3), collective("all_gather", "y", sent=100))
    assert both.traffic == {"x": 30, "y": 100}
    expect_traffic(both, at_most=130)
    expect_traffic(both, at_most=30, axis="x")
    assert "each device sends 130 B, the budget is 129 B; the largest part is sent by all_gather over y" in reason(
        expect_traffic, both, at_most=129
    )
    assert reason(expect_traffic, both, at_most=29, axis="x").startswith("each device sends 30 B")


def test_traffic_over_one_of_several_axes_counts_each_collective_once() -> None:
    program = seen(
        collective("all_gather", "x", sent=1), collective("all_reduce", "x", "y", sent=10),
        collective("permute", "z", sent=100),
    )  # fmt: skip
    expect_traffic(program, at_most=11, axis=("x", "y"))
    text = reason(expect_traffic, program, at_most=10, axis=("x", "y"))
    assert (
        text
        == "each device sends 11 B over x or y, the budget is 10 B; the largest part is sent by all_reduce over x and y"
    )
    text = reason(expect_traffic, program, at_least=12, axis=("x", "y"))
    assert text == "each device sends 11 B over x or y, but 12 B are needed"


def test_expect_traffic_without_a_number_is_the_authors_mistake() -> None:
    with pytest.raises(ValueError, match=r"^expect_traffic: give at_most=... or at_least=...$"):
        expect_traffic(seen())


def test_too_few_bytes_are_reported() -> None:
    program = seen(collective("permute", "x", sent=10), collective("all_gather", "y", sent=100))
    expect_traffic(program, at_least=110)
    assert reason(expect_traffic, program, at_least=111) == "each device sends 110 B, but 111 B are needed"
    assert (
        reason(expect_traffic, program, at_least=11, axis="x") == "each device sends 10 B over x, but 11 B are needed"
    )
    expect_traffic(replace(program, measuring=True), at_least=111)


def test_amounts_that_cannot_be_counted_fail_and_are_not_the_graders_fault() -> None:
    """Nested loops can have counts too large for a float. Earlier, they raised errors in the grader, and cost no points."""
    many = Interval.of(1)
    for _ in range(40):
        many *= 2**31
    assert not many.known and many.least > 1e70 and str(many * UNKNOWN + UNKNOWN)
    found = seen(collective("all_reduce", "x", count=many, sent=many), flops=many, dot_flops=many)
    assert "cannot be counted" in reason(expect_flops, found, at_most=10.0)
    assert "unknown" in reason(expect_traffic, found, at_most=10.0)
    assert "cannot be read" in reason(expect_collectives, found, all_reduce={"x": 1})


def test_budgets_apply_to_the_most_and_requirements_to_the_least() -> None:
    maybe = seen(collective("permute", "x", sent=10, path=((0, 0, 2),)))
    expect_traffic(maybe, at_most=10)
    assert reason(expect_traffic, maybe, at_most=9).startswith("a device sends up to 10 B, the budget is 9 B")
    text = reason(expect_collectives, maybe, permute={"x": 1})
    assert text == "the budget is permute over x; the program has permute over x 0 to 1 times"
    assert "0 to 1 times" in reason(expect_no_collectives, maybe)


def test_the_recorded_use_of_a_budget_is_the_number_of_runs_that_differs_from_it() -> None:
    """A path with fewer runs than the budget shows that the budget is not used up everywhere."""
    for budget, used in ((1, 0), (2, 1)):
        maybe = seen(collective("permute", "x", sent=10, path=((0, 0, 2),)))
        expect_at_most(maybe, permute={"x": budget})
        assert [(use.word, use.amount, use.budget) for use in maybe.spent] == [("expect_at_most", used, budget)]


def test_expect_only_ignores_collectives_that_never_run() -> None:
    expect_only(seen(collective("all_gather", "x", count=0)), "permute")


def test_traffic_is_that_of_the_device_that_sends_the_most() -> None:
    hops = [collective("permute", "x", sent=Interval(0, 32768), senders=(i,)) for i in range(3)]
    expect_traffic(seen(*hops), at_most=32768)
    assert reason(expect_traffic, seen(*hops), at_most=1024).startswith(
        "a device sends up to 32 KiB, the budget is 1 KiB"
    )


def test_a_tuple_of_axes_is_one_budget_in_any_order_and_not_two() -> None:
    joint = seen(collective("all_reduce", "x", "y"))
    expect_collectives(joint, all_reduce={("x", "y"): 1})
    assert "all_reduce over x and y" in reason(expect_collectives, joint, all_reduce={"x": 1, "y": 1})


def test_a_budget_of_zero_allows_no_collective() -> None:
    expect_collectives(seen(), all_gather={"x": 0})
    assert reason(expect_collectives, seen(collective("all_gather", "x")), all_gather={"x": 0}).endswith(
        "no communication is needed"
    )


def test_a_failure_holds_the_expected_and_actual_collectives_as_data() -> None:
    with pytest.raises(Failure) as failure:
        expect_collectives(seen(collective("all_gather", "x", line=4)), reduce_scatter={("x", "y"): 2})
    assert failure.value.expected == {"reduce_scatter x,y": 2}
    assert failure.value.actual == {"all_gather x": 1} and failure.value.where == "line 4"


def test_groups_of_some_devices_do_not_count_as_the_axis_collective() -> None:
    pairs = seen(collective("all_reduce", "x", partial=True))
    text = reason(expect_collectives, pairs, all_reduce={"x": 1})
    assert text.startswith("all_reduce over some of the devices along x (")
    assert text.endswith("; the budget is all_reduce over x")
    both = seen(*pairs.collectives, collective("all_reduce", "x"))
    assert reason(expect_collectives, both, all_reduce={"x": 2}).startswith("all_reduce over some of the devices")


def test_groups_of_some_devices_count_under_every_axis_that_they_cross() -> None:
    pairs = seen(collective("all_reduce", "x", "y", partial=True))
    for axis in ("x", "y"):
        assert f" over {axis}, the budget is 0 B" in reason(expect_traffic, pairs, at_most=0, axis=axis)
        assert pairs.only(axis=axis).collectives == pairs.collectives
    expect_traffic(pairs, at_most=0, axis="z")


def test_expect_only_without_kinds_allows_no_collective() -> None:
    expect_only(seen())
    assert reason(expect_only, seen(collective("permute", "x"))) == (
        "permute over x is not allowed here; use only local work"
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


# -- selected collectives ----------------------------------------------------------------------


def test_only_selects_collectives_by_kind_axis_or_dtype() -> None:
    many = seen(
        collective("all_gather", "x", operands=(("bfloat16", (4,)),)),
        collective("all_reduce", "x", "y", operands=(("float32", (4,)),), sent=96),
        flops=8,
    )
    expect_collectives(many.only(kind="all_gather"), all_gather={"x": 1})
    expect_collectives(many.only(axis="y"), all_reduce={("x", "y"): 1})
    expect_traffic(many.only(dtype="bfloat16"), at_most=64)
    expect_traffic(many.only(dtype="float32", axis="x"), at_most=96)
    expect_no_collectives(many.only(kind="permute"))
    assert many.only(kind="permute").flops == Interval(0, 8)


def test_a_collective_of_unknown_pass_or_dtype_counts_only_in_the_most() -> None:
    unknown = seen(collective("all_gather", "x", line=3), differentiated=True)
    for part, words in ((True, "backward"), (False, "forward")):
        chosen = unknown.only(backward=part)
        told = reason(expect_collectives, chosen, all_gather={"x": 1})
        assert (
            told
            == f"the budget is all_gather over x; the program has all_gather over x 0 to 1 times in the {words} pass"
        )
        told = reason(expect_no_collectives, chosen)
        assert told.startswith("line 3: all_gather over x 0 to 1 times (64 B sent by each device) in the " + words)
        with pytest.raises(Failure):
            expect_traffic(chosen, at_most=63)
    known = seen(collective("all_gather", "x", backward=True), differentiated=True)
    expect_no_collectives(known.only(backward=False))
    expect_collectives(known.only(backward=True), all_gather={"x": 1})
    mixed = seen(collective("all_reduce", "x", operands=(("float32", ()), ("bfloat16", ()))))
    (chosen,) = mixed.only(dtype="float32").collectives
    assert (chosen.dtype, chosen.shape, chosen.sent) == (None, None, Interval(0, 64))
