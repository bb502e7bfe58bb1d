"""Routes: chains of permutes that pass data on from device to device.

A route follows an array through loops, elementwise operations, reshapes, transposes and slices. It also follows an
array that is written into a buffer and later read at equal indices. These indices must follow from constants and the
device's number. A matmul or a concatenation ends a route, because the elements of its result have no single source.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from grader.common.integers import Numbers, computed
from grader.wire.operations import Body, Operation, Operations

# A walk over a program counts its work: 1 for each write that it looks at, and STEPS_OF_ONE for each operation. It
# counts each round of a loop. A walk that reaches MOST_STEPS takes about a second.
MOST_STEPS, STEPS_OF_ONE = 200_000, 10
MOST_HOPS = 64
MOST_WRITES = 256  # largest number of tracked writes into one buffer
KEEPS = {
    "abs", "add", "and", "clamp", "convert", "copy", "divide", "exponential", "log", "maximum", "minimum", "multiply",
    "negate", "power", "reshape", "rsqrt", "select", "shard", "sqrt", "subtract", "tanh", "transpose", "unshard",
}  # fmt: skip
STAYS = {"convert", "copy", "negate"}  # Operations that keep each element in its place.
# Operations whose results hold only elements of the first operand.
CUTS = {"slice", "dynamic_slice", "gather", "broadcast_in_dim", "reverse"}

Sources = tuple[int | None, ...]
Place = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Hop:
    """One permute of a route.

    Attributes:
        before: the route's previous hop; None for the first hop.
        count: number of hops up to this hop.
        holds: for each device after this hop, the device on which its data started, or None if the data is zeros.
    """

    op: Operation
    before: Hop | None
    count: int
    holds: Sources


@dataclass(frozen=True)
class Route:
    """The path of data that permutes send on from device to device, one permute per round.

    Attributes:
        axes: the mesh axes that the data moves along.
        lines: the line of each round in the learner's source.
        holds: the states before the first round and after each round. A state has, for each device, the device on which
            its data started, or None if the data is zeros.
    """

    axes: tuple[str, ...]
    lines: tuple[int | None, ...]
    holds: tuple[Sources, ...]


def routes(program: Operations) -> list[Route]:
    """Return the routes of two or more rounds, in program order, without repeats; [] if the program is too long."""
    walk = _RouteWalk(program, math.prod(program.mesh.values()))
    try:
        walk.body(program.main, [walk.own] * len(program.main.arguments))
        found = [walk.route(hop) for hop in walk.ends() if hop.count > 1]
    except _TooLongError:
        return []
    return list({(j.axes, j.holds): j for j in found}.values())


class _TooLongError(Exception):
    pass


@dataclass(frozen=True, eq=False)
class _Held:
    """Facts about where the data of a value came from.

    Attributes:
        sources: for each device, the device from which its data came; None if the data is zeros.
        hop: the last permute (hop) that moved the value; None if no permute moved the value.
        writes: blocks that were written over the value, oldest first.
        mixed: whether data of unknown origin was written over the value.
        numbers: for each device, the value as an integer, if the value has one element and is known.
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
    """A block that is written into a buffer, with facts about its data.

    ``starts`` has the block's first indices on each device; None if the device writes nothing.
    """

    starts: tuple[Place | None, ...]
    shape: Place
    held: _Held


@dataclass
class _RouteWalk:
    """A walk over a program's operations, in the order in which they run, that tracks where each value came from."""

    program: Operations
    devices: int
    at: dict[int, _Held] = field(default_factory=dict)
    hops: list[Hop] = field(default_factory=list)
    steps: int = 0

    def __post_init__(self) -> None:
        self.own = _Held(tuple(range(self.devices)))

    def ends(self) -> Iterator[Hop]:
        """Yield the last hop (permute) of each route: a hop whose data no later hop sends on."""
        inner = {id(hop.before) for hop in self.hops}
        return (hop for hop in self.hops if id(hop) not in inner)

    def route(self, last: Hop) -> Route:
        self.counted(last.count * self.devices // STEPS_OF_ONE)
        hops: list[Hop] = []
        hop: Hop | None = last
        while hop is not None:
            hops.append(hop)
            hop = hop.before
        hops.reverse()
        axes = [axis for hop in hops if hop.op.communication for axis in hop.op.communication.axes]
        holds = self.own.sources, *(hop.holds for hop in hops)
        return Route(tuple(dict.fromkeys(axes)), tuple(hop.op.line for hop in hops), holds)

    def body(self, body: Body, brought: list[_Held]) -> list[_Held]:
        self.counted(STEPS_OF_ONE)  # counts each round of a loop, even if the loop has no operations
        self.at.update(zip(body.arguments, brought, strict=True))
        for op in body.operations:
            self.counted(STEPS_OF_ONE)
            self.at.update(zip(op.results, self.made(op), strict=True))
        return [self.at.get(value, self.own) for value in body.results]

    def counted(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise _TooLongError

    def made(self, op: Operation) -> list[_Held]:
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
        """Return facts about the operand with the most hops (permutes). Only operands of the result's size count."""
        size = self.size(op.results[0])
        alike = [held for held, value in zip(brought, op.operands, strict=True) if self.size(value) == size]
        farthest = max(alike, key=lambda held: held.hops, default=self.own)
        if op.name in STAYS or all(held.whole for held in alike):
            return replace(farthest, numbers=None)
        return _Held(farthest.sources, farthest.hop, mixed=True)

    def cut(self, op: Operation, brought: list[_Held]) -> _Held:
        """Return facts about the part of a value that ``op`` takes.

        If blocks were written over the value, a route continues only if the part is inside one block or outside all
        blocks.
        """
        held, shape = brought[0], self.shape(op.results[0])
        if held.whole:
            return replace(held, numbers=None)
        starts = self.starts(self.shape(op.operands[0]), shape, brought[1:]) if op.name == "dynamic_slice" else None
        if held.mixed or starts is None:
            return self.own
        found = [self.standing(held, device, start, shape) for device, start in enumerate(starts)]
        if None in found:
            return self.own
        parts = [part for part in found if part is not None]
        farthest = max(parts, key=lambda part: part.hops)
        return _Held(tuple(part.sources[device] for device, part in enumerate(parts)), farthest.hop)

    def written(self, op: Operation, brought: list[_Held]) -> _Held:
        held, whole = brought[0], self.shape(op.operands[0])
        if op.name == "scatter":
            update = brought[2] if len(brought) == 3 else self.own
            shape, starts = self.scattered(op, whole, brought)
            if not update.hops and held.hops + len(held.writes):  # a scatter-add does not erase the old values
                starts = None
        else:
            update, shape = brought[1], self.shape(op.operands[1])
            starts = self.starts(whole, shape, brought[2:])
        if starts is None or held.mixed or not update.whole:
            return _Held(held.sources, held.hop, mixed=True)
        if len(held.writes) == MOST_WRITES:
            raise _TooLongError
        return replace(held, writes=(*held.writes, _Write(tuple(starts), shape, update)), numbers=None)

    def standing(self, held: _Held, device: int, start: Place | None, shape: Place) -> _Held | None:
        """Return facts about a piece of a device's buffer; None if a block was written over only part of the piece."""
        assert start is not None
        for write in reversed(held.writes):
            self.counted(1)
            at = write.starts[device]
            if at is None:
                continue
            spans = list(zip(start, shape, at, write.shape, strict=True))
            if all(b <= a and a + n <= b + m for a, n, b, m in spans):
                return write.held
            if all(a < b + m and b < a + n for a, n, b, m in spans):
                return None
        return _Held(held.sources, held.hop)

    def starts(self, whole: Place, part: Place, brought: Sequence[_Held]) -> list[Place | None] | None:
        """Return the indices at which a part begins on each device; None if unknown.

        As in XLA, a start that is out of range is moved to the nearest start at which the part fits.
        """
        known = [held.numbers for held in brought]
        if len(known) != len(whole) or None in known:
            return None
        room = [size - own for size, own in zip(whole, part, strict=True)]
        places = zip(*(numbers for numbers in known if numbers is not None), strict=True)
        return [tuple(min(max(at, 0), most) for at, most in zip(place, room, strict=True)) for place in places]

    def scattered(self, op: Operation, whole: Place, brought: list[_Held]) -> tuple[Place, list[Place | None] | None]:
        """Return the shape of the block that a scatter writes, and its place on each device (None if out of range).

        Return ((), None) unless the scatter writes exactly one known index of one dimension.
        """
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
