"""A required operation counts only if it matters: a change of its result must change a result of the task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.common.dependency import COLLECTIVES, MATMULS
from grader.common.intervals import Interval
from grader.common.observation import Fault, Seen
from grader.exercise import normal
from grader.expect import Failure, expect_beside, expect_bubble, expect_collectives, expect_flops, expect_traffic
from grader.expect.mattering import CannotSay, flops_that_matter
from tests.poisoned import MESH, seen
from tests.seen import collective, reason
from tests.seen import seen as made_up

A, B = normal(8, 6, spec=("x",)), normal(6, 6)
pytestmark = pytest.mark.usefixtures("devices")


class Says:
    """A substitute for ``Poisoned``. ``matter`` returns a fixed answer, and ``asked`` counts its calls."""

    def __init__(self, found: Any) -> None:
        self.found, self.asked = found, 0

    def matter(self, what: str) -> Any:
        self.asked += 1
        return self.found


def ran(body: str) -> Seen:
    lines = "\n".join(f"        {line}" for line in body.strip().split("\n"))
    text = f"def f(a, b, *, mesh):\n    def local(a, b):\n{lines}\n    return mapped(local, (P('x'), P()), P('x'), mesh)(a, b)\n"
    return seen(text, A, B)


# -- collectives -------------------------------------------------------------------------------


def test_a_masked_collective_does_not_count_and_the_message_names_it() -> None:
    program = ran("""
once = ring(a)
again = ring(a * 2)
return once + jnp.where(jnp.sum(a * a) < 0, again, 0)""")
    expect_collectives(replace(program, poison=Says([True, True])), permute={"x": 2})
    assert reason(expect_collectives, program, permute={"x": 2}) == (
        "line 10: permute over x is not counted: no result of the task depends on its values; "
        "2 such collectives are required, and the results depend on 1 of these collectives"
    )
    # The masked permute still runs, so it counts against a budget.
    assert "the budget is permute over x" in reason(expect_collectives, program, permute={"x": 1})


def test_bytes_of_a_masked_collective_do_not_meet_a_requirement() -> None:
    program = ran("""
once = ring(a)
again = ring(a * 2)
return once + jnp.where(jnp.sum(a * a) < 0, again, 0)""")
    sent = program.sends(program.collectives).least
    expect_traffic(program, at_least=sent / 2, axis="x")
    expect_traffic(replace(program, poison=Says([True, True])), at_least=sent, at_most=sent)
    assert reason(expect_traffic, program, at_least=sent, axis="x") == (
        f"each device sends {sent / 2:g} B over x, but {sent:g} B are needed; line 10: permute over x is not counted: no "
        "result of the task depends on its values"
    )
    assert (
        reason(expect_traffic, program, at_least=sent + 1)
        == f"each device sends {sent:g} B, but {sent + 1:g} B are needed"
    )


def test_without_a_requirement_no_operation_is_changed() -> None:
    poison = Says([])
    expect_collectives(made_up(poison=poison))
    reason(expect_collectives, made_up(collective("permute", "x", number=0), poison=poison))
    reason(expect_collectives, made_up(collective("permute", "x", number=0), poison=poison), permute={"x": 2})
    assert poison.asked == 0


def test_a_collective_added_by_the_compiler_meets_a_requirement() -> None:
    added = collective("all_gather", "x", by_compiler=True)
    expect_collectives(made_up(added, poison=Says([])), all_gather={"x": 1})


def test_all_rounds_of_a_loop_matter_or_none() -> None:
    each = collective("permute", "x", count=3, number=0), collective("permute", "x", count=2, number=1, line=9)
    text = reason(expect_collectives, made_up(*each, poison=Says([True, False])), permute={"x": 5})
    assert text.endswith(
        "5 such collectives are required, and the results depend on 3 of these collectives"
    ) and text.startswith("line 9: permute over x")


def test_the_collectives_of_one_pass_are_judged_separately() -> None:
    forward, backward = (collective("all_gather", "x", number=n, backward=bool(n)) for n in range(2))
    program = made_up(forward, backward, poison=Says([True, False]), differentiated=True)
    expect_collectives(program.only(backward=False), all_gather={"x": 1})
    text = reason(expect_collectives, program.only(backward=True), all_gather={"x": 1})
    assert (
        text.endswith("1 such collective is required, and the results depend on none of these collectives")
        and "not counted in the backward pass" in text
    )


# -- matmuls -----------------------------------------------------------------------------------

HALF = "return a @ b + 0 * (a * 2 @ b)"
WORK = 2 * 2 * 6 * 6


@pytest.mark.parametrize(
    ("check", "needed"),
    [
        (lambda program, n: expect_flops(program, at_least=n), f"{WORK} FLOPs on matmuls that results depend on, but {2 * WORK} are needed"),
        (lambda program, n: expect_bubble(program, useful=8 * n, at_most=0.5), "FLOPs on matmuls that results depend on"),
    ],
)  # fmt: skip
def test_only_flops_of_matmuls_that_matter_meet_a_requirement(
    check: Callable[[Seen, float], None], needed: str
) -> None:
    program = ran(HALF)
    assert program.dot_flops.least >= 2 * WORK
    check(program, WORK)
    text = reason(check, program, 2 * WORK)
    assert needed in text
    assert text.endswith("; line 13: dot_general is not counted: no result of the task depends on its values")


def test_a_matmul_written_as_multiplications_meets_no_flops_requirement() -> None:
    program = ran("return a @ b + jnp.sum(a[:, :, None] * b[None], 1)")
    assert program.dot_flops.least >= 2 * WORK and flops_that_matter(program) == WORK


def test_flops_that_matter_multiply_rounds_and_count_one_branch() -> None:
    program = ran("""
some = lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ b), a)
return lax.cond(a[0, 0] > 0, lambda: some @ b @ b, lambda: some @ b)""")
    assert flops_that_matter(program) == Interval(4 * WORK, 5 * WORK)


def test_flops_outside_shard_map_that_matter_keep_their_share() -> None:
    text = "def f(a, b, *, mesh):\n    return a @ b + 0 * (a * 2 @ b)\n"
    program = seen(text, A, B)
    found = flops_that_matter(program)
    assert found.least * 2 == pytest.approx(program.dot_flops.least) and found.most * 2 == program.dot_flops.most


def test_an_unneeded_matmul_does_not_count_beside_a_permute() -> None:
    text = "return lax.fori_loop(0, 3, lambda i, c: ring(c) + {} * (c @ b), a)"
    expect_beside(ran(text.format(1)), "permute")
    why = reason(expect_beside, ran(text.format("jnp.sum(a - a)")), "permute")
    assert "has no matmul beside it" in why and "dot_general" in why
    assert why.endswith("is not counted: no result of the task depends on its values")


# -- programs for which this is unknown --------------------------------------------------------


def test_in_a_program_that_is_not_run_matmuls_before_a_result_matter() -> None:
    program = replace(ran("return a @ b + 0 * (a * 2 @ b)\nc = ring(a)"), poison=None)
    expect_flops(program, at_least=2 * WORK)
    idle = replace(ran("c = a * 2 @ b\nreturn a @ b"), poison=None)
    assert "144 FLOPs on matmuls that results depend on" in reason(expect_flops, idle, at_least=2 * WORK)


def test_a_program_that_hangs_when_changed_fails_a_required_collective() -> None:
    one = collective("permute", "x", number=0)
    hung = made_up(one, poison=Says(Fault("timeout", "the program did not finish within 60 s, twice")))
    assert reason(expect_collectives, hung, permute={"x": 1}) == (
        "the grader changes the results of the program's collectives to find the collectives that matter, "
        "but the changed program fails: the program did not finish within 60 s, twice"
    )
    with pytest.raises(CannotSay):
        expect_collectives(made_up(one, poison=Says(Fault("broken", "no room"))), permute={"x": 1})


def test_collectives_and_matmuls_are_numbered_separately() -> None:
    program = ran("return ring(a) @ b + 0 * (ring(a * 2) @ b @ b)")
    assert program.poison is not None
    assert program.poison.matter(COLLECTIVES) == [True, False]
    assert program.poison.matter(MATMULS) == [True, False, False]
    with pytest.raises(Failure):
        expect_collectives(program, permute={"x": 2})
    assert program.mesh == MESH
