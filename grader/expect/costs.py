"""Memory and FLOPs, against a budget; how an amount is shown."""

from __future__ import annotations

import math

from grader.common.observation import Seen
from grader.expect.failure import Failure


def expect_memory(seen: Seen, *, at_most: float) -> None:
    """The compiler needs at most this many temporary bytes per device."""
    if not seen.memory <= at_most:
        raise Failure(
            f"the program needs {show_bytes(seen.memory)} of temporary memory per device, "
            f"the budget is {show_bytes(at_most)}",
            expected=at_most,
            actual=seen.memory,
        )


def expect_flops(seen: Seen, *, at_most: float) -> None:
    """Matrix products cost at most this many FLOPs per device, on any path; all other arithmetic no more than that.

    Products written out as multiplications and sums are products. The other arithmetic has a budget of its own, so
    that nothing is gained by a product that is written so that nobody knows it for one.
    """
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


def show_bytes(n: float) -> str:
    """``1.5 KiB``: powers of 1024, at most one decimal."""
    if not math.isfinite(n):
        return str(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" or n == int(n) else f"{n:.1f} {unit}"
        n /= 1024
    raise AssertionError
