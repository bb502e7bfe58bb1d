"""Single integers that a program computes on each device from constants and the device's own number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from grader.wire.frames import dtype_of
from grader.wire.operations import Operation, Operations

Numbers = tuple[int, ...]
MOST_DEVICES = 64  # for which they are computed
LIMIT = 1 << 63

COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq, "NE": operator.ne, "GE": operator.ge, "GT": operator.gt, "LE": operator.le, "LT": operator.lt,
}  # fmt: skip


def _quotient(a: int, b: int) -> int:
    """Towards zero, as the programs divide."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MADE: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "add": operator.add,
    "and": operator.and_,
    "broadcast_in_dim": int,
    "clamp": lambda low, n, high: min(max(n, low), high),
    "convert": int,
    "copy": int,
    "divide": _quotient,
    "maximum": max,
    "minimum": min,
    "multiply": operator.mul,
    "negate": operator.neg,
    "or": operator.or_,
    "remainder": lambda a, b: a - b * _quotient(a, b),
    "reshape": int,
    "select": lambda which, yes, no: yes if which else no,
    "sign": lambda n: (n > 0) - (n < 0),
    "subtract": operator.sub,
}


def computed(op: Operation, program: Operations, operands: Sequence[Numbers | None]) -> Numbers | None:
    """Return the integer that the result of an operation is on each device.

    Args:
        operands: those of its operands; None if unknown.

    Returns:
        None if the result is not a single integer, or is unknown. It may be a number that its dtype cannot hold.
    """
    devices, result = math.prod(program.mesh.values()), program.values[op.results[0]]
    kind = dtype_of(result.dtype).kind
    if math.prod(result.shape) != 1 or kind not in "iub" or devices > MOST_DEVICES:
        return None
    if op.name == "constant" and op.number is not None:
        return (op.number,) * devices
    if op.name == "partition_id":
        return tuple(range(devices))
    function = COMPARED.get(op.direction) if op.name == "compare" else MADE.get(op.name)
    known = [numbers for numbers in operands if numbers is not None]
    if function is None or not known or len(known) < len(operands):
        return None
    return _applied(function, known, 0 if kind == "u" else -LIMIT)


def _applied(function: Callable[..., Any], operands: Sequence[Numbers], least: int) -> Numbers | None:
    """Apply a function device by device. None if a result is below ``least`` or above 64 bits, or divides by zero."""
    try:
        numbers = tuple(int(function(*each)) for each in zip(*operands, strict=True))
    except ZeroDivisionError:
        return None
    return numbers if all(least <= n < LIMIT for n in numbers) else None
