"""Memory of live values. A program runs as units: kernels, collectives and loops.

- The result of a unit occupies memory from the start of the unit to the end of the last unit that uses the result.
- The program's arguments always occupy memory. If a program returns an argument, the result is a copy.
- Values that are made and used inside one kernel need no memory.
- Array updates, all-reduces and elementwise operations overwrite an operand of the result's size, if no later operation
  uses the operand. This is also true for elementwise operations fused into a matmul.
- A loop's results share buffers with the loop's inputs. A loop does not copy an array that it only reads.

Estimates of a chip's memory (``on_tpu``) also depend on how a TPU's compiler stores values. A default-precision matmul
rounds its operands to bfloat16. So the compiler stores a float32 value in bfloat16 if only such matmuls read it,
directly or after collectives that move it unchanged. A loop of only elementwise operations, such as the rounds of a
random number generator, becomes one kernel. This kernel needs memory only for the values that the loop carries from
round to round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grader.clock.kernels import ELEMENTWISE, GIVEN, TAKES_PART, Fused, Unit, takes
from grader.clock.timeline import LiveMemory
from grader.wire.operations import Body, Operation, Operations

MOVES = TAKES_PART | {"transpose", "reverse", "concatenate", "pad", "reshape", "broadcast_in_dim", "convert"}
SENDS = {"all_gather", "permute", "all_to_all"}
WRITES = SENDS | {"reduce_scatter"}
"""Collectives that can write bfloat16. A reduce-scatter can round its result after the last addition. An all-reduce
still sends the final sums to the other devices, as float32."""


@dataclass
class _Buffer:
    size: int
    start: int
    end: int
    is_result: bool
    by: int  # position of the kernel, collective, loop or barrier that makes the value; -1 for an input


def live_memory(program: Operations, *, on_tpu: bool = False) -> LiveMemory:
    """Return the memory of a program that runs its units one after another, in program order.

    ``on_tpu``: True to count memory as a TPU's compiler allocates it. The compiler gives results memory from the
    program's start, and may store values in shorter dtypes.
    """
    return replace(_in_order(program, program.main, outermost=True, on_tpu=on_tpu), time=-1)


def _in_order(program: Operations, body: Body, *, outermost: bool, on_tpu: bool) -> LiveMemory:
    fused = Fused(program, body, owns_arguments=not outermost)
    if on_tpu:
        fused.program = as_stored(fused)
    inside = {}
    for i, unit in enumerate(fused.units):
        if unit.kind == "block" and not (on_tpu and is_one_kernel(unit.root)):
            bodies = unit.root.bodies[1:] if unit.root.name == "while" else unit.root.bodies
            found = [_in_order(program, b, outermost=False, on_tpu=on_tpu) for b in bodies]
            inside[i] = max(found, key=lambda m: m.peak)
    when = [(i, i + 1) for i in range(len(fused.units))]
    return worst(fused, when, inside, len(when), outermost=outermost, early=on_tpu)


def worst(
    fused: Fused, when: Sequence[tuple[int, int]], inside: Mapping[int, LiveMemory], length: int, *,
    outermost: bool, early: bool = False,
) -> LiveMemory:  # fmt: skip
    """Return a body's memory at the time when the body needs the most memory.

    Args:
        when: start and end of each unit.
        inside: memory of the bodies of loops and conditionals, keyed by the position of the loop's or conditional's
            unit.
        length: the time at which the body ends.
        outermost: True if the body is the whole program, so that its arguments stay in memory.
        early: True if the program's results have memory from the program's start.
    """
    base = sum(fused.program.values[v].bytes for v in fused.body.arguments) if outermost else 0
    buffers = _buffers(fused, when, length, outermost=outermost)
    events = []
    for b in buffers:
        start = 0 if early and outermost and b.is_result else b.start
        if start < b.end:
            result = b.size if b.is_result else 0
            events += [(start, 1, b.by, b.size, result), (b.end, 0, b.by, -b.size, -result)]
    for i, need in inside.items():
        # The memory of the body already includes the results of the loop or conditional.
        results = sum(fused.program.values[v].bytes for v in fused.units[i].root.results)
        more = max(0, need.peak - results)
        events += [(when[i][0], 1, i, more, 0), (when[i][1], 0, i, -more, 0)]
    held = results = 0
    most = LiveMemory(base, base, 0, 0, time=0)
    for time, _, by, size, result in sorted(events):
        held, results = held + size, results + result
        if base + held > most.peak:
            most = LiveMemory(base + held, base, results, held - results, **_place(fused, by, inside), time=time)
    return most


def _place(fused: Fused, by: int, inside: Mapping[int, LiveMemory]) -> dict:
    if by < 0:
        return {}
    if by in inside and inside[by].at:
        return {"at": inside[by].at, "line": inside[by].line, "file": inside[by].file}
    unit = fused.units[by]
    return {"at": title(unit), "line": unit.root.line, "file": unit.root.file}


def title(unit: Unit) -> str:
    """Return a unit's name and source line, such as ``dot_general, line 14``."""
    name = unit.collective or unit.root.name
    return f"{name}, line {unit.root.line}" if unit.root.line else name


def _buffers(fused: Fused, when: Sequence[tuple[int, int]], length: int, *, outermost: bool) -> list[_Buffer]:
    values = fused.program.values
    stay = set(fused.body.arguments) if outermost else set()  # arguments of the program, which stay in memory
    own = [] if outermost else list(fused.body.arguments)
    found = [_Buffer(values[v].bytes, 0, 0, False, -1) for v in own]
    of = {v: at for at, v in enumerate(own)}  # value -> buffer
    for i, unit in enumerate(fused.units):
        takes_over = _taken_over(fused, unit)
        stay |= {v for v in unit.makes if takes_over.get(v) in stay}
        for v in set(unit.makes) - stay:
            if (old := of.get(takes_over.get(v, -1))) is None:
                old = len(found)
                found.append(_Buffer(values[v].bytes, when[i][0], when[i][0], False, i))
            of[v] = old
        for buffer in (found[of[v]] for v in (*unit.reads, *unit.makes) if v in of):
            buffer.start, buffer.end = min(buffer.start, when[i][0]), max(buffer.end, when[i][1])
    for v in fused.results & of.keys():
        found[of[v]].end, found[of[v]].is_result = length, True
    return found + [_Buffer(values[v].bytes, 0, max(1, length), True, -1) for v in fused.results & stay]


def _taken_over(fused: Fused, unit: Unit) -> dict[int, int]:
    """Return a map: result of the unit -> earlier value whose buffer the result takes over."""
    op = unit.root
    operands = [fused.of(v) for v in op.operands]
    if unit.kind == "barrier":
        return dict(zip(op.results, operands, strict=True))
    if op.name == "while":
        last = {v: o for v, o in zip(op.results, operands, strict=True) if operands.count(o) == 1}
        inside = set(takes(replace(op, operands=())))  # the outer values that the loop's condition and body use
        free = {o for o in last.values() if fused.may_write(o, unit.at) and o not in inside}
        read = dict(zip(op.results, (fused.of(v) for v in op.operands), strict=True))
        return {v: o for v, o in read.items() if v in _only_read(op) or (o in free and v in last)}
    if unit.dies:
        return dict(zip(op.results, operands, strict=False))
    return _overwritten(fused, unit)


def _overwritten(fused: Fused, unit: Unit) -> dict[int, int]:
    """Return a map: result of the unit -> operand that the result overwrites."""
    if unit.kind not in ("matmul", "kernel") and unit.collective != "all_reduce":
        return {}
    found: dict[int, int] = {}
    for v in unit.makes:
        for o in unit.reads:
            free = o not in found.values() and fused.may_write(o, unit.at)
            if free and fused.size(o) == fused.size(v) and _element_by_element(fused, unit, o):
                found[v] = o
                break
    return found


def _element_by_element(fused: Fused, unit: Unit, value: int) -> bool:
    """Return True if each element of the unit's results needs only the value's element at the same position."""
    return all(op.name in ELEMENTWISE or op.communication is not None for op in fused.using(unit, value))


def _only_read(op: Operation) -> set[int]:
    """Return the results of a loop that the loop's body passes on unchanged from round to round."""
    body = op.bodies[1]
    return {v for v, came, goes in zip(op.results, body.arguments, body.results, strict=True) if came == goes}


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
