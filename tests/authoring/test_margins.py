"""``verify`` reports a budget that does not separate right programs from wrong ones, or that claims a wrong amount."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.course.loading import load_course
from tests.made_up import made_up
from tests.proved import problems_of
from tests.sampled import sampled

CHECK = '''\
@exercise.check(call, points=1, after=traffic)
def memory(seen):
    """the array is held once"""
    whole = 4 * seen.dims["I"] * seen.dims["J"]
    expect_memory(seen, at_most=BUDGET, by="program", arguments=False)


def more(a, rows):
    """The whole array, held beside a sorted copy of its first rows."""
    whole = secret_helper(a)
    copy = jax.lax.sort(whole[:rows], dimension=0)
    whole, copy = jax.lax.optimization_barrier((whole, copy))
    return whole.at[:rows].add(0 * copy)


def gathered(a, mesh, rows):
    local = lambda a: more(a, rows)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


'''
MISCONCEPTION = '''\
@exercise.misconception(fails=memory)
def held_twice(a, *, mesh):
    """You kept a copy of the whole array."""
    return gathered(a, mesh, a.shape[0])


'''
STYLE = '''\
@exercise.alternative()
def quarter_beside(a, *, mesh):
    """A quarter of the array is held twice."""
    return gathered(a, mesh, a.shape[0] // 4)


'''
SENT = '''\
@exercise.check(call, points=1, after=traffic)
def sent(seen):
    """each device sends its part once"""
    sent_once = 4 * seen.dims["I"] * seen.dims["J"] * (seen.mesh["x"] - 1) / seen.mesh["x"]
    expect_traffic(seen, at_most=BUDGET)


'''
SENT_TWICE = '''\
@exercise.misconception(fails=sent)
def sent_with_a_copy(a, *, mesh):
    """You sent each part beside a copy of it."""
    local = lambda a: secret_helper(jax.numpy.stack([a, 2 * a], axis=1)).sum(1) / 3
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


'''
PADDED = '''\
@exercise.alternative()
def padded(a, *, mesh):
    """Each device sends one more row."""
    def local(a):
        more = secret_helper(jax.numpy.concatenate([a, a[:1]]))
        return more.reshape(-1, len(a) + 1, a.shape[1])[:, :-1].reshape(-1, a.shape[1])
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


'''
TIMES = '''\
@exercise.check(call, points=1, after=value)
def gathers(seen):
    """a gather or two"""
    expect_at_most(seen.only(kind="all_gather"), all_gather={"x": BUDGET})


'''
SEVERAL = '''\
def again(a, mesh, times):
    local = lambda a: sum(secret_helper(a * (n + 1)) for n in range(times)) / (times * (times + 1) / 2)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


@exercise.misconception(fails=[traffic, gathers])
def four_gathers(a, *, mesh):
    """You gathered four times."""
    return again(a, mesh, 4)


'''
SENT_ON = '''\
@exercise.misconception(fails=[traffic, gathers])
def sent_on(a, *, mesh):
    """You sent the parts round once more."""
    def local(a):
        n = jax.lax.axis_size("x")
        return secret_helper(jax.lax.ppermute(jax.lax.ppermute(a, "x", [(i, (i + 1) % n) for i in range(n)]),
                                              "x", [((i + 1) % n, i) for i in range(n)]))
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


'''
MEND = (
    "but no misconception has a different amount; add such a misconception, or choose sizes where a misconception has "
    "a different amount"
)
ALONE = SENT.replace("after=traffic", "after=value")
Problems = Callable[..., list[str]]


def none_beyond(budget: str) -> str:
    return (
        f"no misconception exceeds the budget of {budget}: add such a misconception, or choose sizes where a "
        "misconception exceeds the budget"
    )


@pytest.fixture
def declared(workers: Workers, tmp_path: Path) -> Problems:
    """Return the problems of a course with additional declarations and replaced texts."""

    def declared(*declared: str, **replaced: str) -> list[str]:
        made_up(tmp_path)
        path = tmp_path / "solutions/01_gather/x1_gather.py"
        words = "between, expect_at_most, expect_memory, expect_traffic, needed"
        text = path.read_text().replace("import expect_close", f"import {words}, expect_close")
        first = "@exercise.misconception(fails=value)\n"
        text = text.replace(first, "".join(declared) + first, 1)
        for was, becomes in replaced.items():
            text = text.replace(was, becomes)
        path.write_text(text)
        grader = Grader(load_course(tmp_path / "course.yaml"), "none", here=cast(Any, workers))
        return problems_of(grader)

    return declared


@pytest.fixture
def problems(declared: Problems) -> Problems:
    """Return the problems of a course whose check ``memory`` has this budget, with additional declarations."""
    return lambda budget, *more: declared(CHECK, *more, BUDGET=budget)


def test_a_budget_with_room_on_both_sides_is_no_problem(problems: Problems) -> None:
    assert problems("between(whole, 2 * whole)", MISCONCEPTION, STYLE) == []


@pytest.mark.parametrize(
    ("budget", "wrong", "shown"),
    sampled(
        1,
        [
            (
                "2",
                (TIMES, SEVERAL),
                "gathers on (x=4) with I=8, J=3: the budget of expect_at_most (all_gather over x), 2",
            ),
            ("sent_once", (SENT, SENT_TWICE), "sent on (x=4) with I=8, J=3: the budget of expect_traffic, 72 B"),
            (
                "1.5 * whole",
                (CHECK, MISCONCEPTION),
                "memory on (x=4) with I=8, J=3: the budget of expect_memory, 144 B",
            ),
        ],
    ),
    ids=["counts", "bytes", "memory"],
)
def test_a_plain_number_is_refused(declared: Problems, budget: str, wrong: tuple[str, str], shown: str) -> None:
    assert declared(*wrong, BUDGET=budget) == [
        f"{shown}, is a plain number: write needed(right, wrong) or between(right, wrong), with the amounts that the "
        "cheapest right program and the cheapest wrong program need"
    ]


@pytest.mark.parametrize(
    ("budget", "problem"),
    sampled(
        1,
        [
            (
                "between(1.2 * whole, 2 * whole)",
                "the budget says that right programs need at least 115 B, but the cheapest, the reference, needs 96 B: write the cheapest program's amount, or change the program",
            ),
            (
                "between(whole, 3 * whole)",
                "the budget says that wrong programs need at least 288 B, but the cheapest, held_twice, needs 192 B: write the cheapest program's amount, or change the program",
            ),
            (
                "between(whole, 1.85 * whole)",
                "the alternative quarter_beside takes 120 B, which is too close to the budget of 130 B",
            ),
        ],
    ),
    ids=["right-is-less", "wrong-is-less", "no-room-for-a-style"],
)
def test_a_budget_without_room_on_both_sides_is_reported(problems: Problems, budget: str, problem: str) -> None:
    found = problems(budget, MISCONCEPTION, STYLE)
    assert f"memory on (x=4) with I=8, J=3: {problem}" in found
    assert len(found) == 4


def test_a_budget_that_no_misconception_exceeds_is_reported(problems: Problems) -> None:
    found = problems("between(whole, 2 * whole)")
    assert (
        found[0]
        == "memory on (x=4) with I=8, J=3: no misconception exceeds the budget of 135 B: add such a misconception, or choose sizes where a misconception exceeds the budget"
    )
    assert len(found) == 4


def test_sizes_at_which_right_and_wrong_programs_cost_alike_are_reported(problems: Problems) -> None:
    found = problems("between(whole, 1.4 * whole)", MISCONCEPTION)
    assert found[0].startswith(
        "the reference does not pass memory: the check itself failed: ValueError: the wrong "
        "program needs 134.4, but must need at least 1.5 times as much as right programs, which need up to 96"
    )
    assert "choose sizes where the two amounts differ more" in found[0]


def test_a_byte_budget_written_with_between_is_no_problem(declared: Problems) -> None:
    assert declared(SENT, SENT_TWICE, BUDGET="between(sent_once, 2 * sent_once, at=1.1 * sent_once)") == []


@pytest.mark.parametrize(
    ("budget", "problem"),
    sampled(
        1,
        [
            (
                "between(sent_once / 2, 2 * sent_once)",
                "the budget says that right programs need at least 36 B, but the cheapest, the reference, needs 72 B: write the cheapest program's amount, or change the program",
            ),
            (
                "between(sent_once, 3 * sent_once)",
                "the budget says that wrong programs need at least 216 B, but the cheapest, sent_with_a_copy, needs 144 B: write the cheapest program's amount, or change the program",
            ),
            (
                "between(sent_once, 2 * sent_once, at=1.9 * sent_once)",
                "sent_with_a_copy takes 144 B, which is too close to the budget of 137 B",
            ),
            (
                "between(sent_once, 2 * sent_once, at=1.05 * sent_once)",
                "the reference takes 72 B, which is too close to the budget of 76 B",
            ),
        ],
    ),
    ids=["right-needs-more", "wrong-needs-less", "no-room-above", "no-room-below"],
)
def test_a_byte_budget_without_room_is_reported(declared: Problems, budget: str, problem: str) -> None:
    assert f"sent on (x=4) with I=8, J=3: {problem}" in declared(SENT, SENT_TWICE, BUDGET=budget)


def test_amounts_in_whole_units_need_half_a_unit_of_room(declared: Problems) -> None:
    assert (
        declared(SENT, SENT_TWICE, BUDGET="between(sent_once, 2 * sent_once, at=1.05 * sent_once, unit=sent_once / 12)")
        == []
    )
    assert (
        "sent on (x=4) with I=8, J=3: the reference takes 72 B, which is too close to the budget of 76 B"
        in declared(
            SENT, SENT_TWICE, BUDGET="between(sent_once, 2 * sent_once, at=1.05 * sent_once, unit=sent_once / 4)"
        )
    )


def test_a_wrong_program_within_the_budget_is_reported(declared: Problems) -> None:
    found = declared(SENT, SENT_TWICE, BUDGET="between(sent_once, 5 * sent_once)")
    assert "the misconception sent_with_a_copy fails nothing, but fails= names sent" in found
    assert (
        "sent on (x=4) with I=8, J=3: no misconception exceeds the budget of 160 B: add such a misconception, or choose sizes where a misconception exceeds the budget"
        in found
    )


def test_a_right_program_beyond_the_budget_is_reported(declared: Problems) -> None:
    found = declared(SENT, SENT_TWICE, PADDED, BUDGET="between(sent_once, 2 * sent_once, at=1.1 * sent_once)")
    assert (
        "sent on (x=4) with I=8, J=3: the alternative padded takes 108 B, which is too close to the budget of 79 B"
        in found
    )
    assert any(problem.startswith("the alternative padded does not pass sent: ") for problem in found)


def test_a_known_number_of_collectives_needs_a_misconception_beyond_it(declared: Problems) -> None:
    assert declared(TIMES, SEVERAL, BUDGET="needed(1, 4)") == []
    assert declared(TIMES, BUDGET="needed(1, 4)") == [f"gathers on (x=4) with I=8, J=3: {none_beyond('1')}"]


def test_an_exact_number_of_collectives_needs_a_misconception_that_differs(declared: Problems) -> None:
    exact = TIMES.replace("expect_at_most", "expect_collectives")
    assert declared(exact, SEVERAL, BUDGET="1") == []
    # The misconception ``zeroed`` has no all-gather, and fails a different check.
    assert declared(exact, BUDGET="1") == []
    assert declared(exact.replace("after=value", "after=[]"), BUDGET="1")[-1] == (
        f"gathers on (x=4) with I=8, J=3: expect_collectives (all_gather over x) asks for 1, {MEND}"
    )


def test_a_known_amount_needs_no_margin_above_it(declared: Problems) -> None:
    assert declared(SENT, SENT_TWICE, BUDGET="needed(sent_once, 2 * sent_once)") == []


def test_a_known_amount_may_have_a_little_more(declared: Problems) -> None:
    assert declared(SENT, SENT_TWICE, PADDED, BUDGET="needed(sent_once, 2 * sent_once, at=1.5 * sent_once)") == []


def test_a_known_amount_counts_programs_that_fail_an_earlier_check(declared: Problems) -> None:
    # The misconception gathered_twice sends three times the bytes, and a different check fails it.
    assert declared(SENT, BUDGET="needed(sent_once, 3 * sent_once)") == []
    assert declared(ALONE, BUDGET="needed(sent_once, 3 * sent_once)")[-1] == (
        f"sent on (x=4) with I=8, J=3: {none_beyond('72 B')}"
    )


@pytest.mark.parametrize(
    ("budget", "problem"),
    sampled(
        1,
        [
            (
                "needed(1.2 * sent_once, 2 * sent_once)",
                "the budget says that right programs need at least 86 B, but the cheapest, the reference, needs 72 B: write the cheapest program's amount, or change the program",
            ),
            (
                "needed(sent_once, 3 * sent_once)",
                "the budget says that wrong programs need at least 216 B, but the cheapest, sent_with_a_copy, needs 144 B: write the cheapest program's amount, or change the program",
            ),
        ],
    ),
    ids=["right-needs-less", "wrong-needs-less"],
)
def test_a_wrong_claim_about_a_known_amount_is_reported(declared: Problems, budget: str, problem: str) -> None:
    assert f"sent on (x=4) with I=8, J=3: {problem}" in declared(SENT, SENT_TWICE, BUDGET=budget)


def test_a_known_amount_must_state_what_a_wrong_program_needs(declared: Problems) -> None:
    (found,) = declared(SENT, SENT_TWICE, BUDGET="needed(sent_once, 1.6 * sent_once)")
    assert "but the cheapest, sent_with_a_copy, needs" in found


def test_a_misconception_must_need_the_wrong_amount_on_one_mesh_only(declared: Problems) -> None:
    # The misconception sends (N - 1) / N of twice the array: 1.5 times the array for N = 4, once the array for N = 2.
    claimed = "needed(sent_once, max(1.5 * sent_once, 4 * seen.dims['I'] * seen.dims['J']))"
    assert declared(SENT, SENT_TWICE, BUDGET=claimed) == []


def test_a_number_of_no_collectives_needs_a_misconception_that_has_one(declared: Problems) -> None:
    nothing = TIMES.replace('expect_at_most(seen.only(kind="all_gather"), all_gather={"x": BUDGET})', "NONE")
    none = 'expect_collectives(seen.only(kind="permute"))'
    assert declared(nothing, NONE=none) == [f"gathers on (x=4) with I=8, J=3: expect_collectives asks for 0, {MEND}"]
    assert declared(nothing, SENT_ON, NONE=none) == []


def test_a_between_of_collectives_must_state_the_least_wrong_number(declared: Problems) -> None:
    assert declared(TIMES, SEVERAL, BUDGET="between(1, 4, at=1)") == []
    assert declared(TIMES, SEVERAL, BUDGET="between(1, 2, at=1)")[0] == (
        "gathers on (x=4) with I=8, J=3: the budget says that wrong programs need at least 2, but the cheapest, four_gathers, "
        "needs 4: write the cheapest program's amount, or change the program"
    )
