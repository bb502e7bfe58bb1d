"""Track which parts of a program's arguments each value depends on, separately on each device.

An entry of an argument is the part at one index of its first dimension, such as a micro-batch. A value has a mark for
each entry on which it depends. If it depends on data that permutes send, it also has marks for this data. The result of
an operation gets the marks of all operands. There are three cases for an operation that uses only a part of its
operands:

- If the part follows from constants and the device number, the result gets only that part's marks.
- If input data selects one of several values, the result gets the marks of all these values.
- Otherwise, the result gets the marks of all entries that the operation can use. If the operation perhaps uses only
  some of these entries, the result also gets the argument's *vague mark*: the result may have too many marks of this
  argument.

So a value may have too many marks, but never too few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, pairwise
from operator import and_, or_

from grader.common.integers import Numbers, computed
from grader.wire.operations import Body, Operation, Operations

# A ``MarkWalk`` counts its work: 1 for each mark that it reads or makes, and MARKS_OF_ONE for each operation. It counts
# each round of a loop. A walk that reaches MOST_MARKS takes about a second.
MOST_MARKS, MARKS_OF_ONE = 2_000_000, 16
MOST_ENTRIES = 64  # If an array's first dimension is longer, the array's entries have no marks of their own.
MOST_BITS = 8192  # Largest number of bits for the marks of all arguments' entries.
MOST_SENT = 256
BY_ELEMENT = {
    "abs", "add", "and", "clamp", "compare", "convert", "copy", "divide", "exponential", "log", "maximum", "minimum",
    "multiply", "negate", "not", "or", "power", "rsqrt", "select", "sqrt", "subtract", "tanh", "xor",
}  # fmt: skip

Marks = tuple[int, ...]  # sets of marks, as bits: one set for each entry, or a single set for the whole value


class UnknownError(Exception):
    """The walk over the program is too long, or the program has a part that the walk cannot track."""


def joined(marks: Iterable[int]) -> int:
    return reduce(or_, marks, 0)


@dataclass(frozen=True)
class Held:
    """A value's marks on each device.

    ``numbers``: on each device, the integer that all elements are equal to; None if unknown.
    """

    marks: tuple[Marks, ...]
    numbers: Numbers | None = None

    @property
    def size(self) -> int:
        return sum(map(len, self.marks))


@dataclass
class Sent:
    """A value that one or more permutes send, with its marks on each device. ``number`` counts such values from 0."""

    number: int
    marks: tuple[int, ...]
    permutes: list[Operation] = field(default_factory=list)


class MarkWalk:
    """A walk over a program's operations, in the order in which they run, that marks each value."""

    def __init__(self, program: Operations, devices: int) -> None:
        self.program, self.devices, self.count = program, devices, 0
        self.at: dict[int, Held] = {}
        self.sends = {
            op.operands[0] for op in program.walk() if op.communication and op.communication.kind == "permute"
        }
        self.sent: list[Sent] = []
        self.latest: dict[int, Sent] = {}  # Value that a permute sends -> its latest ``Sent``.
        # An array that is joined from parts where a shard_map ends -> shape and marks of the parts.
        self.parts: dict[int, tuple[tuple[int, ...], Held]] = {}
        shapes = [program.values[value].shape for value in program.main.arguments]
        counts = [shape[0] if shape and 1 < shape[0] <= MOST_ENTRIES else 0 for shape in shapes]
        # The position of each argument's first bit. An argument has one bit for each entry of its first dimension, but
        # none if there are too many entries. The argument's last bit means "some entries, unknown which".
        self.first = list(accumulate((count + 1 for count in counts), initial=0))
        self.vague_bits = sum(1 << stop - 1 for stop in self.first[1:])
        self.entry_bits = (1 << self.first[-1]) - 1 - self.vague_bits

    def results(self) -> list[Held]:
        if self.first[-1] > MOST_BITS:
            raise UnknownError
        return self.body(self.program.main, self.arguments())

    def arguments(self) -> list[Held]:
        each = [tuple(1 << bit for bit in range(start, stop - 1)) or (0,) for start, stop in pairwise(self.first)]
        return [Held((marks,) * self.devices) for marks in each]

    def entries_in(self, marks: int, argument: int) -> tuple[int, bool]:
        """Return the marked entries of one argument, as bits, and whether they are exact.

        They are not exact if ``marks`` has the argument's vague mark. Then some of these entries may not be used.
        """
        start, stop = self.first[argument : argument + 2]
        found, vague = marks >> start & (1 << stop - start) - 1, 1 << stop - start - 1
        return found & ~vague, not found & vague

    def exact_sources(self, marks: int) -> bool:
        """Return whether ``marks`` says exactly which sent values a value depends on."""
        return not marks >> self.first[-1] & 1

    def bits(self, number: int, *, arrived: bool = False) -> list[int]:
        """Return the marks of the sent value ``number``: one bit for each device's part of the value.

        With ``arrived``, return the marks of the parts that the devices receive.
        """
        start = self.first[-1] + 1 + (2 * number + arrived) * self.devices
        return [1 << bit for bit in range(start, start + self.devices)]

    def vague(self, parts: Iterable[int]) -> int:
        """Return the marks of all ``parts`` together.

        If the parts depend on different entries of an argument, add its vague mark. All sent values share one vague
        mark.
        """
        every = list(parts)
        found = joined(every)
        differing = found & ~reduce(and_, every, -1)
        # If ``differing`` has bits of an argument's entries, this addition carries into the bit after these bits. That
        # bit is the argument's vague mark.
        carried = (differing & self.entry_bits) + self.entry_bits & self.vague_bits
        return found | carried | bool(differing >> self.first[-1]) << self.first[-1]

    # values

    def counted(self, marks: int) -> None:
        """Count marks that the walk read or made, to limit its time. Raises UnknownError after MOST_MARKS marks."""
        self.count += marks
        if self.count > MOST_MARKS:
            raise UnknownError

    def put(self, values: Sequence[int], held: Sequence[Held]) -> None:
        self.counted(sum(one.size for one in held))
        for value, one in zip(values, held, strict=True):
            self.at[value] = self.marked(value, one) if value in self.sends else one

    def marked(self, value: int, held: Held) -> Held:
        """Add a new mark, different on each device, to the data that a permute sends."""
        if len(self.sent) == MOST_SENT:
            raise UnknownError
        sent = Sent(len(self.sent), tuple(joined(marks) for marks in held.marks))
        self.sent.append(sent)
        self.latest[value] = sent
        return Held(_with(held.marks, self.bits(sent.number)), held.numbers)

    def shape(self, value: int) -> tuple[int, ...]:
        return self.program.values[value].shape

    def each(self, make: Callable[[int], Marks]) -> Held:
        return Held(tuple(make(device) for device in range(self.devices)))

    # operations

    def body(self, body: Body, brought: Sequence[Held]) -> list[Held]:
        self.counted(MARKS_OF_ONE)  # counts each round of a loop, even if the loop has no operations
        self.put(body.arguments, brought)
        for op in body.operations:
            brought = [self.at[value] for value in op.operands]
            self.counted(MARKS_OF_ONE + sum(held.size for held in brought))
            self.put(op.results, self.made(op, brought))
        return [self.at[value] for value in body.results]

    def made(self, op: Operation, brought: list[Held]) -> list[Held]:
        if op.communication is not None:
            return self.moved(op, brought)
        if op.name == "while":
            return self.loop(op, brought)
        if op.name in ("case", "if"):
            return self.branches(op, brought[0])
        if op.name == "optimization_barrier":
            return brought
        if len(op.results) == 1:
            if (numbers := computed(op, self.program, [held.numbers for held in brought])) is not None:
                return [Held(((0,),) * self.devices, numbers)]
            if (rule := _RULES.get(op.name)) is not None:
                return [rule(self, op, brought)]
        return [self.union(brought)] * len(op.results)

    def union(self, brought: Sequence[Held]) -> Held:
        """Join all operands' marks, for a value that depends on every operand, but perhaps not on all its entries."""
        return self.each(lambda d: (joined(self.vague(held.marks[d]) for held in brought),))

    def some(self, brought: Sequence[Held]) -> Held:
        """Join the marks of all operands, for a value that perhaps depends on only some of the operands."""
        return self.each(lambda d: (self.vague(part for held in brought for part in held.marks[d]),))

    def everywhere(self, op: Operation, brought: list[Held]) -> Held:
        """Return marks for a result that depends on the operands' parts on all devices, as for an all-gather."""
        parts = [part for held in brought for marks in held.marks for part in marks]
        return Held(((self.vague(parts),),) * self.devices)

    def moved(self, op: Operation, brought: list[Held]) -> list[Held]:
        assert op.communication is not None
        if op.communication.kind == "permute":
            sent = self.latest[op.operands[0]]
            sent.permutes.append(op)
            self.counted(len(op.communication.groups))
            senders = {target: source for source, target in op.communication.groups}
            held = self.each(lambda d: brought[0].marks[senders[d]] if d in senders else (0,))
            return [Held(_with(held.marks, self.bits(sent.number, arrived=True)))]
        return [self.everywhere(op, brought)] * len(op.results)

    def loop(self, op: Operation, brought: list[Held]) -> list[Held]:
        if op.rounds is None:
            raise UnknownError
        for _ in range(op.rounds):
            brought = self.body(op.bodies[1], brought)
        return brought

    def permuted(self) -> int:
        return sum(len(sent.permutes) for sent in self.sent)

    def taken(self, op: Operation, numbers: Numbers | None) -> list[set[int]]:
        """Return for each device the branches that it may take.

        ``numbers``: the selector's value on each device; None if unknown, so that each device may take every branch.

        As in XLA, a number to which no branch belongs selects the last branch.
        """
        last = len(op.bodies) - 1
        if numbers is None:
            return [set(range(last + 1))] * self.devices
        if op.name == "if":
            return [{0 if n else 1} for n in numbers]
        return [{n if 0 <= n <= last else last} for n in numbers]

    def branches(self, op: Operation, which: Held) -> list[Held]:
        """Return the marks of a conditional's results.

        A device gets marks from the branch that it takes or, if this is unknown, from all branches.
        """
        before, last = self.permuted(), len(op.bodies) - 1
        taken = self.taken(op, which.numbers)
        run = {n: self.body(op.bodies[n], []) for n in sorted(set().union(*taken))}
        if len(run) > 1 and self.permuted() > before:
            raise UnknownError  # devices take different branches, so some may not take part in a branch's permute
        if len(run) == 1:
            return next(iter(run.values()))
        offered = [[run[n][i] if n in run else None for n in range(last + 1)] for i in range(len(op.results))]
        return [self.choice(values, taken, which) for values in offered]

    def choice(self, offered: Sequence[Held | None], taken: Sequence[set[int]], which: Held) -> Held:
        """Return the marks of a value that is selected from ``offered``, joined with the marks of the selector.

        Args:
            offered: the values from which one is selected.
            taken: for each device, the positions in ``offered`` of the values that may be selected there.
            which: the value that selects.
        """
        self.counted(len(offered) + sum(held.size for held in offered if held))

        def chosen(d: int) -> Marks:
            return _rows([(joined(which.marks[d]),), *(held.marks[d] for n in taken[d] if (held := offered[n]))])

        return self.each(chosen)

    def by_element(self, op: Operation, brought: list[Held]) -> Held:
        if op.name == "select" and (numbers := brought[0].numbers) is not None:
            return self.choice(brought[1:], [{0 if n else 1} for n in numbers], brought[0])
        return self.each(lambda d: _rows([held.marks[d] for held in brought]))

    # The methods below handle the entries of an array's first dimension.

    def entries(self, value: int) -> int:
        """Return the number of entries of a value, or 0 if it has no dimensions or more than MOST_ENTRIES entries."""
        shape = self.shape(value)
        return shape[0] if shape and shape[0] <= MOST_ENTRIES else 0

    def unsharded(self, op: Operation, brought: list[Held]) -> Held:
        self.parts[op.results[0]] = self.shape(op.operands[0]), brought[0]
        return self.everywhere(op, brought)

    def sharded(self, op: Operation, brought: list[Held]) -> Held:
        """Return the marks of each device's part of an array that ``shard_map`` cuts into parts.

        An earlier ``shard_map`` may have joined the array from parts of this shape. Each device then gets back its
        earlier part, if only one mesh axis has several devices. If dimension 0 is not cut, each part has all entries.
        """
        whole, part = self.shape(op.operands[0]), self.shape(op.results[0])
        before, held = self.parts.get(op.operands[0], ((), None))
        alone = sum(size > 1 for size in self.program.mesh.values()) == 1
        if held and alone and before == part and math.prod(whole) == math.prod(part) * self.devices:
            return held
        return brought[0] if whole[:1] == part[:1] else self.union(brought)

    def reshaped(self, op: Operation, brought: list[Held]) -> Held:
        before, after = self.entries(op.operands[0]), self.entries(op.results[0])
        old, new = (math.prod(self.shape(value)[1:]) for value in (op.operands[0], op.results[0]))
        if not (before and after and old and new):
            return self.union(brought)
        spans = [(i * new // old, -(-(i + 1) * new // old)) for i in range(after)]
        return self.each(lambda d: tuple(joined(_part(brought[0].marks[d], *span)) for span in spans))

    def starts(self, op: Operation, index: Numbers | None, size: int) -> Numbers | None:
        """Return for each device the first entry that the operation takes or replaces there; None if unknown.

        As in XLA, a start that is out of range is moved to the nearest start in range.
        """
        entries = self.entries(op.operands[0])
        most = entries - size
        numbers = (op.start,) * self.devices if op.start is not None else index
        return None if numbers is None or not entries or most < 0 else tuple(min(max(n, 0), most) for n in numbers)

    def cut(self, op: Operation, brought: list[Held]) -> Held:
        """Return the marks of the entries that a slice or gather takes."""
        size = 1 if op.entry else self.entries(op.results[0])
        known = op.entry or op.name == "dynamic_slice"
        starts = self.starts(op, brought[1].numbers if known and len(brought) > 1 else None, size)
        if starts is None:
            return self.union(brought)
        part = self.each(lambda d: _part(brought[0].marks[d], starts[d], starts[d] + size))
        return self.by_element(op, [part, self.union(brought[1:])])

    def written(self, op: Operation, brought: list[Held]) -> Held:
        """Return the marks of an array after some of its entries are replaced."""
        shape = self.shape(op.operands[1])
        size, index = (shape[0] if shape else 0), (brought[2].numbers if len(brought) > 2 else None)
        starts = self.starts(op, index, size)
        if starts is None:
            return self.some(brought)
        whole = shape[1:] == self.shape(op.operands[0])[1:]
        return self.replaced(op, brought[0], brought[1] if whole else self.union(brought), starts, size)

    def scattered(self, op: Operation, brought: list[Held]) -> Held:
        if not op.entry or brought[1].numbers is None or not self.entries(op.operands[0]):
            return self.some(brought)
        return self.replaced(op, brought[0], self.union(brought[2:]), brought[1].numbers, 1)

    def replaced(self, op: Operation, held: Held, new: Held, starts: Numbers, size: int) -> Held:
        n = self.entries(op.operands[0])

        def marks(d: int) -> Marks:
            old, start = list(_spread(held.marks[d], n)), starts[d]
            if 0 <= start < n:
                old[start : start + size] = _spread(new.marks[d], size)
            return tuple(old)

        return self.each(marks)

    def concatenated(self, op: Operation, brought: list[Held]) -> Held:
        counts = [self.entries(value) for value in op.operands]
        if len(counts) < 2 or not all(counts) or sum(counts) != self.entries(op.results[0]):
            return self.union(brought)
        parts = list(zip(brought, counts, strict=True))
        return self.each(lambda d: tuple(mark for held, n in parts for mark in _spread(held.marks[d], n)))

    def same(self, op: Operation, brought: list[Held]) -> Held:
        return Held(self.union(brought).marks, brought[0].numbers)


def _with(marks: Sequence[Marks], bits: Sequence[int]) -> tuple[Marks, ...]:
    """Return a value's marks with one more mark on each device. ``bits`` has this mark for each device."""
    return tuple(tuple(part | bit for part in one) for one, bit in zip(marks, bits, strict=True))


def _spread(marks: Marks, count: int) -> Marks:
    return marks if len(marks) == count else marks * count


def _part(marks: Marks, start: int, stop: int) -> Marks:
    return marks if len(marks) == 1 else marks[start:stop] or (0,)


def _rows(marks: Sequence[Marks]) -> Marks:
    """Join the marks of several values, separately for each entry (index of dimension 0)."""
    count = max(map(len, marks))
    return tuple(map(joined, zip(*(_spread(one, count) for one in marks), strict=True)))


_Rule = Callable[[MarkWalk, Operation, list[Held]], Held]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(BY_ELEMENT, MarkWalk.by_element),
    "broadcast_in_dim": MarkWalk.same,
    "concatenate": MarkWalk.concatenated,
    "dynamic_slice": MarkWalk.cut,
    "dynamic_update_slice": MarkWalk.written,
    "gather": MarkWalk.cut,
    "reshape": MarkWalk.reshaped,
    "reshard": MarkWalk.everywhere,
    "scatter": MarkWalk.scattered,
    "shard": MarkWalk.sharded,
    "slice": MarkWalk.cut,
    "unshard": MarkWalk.unsharded,
}
