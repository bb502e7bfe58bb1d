"""How a TPU's compiler stores the values of a program, for estimates of a chip's memory.

A default-precision matmul rounds its operands to bfloat16. So the compiler stores a float32 value in bfloat16 if only
such matmuls read it, directly or after collectives that move it unchanged. A loop of only elementwise operations, such
as the rounds of a random number generator, becomes one kernel. This kernel needs memory only for the values that the
loop carries from round to round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader.clock.kernels import ELEMENTWISE, GIVEN, TAKES_PART, Fused, Unit
from grader.wire.operations import Operation, Operations

MOVES = TAKES_PART | {"transpose", "reverse", "concatenate", "pad", "reshape", "broadcast_in_dim", "convert"}
SENDS = {"all_gather", "permute", "all_to_all"}
WRITES = SENDS | {"reduce_scatter"}
"""Collectives that can write bfloat16. A reduce-scatter can round its result after the last addition. An all-reduce
still sends the final sums to the other devices, as float32."""


def as_stored(fused: Fused) -> Operations:
    """Return the program in which the values of a body have the dtypes in which a TPU's compiler stores them."""
    narrow: set[int] = set()
    readers = _readers(fused)
    for unit in reversed(fused.units):
        if unit.kind in ("kernel", "matmul") or unit.collective in WRITES:
            narrow |= {v for v in unit.makes if _is_narrow(fused, v, readers.get(v, ()), narrow)}
    values = enumerate(fused.program.values)
    stored = tuple(replace(one, dtype="bfloat16") if v in narrow else one for v, one in values)
    return replace(fused.program, values=stored)


def _readers(fused: Fused) -> dict[int, list[Unit]]:
    found: dict[int, list[Unit]] = {}
    for unit in fused.units:
        for v in unit.reads:
            found.setdefault(v, []).append(unit)
    return found


def _is_narrow(fused: Fused, value: int, readers: Sequence[Unit], narrow: set[int]) -> bool:
    """Return True if only default-precision matmuls read a float32 value, directly or through collectives."""
    if fused.program.values[value].dtype != "float32" or value in fused.results or not readers:
        return False
    return all(
        _rounds(fused, one, value) or (one.collective in SENDS and narrow.issuperset(one.makes)) for one in readers
    )


def _rounds(fused: Fused, unit: Unit, value: int) -> bool:
    """Return True if a unit reads a value only as an operand of a default-precision matmul, which rounds the value."""
    rounded = unit.kind == "matmul" and unit.root.precision == 1
    return rounded and all(op.name in MOVES for op in fused.using(unit, value, but=unit.root))


def is_one_kernel(op: Operation) -> bool:
    """Return True for a loop of only elementwise operations."""
    return op.name == "while" and all(one.name in ELEMENTWISE | GIVEN | MOVES for one in op.bodies[1].operations)
