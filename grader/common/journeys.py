"""What goes round from device to device: permutes of which each sends on what the one before it brought.

Followed through all that keeps an array's size element by element, sums and loops included; what is cut, multiplied as matrices or
gathered begins anew, for nobody can say from where it came.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.wire.operations import Body, Operation, Operations

MOST_STEPS = 20_000  # operations, loops written out
MOST_HOPS = 64
KEEPS = {
    "abs", "add", "and", "clamp", "convert", "copy", "divide", "exponential", "log", "maximum", "minimum", "multiply", "negate",
    "power", "reshape", "rsqrt", "select", "shard", "sqrt", "subtract", "tanh", "transpose", "unshard",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Hop:
    """One permute of a journey, and the journey before it."""

    op: Operation
    before: Hop | None
    count: int


@dataclass(frozen=True)
class Journey:
    """What travels in rounds.

    Attributes:
        axes: the mesh axes along which it goes. lines: of each round, in the learner's source.
        holds: before the first round and after each: for every device the one from which its part set out; None: zeros.
    """

    axes: tuple[str, ...]
    lines: tuple[int | None, ...]
    holds: tuple[tuple[int | None, ...], ...]


def journeys(program: Operations) -> list[Journey]:
    """All of two rounds or more, in program order, those that are alike once; none where the program is too long."""
    walk = _Walk(program)
    try:
        walk.body(program.main, [None] * len(program.main.arguments))
    except _TooLongError:
        return []
    devices = math.prod(program.mesh.values())
    found = (_journey(hop, devices) for hop in walk.ends() if hop.count > 1)
    return list({(j.axes, j.holds): j for j in found}.values())


class _TooLongError(Exception):
    pass


@dataclass
class _Walk:
    """Operations in the order in which they run, with the last hop of what each value holds."""

    program: Operations
    at: dict[int, Hop | None] = field(default_factory=dict)
    hops: list[Hop] = field(default_factory=list)
    steps: int = 0

    def ends(self) -> Iterator[Hop]:
        """Hops after which nothing goes on."""
        inner = {id(hop.before) for hop in self.hops}
        return (hop for hop in self.hops if id(hop) not in inner)

    def body(self, body: Body, brought: list[Hop | None]) -> list[Hop | None]:
        self.at.update(zip(body.arguments, brought, strict=True))
        for op in body.operations:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise _TooLongError
            self.at.update(zip(op.results, self.made(op), strict=True))
        return [self.at.get(value) for value in body.results]

    def made(self, op: Operation) -> list[Hop | None]:
        """What the results of an operation bring with them."""
        brought = [self.at.get(value) for value in op.operands]
        if op.communication is not None:
            return [self.hop(op, brought[0])] if op.communication.kind == "permute" else [None] * len(op.results)
        if op.name == "while":
            return self.loop(op, brought)
        if op.name == "optimization_barrier":
            return brought
        if op.name not in KEEPS:
            return [None] * len(op.results)
        size = self.size(op.results[0])
        kept = [hop for hop, value in zip(brought, op.operands, strict=True) if hop and self.size(value) == size]
        return [max(kept, key=lambda hop: hop.count, default=None)]

    def hop(self, op: Operation, before: Hop | None) -> Hop:
        made = Hop(op, before, before.count + 1 if before else 1)
        if made.count > MOST_HOPS:
            raise _TooLongError
        self.hops.append(made)
        return made

    def loop(self, op: Operation, brought: list[Hop | None]) -> list[Hop | None]:
        if op.rounds is None:
            return [None] * len(op.results)
        for _ in range(op.rounds):
            brought = self.body(op.bodies[1], brought)
        return brought

    def size(self, value: int) -> int:
        about = self.program.values[value]
        return math.prod(about.shape) // about.parts


def _journey(last: Hop, devices: int) -> Journey:
    hops: list[Operation] = []
    hop: Hop | None = last
    while hop is not None:
        hops.append(hop.op)
        hop = hop.before
    hops.reverse()
    holds: list[tuple[int | None, ...]] = [tuple(range(devices))]
    axes: list[str] = []
    for op in hops:
        assert op.communication is not None
        senders = {target: source for source, target in op.communication.groups}
        before = holds[-1]
        holds.append(tuple(before[senders[d]] if d in senders else None for d in range(devices)))
        axes += op.communication.axes
    return Journey(tuple(dict.fromkeys(axes)), tuple(op.line for op in hops), tuple(holds))
