"""Routes of data from device to device: chains of permutes, where each permute passes on the previous permute's data.

An array is followed through operations that keep its size, including sums and loops, and through cuts of a received
array. Writes into a buffer are recorded with their places. A later cut of the buffer leads back to a write if the place
of the cut is known, also if a device computes this place from its own number. A matmul or a concatenation ends a route,
because the elements of its result have no single source.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from grader.wire.frames import dtype_of
from grader.wire.operations import Body, Operation, Operations

MOST_STEPS = 20_000  # operations, with loops unrolled
MOST_HOPS = 64
MOST_WRITES = 256  # most tracked writes into one buffer
KEEPS = {
    "abs", "add", "and", "clamp", "convert", "copy", "divide", "exponential", "log", "maximum", "minimum", "multiply",
    "negate", "power", "reshape", "rsqrt", "select", "shard", "sqrt", "subtract", "tanh", "transpose", "unshard",
}  # fmt: skip
STAYS = {"convert", "copy", "negate"}  # operations that keep each element in its place
# Operations whose results hold only elements of the first operand.
CUTS = {"slice", "dynamic_slice", "gather", "broadcast_in_dim", "reverse"}

Sources = tuple[int | None, ...]
Place = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Hop:
    """One permute of a route, the hop before it, and (``holds``) the source of each device's data; None for zeros."""

    op: Operation
    before: Hop | None
    count: int
    holds: Sources


@dataclass(frozen=True)
class Route:
    """Data that permutes pass on, round by round.

    Attributes:
        axes: the mesh axes that the data moves along.
        lines: the line of each round in the learner's source.
        holds: for every device the source of its data, before the first round and after each round; None for zeros.
    """

    axes: tuple[str, ...]
    lines: tuple[int | None, ...]
    holds: tuple[Sources, ...]


def routes(program: Operations) -> list[Route]:
    """Return the routes of two or more rounds, in program order, without repeats; none if the program is too long."""
    walk = _RouteWalk(program, math.prod(program.mesh.values()))
    try:
        walk.body(program.main, [walk.own] * len(program.main.arguments))
    except _TooLongError:
        return []
    found = (_route(hop, walk.own.sources) for hop in walk.ends() if hop.count > 1)
    return list({(j.axes, j.holds): j for j in found}.values())


class _TooLongError(Exception):
    pass


@dataclass(frozen=True, eq=False)
class _Held:
    """Facts about a value.

    Attributes:
        sources: for every device, the device that its part of the value comes from.
        hop: the last hop that brought the value; None if the value never moved.
        writes: blocks that were written over the value, oldest first.
        mixed: unknown data was written over the value, too.
        numbers: the integer on every device, if the value is a single known integer.
    """

    sources: Sources
    hop: Hop | None = None
    writes: tuple[_Write, ...] = ()
    mixed: bool = False
    numbers: Numbers | None = None

    @property
    def whole(self) -> bool:
        return not self.writes and not self.mixed

    @property
    def hops(self) -> int:
        return self.hop.count if self.hop else 0


@dataclass(frozen=True, eq=False)
class _Write:
    """A block written into a buffer: its start on each device (None: not written), its shape, and its content."""

    starts: tuple[Place | None, ...]
    shape: Place
    held: _Held


@dataclass
class _RouteWalk:
    """Walk a program's operations in the order in which they run, and track the content of each value."""

    program: Operations
    devices: int
    at: dict[int, _Held] = field(default_factory=dict)
    hops: list[Hop] = field(default_factory=list)
    steps: int = 0

    def __post_init__(self) -> None:
        self.own = _Held(tuple(range(self.devices)))

    def ends(self) -> Iterator[Hop]:
        """Return the hops that no other hop continues."""
        inner = {id(hop.before) for hop in self.hops}
        return (hop for hop in self.hops if id(hop) not in inner)

    def body(self, body: Body, brought: list[_Held]) -> list[_Held]:
        self.at.update(zip(body.arguments, brought, strict=True))
        for op in body.operations:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise _TooLongError
            self.at.update(zip(op.results, self.made(op), strict=True))
        return [self.at.get(value, self.own) for value in body.results]

    def made(self, op: Operation) -> list[_Held]:
        """Return the content of an operation's results."""
        brought = [self.at.get(value, self.own) for value in op.operands]
        if op.communication is not None:
            return [self.hop(op, brought[0])] if op.communication.kind == "permute" else [self.own] * len(op.results)
        if op.name == "while":
            return self.loop(op, brought)
        if op.name == "optimization_barrier":
            return brought
        if len(op.results) != 1:
            return [self.own] * len(op.results)
        if (numbers := computed(op, self.program, [held.numbers for held in brought])) is not None:
            return [replace(self.own, numbers=numbers)]
        if op.name in CUTS:
            return [self.cut(op, brought)]
        if op.name in ("dynamic_update_slice", "scatter"):
            return [self.written(op, brought)]
        return [self.kept(op, brought) if op.name in KEEPS else self.own]

    def kept(self, op: Operation, brought: list[_Held]) -> _Held:
        """Return the content with the most hops, among operands as large as the result."""
        size = self.size(op.results[0])
        alike = [held for held, value in zip(brought, op.operands, strict=True) if self.size(value) == size]
        farthest = max(alike, key=lambda held: held.hops, default=self.own)
        if op.name in STAYS or all(held.whole for held in alike):
            return replace(farthest, numbers=None)
        return _Held(farthest.sources, farthest.hop, mixed=True)

    def cut(self, op: Operation, brought: list[_Held]) -> _Held:
        """Return the content of a part of a value. In a buffer with writes, the part must be within one known block."""
        held, shape = brought[0], self.shape(op.results[0])
        if held.whole:
            return replace(held, numbers=None)
        starts = self.starts(self.shape(op.operands[0]), shape, brought[1:]) if op.name == "dynamic_slice" else None
        if held.mixed or starts is None:
            return self.own
        found = [_standing(held, device, start, shape) for device, start in enumerate(starts)]
        if None in found:
            return self.own
        parts = [part for part in found if part is not None]
        farthest = max(parts, key=lambda part: part.hops)
        return _Held(tuple(part.sources[device] for device, part in enumerate(parts)), farthest.hop)

    def written(self, op: Operation, brought: list[_Held]) -> _Held:
        """Return a buffer with a block written into it."""
        held, whole = brought[0], self.shape(op.operands[0])
        if op.name == "scatter":
            update = brought[2] if len(brought) == 3 else self.own
            shape, starts = self.scattered(op, whole, brought)
            if not update.hops and held.hops + len(held.writes):  # a scatter-add keeps old values
                starts = None
        else:
            update, shape = brought[1], self.shape(op.operands[1])
            starts = self.starts(whole, shape, brought[2:])
        if starts is None or held.mixed or not update.whole:
            return _Held(held.sources, held.hop, mixed=True)
        if len(held.writes) == MOST_WRITES:
            raise _TooLongError
        return replace(held, writes=(*held.writes, _Write(tuple(starts), shape, update)), numbers=None)

    def starts(self, whole: Place, part: Place, brought: Sequence[_Held]) -> list[Place | None] | None:
        """Return where a part begins on each device, clamped so that the part fits; None if unknown."""
        known = [held.numbers for held in brought]
        if len(known) != len(whole) or None in known:
            return None
        room = [size - own for size, own in zip(whole, part, strict=True)]
        places = zip(*(numbers for numbers in known if numbers is not None), strict=True)
        return [tuple(min(max(at, 0), most) for at, most in zip(place, room, strict=True)) for place in places]

    def scattered(self, op: Operation, whole: Place, brought: list[_Held]) -> tuple[Place, list[Place | None] | None]:
        """Return shape and places of a scatter that replaces one entry of a dimension; a place out of range is None."""
        if len(op.operands) != 3 or (numbers := brought[1].numbers) is None:
            return (), None
        update = self.shape(op.operands[2])
        dims = [d for d in range(len(whole)) if whole[:d] + whole[d + 1 :] == update]
        if len(dims) != 1:
            return (), None
        (d,) = dims
        places = [(0,) * d + (n,) + (0,) * (len(whole) - d - 1) if 0 <= n < whole[d] else None for n in numbers]
        return (*update[:d], 1, *update[d:]), places

    def hop(self, op: Operation, brought: _Held) -> _Held:
        assert op.communication is not None
        senders = {target: source for source, target in op.communication.groups}
        holds = tuple(brought.sources[senders[d]] if d in senders else None for d in range(self.devices))
        made = Hop(op, brought.hop, brought.hops + 1, holds)
        if made.count > MOST_HOPS:
            raise _TooLongError
        self.hops.append(made)
        return _Held(holds, made, mixed=not brought.whole)

    def loop(self, op: Operation, brought: list[_Held]) -> list[_Held]:
        if op.rounds is None:
            return [self.own] * len(op.results)
        for _ in range(op.rounds):
            brought = self.body(op.bodies[1], brought)
        return brought

    def shape(self, value: int) -> Place:
        return self.program.values[value].shape

    def size(self, value: int) -> int:
        about = self.program.values[value]
        return math.prod(about.shape) // about.parts


def _standing(held: _Held, device: int, start: Place | None, shape: Place) -> _Held | None:
    """Return the content of a part of a buffer on one device; None if the part spans several blocks."""
    assert start is not None
    for write in reversed(held.writes):
        at = write.starts[device]
        if at is None:
            continue
        spans = list(zip(start, shape, at, write.shape, strict=True))
        if all(b <= a and a + n <= b + m for a, n, b, m in spans):
            return write.held
        if all(a < b + m and b < a + n for a, n, b, m in spans):
            return None
    return _Held(held.sources, held.hop)


def _route(last: Hop, own: Sources) -> Route:
    hops: list[Hop] = []
    hop: Hop | None = last
    while hop is not None:
        hops.append(hop)
        hop = hop.before
    hops.reverse()
    axes = [axis for hop in hops if hop.op.communication for axis in hop.op.communication.axes]
    return Route(tuple(dict.fromkeys(axes)), tuple(hop.op.line for hop in hops), (own, *(hop.holds for hop in hops)))


Numbers = tuple[int, ...]
MOST_DEVICES = 64  # most devices for which numbers are computed
LIMIT = 1 << 63

COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": operator.eq, "NE": operator.ne, "GE": operator.ge, "GT": operator.gt, "LE": operator.le, "LT": operator.lt,
}  # fmt: skip


def _quotient(a: int, b: int) -> int:
    """Divide integers towards zero, as XLA does."""
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

    Args:
        operands: values of the operation's operands; None if unknown.

    Returns:
        The integers by device; None if the result is unknown or not a single integer. An integer may exceed its dtype.
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
    """Apply a function on each device; None if a result is below ``least`` or above 64 bits, or divides by zero."""
    try:
        numbers = tuple(int(function(*each)) for each in zip(*operands, strict=True))
    except ZeroDivisionError:
        return None
    return numbers if all(least <= n < LIMIT for n in numbers) else None
