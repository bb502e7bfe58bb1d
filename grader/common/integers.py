"""Compute, without running a program, the integers that each device computes from constants and its device number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grader.wire.frames import dtype_of
from grader.wire.operations import Operation, Operations

Numbers = tuple[int, ...]
MOST_DEVICES = 64  # largest number of devices for which ``computed`` returns values

COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq, "NE": operator.ne, "GE": operator.ge, "GT": operator.gt, "LE": operator.le, "LT": operator.lt,
}  # fmt: skip


def _quotient(a: int, b: int) -> int:
    """Return the quotient of two integers, rounded towards zero as in XLA."""
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
    """Return the integer value of an operation's result on each device.

    Return None if the result is unknown or not a single integer or boolean, or if there are more than MOST_DEVICES
    devices.

    Args:
        operands: for each operand of the operation, its value on each device; None if unknown.
    """
    devices, result = math.prod(program.mesh.values()), program.values[op.results[0]]
    dtype = dtype_of(result.dtype)
    if math.prod(result.shape) != 1 or dtype.kind not in "iub" or devices > MOST_DEVICES:
        return None
    if op.name == "constant" and op.number is not None:
        return (op.number,) * devices
    if op.name == "partition_id":
        return tuple(range(devices))
    function = COMPARED.get(op.direction) if op.name == "compare" else MADE.get(op.name)
    known = [numbers for numbers in operands if numbers is not None]
    if function is None or not known or len(known) < len(operands):
        return None
    return _applied(function, known, dtype)


def _applied(function: Callable[..., Any], operands: Sequence[Numbers], dtype: np.dtype) -> Numbers | None:
    """Return a function's result on each device; None if XLA's result would differ from Python's on some device.

    XLA's result differs for a division by zero, and for a result out of the range of ``dtype``.
    """
    try:
        numbers = tuple(int(function(*each)) for each in zip(*operands, strict=True))
    except ZeroDivisionError:
        return None
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return numbers if all(least <= n <= most for n in numbers) else None
