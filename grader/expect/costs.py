"""Memory and FLOPs, against a budget; how an amount is shown."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal, get_args

from grader.clock import Memory, live_memory
from grader.common.observation import Seen
from grader.expect.failure import Failure

MOST_DIGITS = 15
MEMORY_SPREAD = 0.25  # styles differ in temporaries
Reckoner = Literal["compiler", "program", "clock"]


def expect_memory(seen: Seen, *, at_most: float, by: Reckoner = "compiler") -> None:
    """At most this many bytes per device.

    Args:
        by: "compiler": temporary bytes of the compiled program, as XLA says. "program": arguments, results and temporaries
            at the worst point, by liveness, one operation after another as they are written. "clock": the same in the
            order of a timing call's timeline, in which a collective's result lives from its start.
    """
    if by not in get_args(Reckoner):
        raise ValueError(f"memory by {by!r}: there are {', '.join(get_args(Reckoner))}")
    if by != "compiler":
        _expect_live(seen.timeline.memory if by == "clock" else memory_of(seen), at_most)
        return
    if seen.timing is not None:
        raise ValueError('a timing call is never compiled: say by="clock" or by="program"')
    if not seen.memory <= at_most:
        raise Failure(
            "the program needs {} of temporary memory per device, the budget is {}".format(
                *told_apart(show_bytes, seen.memory, at_most)
            ),
            expected=at_most,
            actual=seen.memory,
            spread=MEMORY_SPREAD,
        )


def memory_of(seen: Seen) -> Memory:
    """Arguments, results and temporaries of the program at its worst point, by liveness in the order it is written in."""
    if seen.operations is None:
        raise Failure("the program has too many operations to follow its memory; use lax.fori_loop or lax.scan")
    return live_memory(seen.operations)


def _expect_live(memory: Memory, at_most: float) -> None:
    if memory.peak <= at_most:
        return
    parts = {"arguments": memory.arguments, "results": memory.results, "temporaries": memory.temporaries}
    peak, budget = told_apart(show_bytes, memory.peak, at_most)
    raise Failure(
        f"the program holds {peak} per device at once, the budget is {budget}: at "
        f"{memory.at or 'its start'} {', '.join(f'{show_bytes(n)} of {name}' for name, n in parts.items())}",
        expected=at_most,
        actual=memory.peak,
        spread=MEMORY_SPREAD,
        where=f"line {memory.line}" if memory.line else "",
    )


def expect_flops(seen: Seen, *, at_most: float | None = None, at_least: float = 0) -> None:
    """Matrix products cost at most this many FLOPs per device, on any path; all other arithmetic no more than that.

    Products written out as multiplications and sums are products. The other arithmetic has a budget of its own, so
    that nothing is gained by a product that is written so that nobody knows it for one.

    Args:
        at_most: per device; without it there is no budget.
        at_least: of matrix products per device, on every path: of a timing call, whose values nobody sees, this shows
            that the work is done.
    """
    if at_most is None and not at_least > 0:
        raise ValueError("expect_flops: say at_most=... or at_least=...")
    if not seen.dot_flops.least >= at_least:
        raise Failure(
            f"each device spends {_show_number(seen.dot_flops.least)} FLOPs on matrix products that are sure to run, "
            f"{_show_number(at_least)} are needed: does it do all of the work?",
            expected=at_least,
            actual=seen.dot_flops.least,
        )
    if at_most is None:
        return
    other = _difference(seen.flops.most, seen.dot_flops.most)
    for spent, what in ((seen.dot_flops.most, "on matrix products"), (other, "besides matrix products")):
        if spent == math.inf:
            raise Failure("a loop's number of rounds cannot be read, so its FLOPs are unknown")
        if not spent <= at_most:
            raise Failure(
                f"each device spends {_show_number(spent)} FLOPs {what}, the budget is {_show_number(at_most)}",
                expected=at_most,
                actual=spent,
            )


def _difference(flops: float, dots: float) -> float:
    return math.inf if flops == math.inf else max(0, flops - dots)


def _show_number(n: float) -> str:
    return f"{int(n):,}" if math.isfinite(n) else str(n)


def told_apart(show: Callable[[float, int], str], one: float, other: float, digits: int = 1) -> tuple[str, str]:
    """Both amounts with so many digits, or as many more as tell them apart.

    Args:
        show: what writes an amount with so many digits.
    """
    while True:
        shown = show(one, digits), show(other, digits)
        if len({re.sub(r"\.0+(?!\d)", "", text) for text in shown}) == 2 or one == other or digits >= MOST_DIGITS:
            return shown
        digits += 1


def show_bytes(n: float, digits: int = 1) -> str:
    """``1.5 KiB``: powers of 1024, at most one decimal, or so many."""
    if not math.isfinite(n):
        return str(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" or n == int(n) else f"{n:.{digits}f} {unit}"
        n /= 1024
    raise AssertionError
