"""Check memory and FLOPs against a budget; format amounts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal, get_args

from grader.clock import LiveMemory, live_memory
from grader.common.budget import BudgetUse
from grader.common.observation import Seen
from grader.expect.failure import Failure
from grader.expect.mattering import flops_that_matter, idle_note

MOST_DIGITS = 15
MEMORY_SPREAD = 0.25  # the temporaries of two programs that make the same mistake may differ by this fraction
Reckoner = Literal["compiler", "program", "clock"]


def expect_memory(seen: Seen, *, at_most: float, by: Reckoner = "compiler", arguments: bool = True) -> None:
    """Check the memory per device, in bytes.

    Args:
        at_most: the budget in bytes. Write ``between(right, wrong)`` with the bytes that a right and a wrong program
            need.
        by: the bytes to compare with the budget.

            - "compiler": temporary bytes of the compiled program, as XLA reports them.
            - "program": bytes of arguments, results and temporaries at the peak, if operations run in the program's
              order.
            - "clock": like "program", but operations run at the times of a timing call's timeline.
        arguments: False to leave out the bytes of the arguments, which every program needs. XLA's number never includes
            arguments.
    """
    if by not in get_args(Reckoner):
        raise ValueError(f"by={by!r} is unknown: write one of {', '.join(get_args(Reckoner))}")
    if by != "compiler":
        memory = seen.timeline.memory if by == "clock" else memory_of(seen)
        needed = memory.peak - (0 if arguments else memory.arguments)
        if not seen.keeps(BudgetUse("expect_memory", needed, at_most)):
            raise _held_too_much(memory, needed, at_most, arguments)
        return
    if seen.timing is not None:
        raise ValueError(
            'a timing call is not compiled, so the compiler reports no memory: write by="clock" or by="program"'
        )
    if not seen.keeps(BudgetUse("expect_memory", seen.memory, at_most)):
        raise Failure(
            "the program needs {} of temporary memory per device, the budget is {}".format(
                *as_different_texts(show_bytes, seen.memory, at_most)
            ),
            expected=at_most,
            actual=seen.memory,
            spread=MEMORY_SPREAD,
            unit="B",
        )


def memory_of(seen: Seen) -> LiveMemory:
    """Return bytes of arguments, results and temporaries at the peak, if operations run in the program's order."""
    if seen.operations is None:
        raise Failure(
            "the program has too many operations for the grader to follow its memory; use lax.fori_loop or lax.scan"
        )
    return live_memory(seen.operations)


def _held_too_much(memory: LiveMemory, needed: float, at_most: float, arguments: bool) -> Failure:
    parts = {"arguments": memory.arguments} if arguments else {}
    parts |= {"results": memory.results, "temporaries": memory.temporaries}
    held, budget = as_different_texts(show_bytes, needed, at_most)
    beside = "" if arguments else " beside its arguments"
    at = memory.at or "its start"
    return Failure(
        f"the program holds {held} per device at once{beside}, the budget is {budget}; "
        f"at {at}, it holds {', '.join(f'{show_bytes(n)} of {name}' for name, n in parts.items())}",
        expected=at_most,
        actual=needed,
        spread=MEMORY_SPREAD,
        unit="B",
        where=f"line {memory.line}" if memory.line else "",
    )


def expect_flops(seen: Seen, *, at_most: float | None = None, at_least: float = 0) -> None:
    """Check that the matmuls of a device cost at most ``at_most`` FLOPs, whichever branches of conditionals run.

    Matmuls written as multiplications and sums count as matmuls. All other arithmetic has a separate budget of
    ``at_most`` FLOPs, which also limits matmuls in a form that the grader does not recognize.

    Args:
        at_most: FLOPs per device; None for no budget.
        at_least: FLOPs per device, whichever branches run. Only matmuls whose values change a result count (see
            ``mattering``). Use ``at_least`` for a timing call: its program never runs, so no check of values can find a
            missing matmul.
    """
    if at_most is None and not at_least > 0:
        raise ValueError("expect_flops: give at_most=... or at_least=...")
    if not seen.dot_flops.least >= at_least:
        raise Failure(
            f"each device spends {_show_number(seen.dot_flops.least)} FLOPs on matmuls that are sure to run, "
            f"but {_show_number(at_least)} are needed; is part of the work missing?",
            expected=at_least,
            actual=seen.dot_flops.least,
            unit="FLOPs",
        )
    if at_least > 0:
        _expect_mattering(seen, at_least)
    if at_most is None:
        return
    if not seen.keeps(BudgetUse("expect_flops", seen.dot_flops.most, at_most)):
        _expect_at_most(seen.dot_flops.most, at_most, "on matmuls and sums of products")
    limit_other_flops(seen, at_most)


def expect_other_flops(seen: Seen, *, at_most: float) -> None:
    """Check that a device's arithmetic besides matmuls costs at most ``at_most`` FLOPs, whichever branches run."""
    seen.spent.append(BudgetUse("expect_other_flops", _other_flops(seen), at_most))
    limit_other_flops(seen, at_most)


def limit_other_flops(seen: Seen, at_most: float) -> None:
    """Check the same as ``expect_other_flops``, as part of a check that has a budget for something else."""
    if not seen.measuring:
        _expect_at_most(_other_flops(seen), at_most, "besides matmuls")


def _other_flops(seen: Seen) -> float:
    flops, dots = seen.flops.most, seen.dot_flops.most
    return math.inf if flops == math.inf else max(0, flops - dots)


def _expect_at_most(spent: float, at_most: float, what: str) -> None:
    if spent == math.inf:
        raise Failure(
            f"the FLOPs {what} cannot be counted: the number of a loop's rounds cannot be read, or the program "
            "calculates outside of shard_map"
        )
    if not spent <= at_most:
        raise Failure(
            f"each device spends {_show_number(spent)} FLOPs {what}, the budget is {_show_number(at_most)}",
            expected=at_most,
            actual=spent,
            unit="FLOPs",
            of=what,
        )


def _expect_mattering(seen: Seen, at_least: float) -> None:
    done = flops_that_matter(seen)
    if not done.least >= at_least:
        raise Failure(
            f"each device spends {_show_number(done.least)} FLOPs on matmuls that results depend on, "
            f"but {_show_number(at_least)} are needed{idle_note(seen)}",
            expected=at_least,
            actual=done.least,
            unit="FLOPs",
        )


def _show_number(n: float) -> str:
    return f"{int(n):,}" if math.isfinite(n) else str(n)


def as_different_texts(show: Callable[[float, int], str], one: float, other: float, digits: int = 1) -> tuple[str, str]:
    """Format two amounts with ``digits`` digits, or with more digits if the two texts would be equal."""
    while True:
        shown = show(one, digits), show(other, digits)
        if len({re.sub(r"\.0+(?!\d)", "", text) for text in shown}) == 2 or one == other or digits >= MOST_DIGITS:
            return shown
        digits += 1


def show_bytes(n: float, digits: int = 1) -> str:
    """Return text such as ``1.5 KiB``, with units that are powers of 1024 and at most ``digits`` decimals."""
    if not math.isfinite(n):
        return str(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" or n == int(n) else f"{n:.{digits}f} {unit}"
        n /= 1024
    raise AssertionError
