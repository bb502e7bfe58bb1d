"""Build a timeline: schedule the units of each body, then list each run of a kernel or collective as a span.

A unit is a kernel, a collective or a loop. A body is the program itself, a loop's body or a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from grader.clock.collectives import ASYNCHRONOUS, Untimed, duration
from grader.clock.kernels import ELEMENTWISE, GIVEN, Fused, Unit
from grader.clock.memory import title, worst
from grader.clock.order import Busy, Laid, Piece, lay
from grader.clock.placement import Placement, Slice, picoseconds, placed
from grader.clock.timeline import COMPUTE, CollectiveTime, LiveMemory, Loop, Span, Timeline
from grader.hardware.chips import unknown
from grader.wire.operations import Body, Communication, Operation, Operations

EIGHT_BITS = {"int8", "uint8", "int4", "uint4"}
# Outside shard_map, these operations move no data between devices.
ELEMENT_BY_ELEMENT = ELEMENTWISE | {"broadcast_in_dim", "constant", "iota", "reshape"}
SHOWN_NAMES = 3
PLAIN = GIVEN | {"convert", "broadcast_in_dim", "reshape", "shard", "unshard"}


@dataclass(frozen=True)
class LaidBlock:
    """A loop's body, or the longest branch of a conditional. ``rounds``: how often the body runs (a branch: once)."""

    body: LaidBody
    rounds: int
    is_loop: bool


@dataclass(frozen=True)
class LaidBody:
    """A scheduled body. ``pieces[i]`` has the duration of ``fused.units[i]`` and the resources that this unit occupies.

    Attributes:
        numbers: each unit's number in the whole program.
        blocks: the bodies of loops and conditionals, keyed by the position of the loop's or conditional's unit.
    """

    fused: Fused
    pieces: list[Piece]
    laid: Laid
    numbers: list[int]
    blocks: dict[int, LaidBlock]
    memory: LiveMemory

    @property
    def length(self) -> int:
        return self.laid.length

    @cached_property
    def kernels(self) -> Busy:
        """The intervals in which the core runs a kernel of this body, except kernels of inner loops and branches."""
        return Busy((self.laid.start[i], self.laid.start[i] + self.pieces[i].duration) for i in self.own_kernels)

    @cached_property
    def then(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.pieces]
        for i, piece in enumerate(self.pieces):
            for j in piece.after:
                found[j].append(i)
        return found

    @property
    def own_kernels(self) -> Iterator[int]:
        return (i for i, u in enumerate(self.fused.units) if u.kind in ("matmul", "kernel"))

    @property
    def busy(self) -> int:
        """Picoseconds for which kernels run, over all rounds of loops."""
        own = sum(self.pieces[i].duration for i in self.own_kernels)
        return own + sum(b.rounds * b.body.busy for b in self.blocks.values())

    @property
    def matmuls(self) -> int:
        """Picoseconds for which matmuls run, over all rounds of loops."""
        own = sum(self.pieces[i].duration for i in self.own_kernels if self.fused.units[i].kind == "matmul")
        return own + sum(b.rounds * b.body.matmuls for b in self.blocks.values())

    @property
    def flops(self) -> int:
        return sum(u.flops for u in self.fused.units) + sum(b.rounds * b.body.flops for b in self.blocks.values())


class Laying:
    """Schedules the bodies of one program (the program itself, loop bodies, branches), inner bodies first."""

    def __init__(self, program: Operations, place: Placement, profile: str) -> None:
        self.program, self.place = program, place
        self.beside = ASYNCHRONOUS[profile]
        self.everything = (COMPUTE, *(f"{axis}{sign}" for axis in place.axes for sign in "+-"))
        self.count = 0
        self.known: dict[Communication, tuple[int, tuple[str, ...]]] = {}

    def body(self, body: Body, *, outermost: bool = False) -> LaidBody:
        fused = Fused(self.program, body, owns_arguments=not outermost)
        pieces, numbers, blocks = [], [], {}
        for i, unit in enumerate(fused.units):
            numbers.append(self.count)
            self.count += 1
            if unit.kind == "block":
                blocks[i] = self.block(unit.root)
            time, held = self.held(fused, unit, blocks.get(i))
            pieces.append(Piece(time, held, frozenset(unit.after), unit.kind == "collective"))
        laid = lay(pieces, COMPUTE)
        when = [(s, s + p.duration) for s, p in zip(laid.start, pieces, strict=True)]
        inside = {i: b.body.memory for i, b in blocks.items()}
        memory = worst(fused, when, inside, laid.length, outermost=outermost)
        return LaidBody(fused, pieces, laid, numbers, blocks, memory)

    def block(self, op: Operation) -> LaidBlock:
        if op.name != "while":
            return LaidBlock(max((self.body(b) for b in op.bodies), key=lambda b: b.length), 1, False)
        if op.rounds is None:
            raise _untimed("a loop's number of rounds cannot be read from the program, so the loop cannot be timed", op)
        return LaidBlock(self.body(op.bodies[1]), op.rounds, True)

    def held(self, fused: Fused, unit: Unit, block: LaidBlock | None) -> tuple[int, tuple[str, ...]]:
        """Return a unit's duration in picoseconds, and the resources that it holds."""
        op = unit.root
        if block is not None:
            return block.rounds * block.body.length, self.everything
        if unit.kind == "barrier":
            return 0, ()
        self.check(fused, unit)
        if op.communication is not None:
            time, links = self.communication(op)
            beside = op.communication.kind in self.beside
            return time, (links if beside else (COMPUTE, *links))
        time = self.kernel(unit)
        return time, (COMPUTE,) if time else ()

    def communication(self, op: Operation) -> tuple[int, tuple[str, ...]]:
        about = op.communication
        assert about is not None
        if about not in self.known:
            try:
                self.known[about] = duration(about, self.place)
            except Untimed as error:
                raise _untimed(error.message, op) from None
        return self.known[about]

    def kernel(self, unit: Unit) -> int:
        """Return a kernel's picoseconds: the longer of the times for arithmetic and for HBM traffic.

        A matmul of eight-bit operands has the chip's eight-bit rate only if an argument of the program is an eight-bit
        array. Without this condition, a program could save time by rounding its arguments to eight bits.
        """
        chip = self.place.slice.chip
        eight = unit.flops and self.given_eight_bits and all(map(self.eight_bits, unit.root.operands[:2]))
        rate = chip.int8 if eight else chip.bf16
        return picoseconds(max(unit.flops * unit.root.precision / rate, unit.bytes / chip.hbm_bw))

    @cached_property
    def given_eight_bits(self) -> bool:
        return any(map(self.eight_bits, self.program.main.arguments))

    def eight_bits(self, value: int) -> bool:
        """Return True if the chip multiplies numbers of the value's dtype as fast as eight-bit numbers."""
        dtype = self.program.values[value].dtype
        return dtype in EIGHT_BITS or (self.place.slice.chip.name == "7x" and dtype.startswith("float8"))

    def check(self, fused: Fused, unit: Unit) -> None:
        """Raise Untimed if only the compiler knows which part of this unit's work each device does.

        Such units are layout changes at the start of a ``shard_map``, and most operations outside a ``shard_map`` over
        all mesh axes.
        """
        if unit.kind == "reshard":
            raise _untimed(
                "an array enters shard_map with another layout than in_specs; the compiler moves the array first, "
                "and the clock cannot time this move",
                unit.root,
            )
        for op in [] if unit.root.manual else [unit.root, *(fused.ops[i] for i in unit.inside)]:
            cut = any(self.program.values[v].parts > 1 for v in op.operands)
            if unit.kind != "kernel" or (op.name not in ELEMENT_BY_ELEMENT and (cut or op is unit.root)):
                raise _untimed(
                    f"{op.name} is outside shard_map, or in a shard_map that is not manual over every axis: only the "
                    "compiler knows which part each device computes, so the clock cannot time it",
                    op,
                )


def _untimed(message: str, op: Operation) -> Untimed:
    return Untimed(message, op.file, op.line)


def timeline(
    program: Operations,
    on: str | Slice | Placement,
    *,
    axes: Mapping[str, Sequence[int]] | None = None,
    profile: str = "ideal",
) -> Timeline:
    """Return the schedule of a program's operations on a TPU slice.

    Args:
        on: a slice, such as "v5e:2x4", or an existing placement.
        axes: the slice's axes that each mesh axis covers; if None, ``placed`` chooses the axes.
        profile: the rule that decides which kinds of collectives overlap with compute. "ideal": all kinds. A chip's
            name, such as "v5e": the kinds that overlap on this chip.

    Raises:
        ValueError: the slice or the profile does not exist, or no axes of the slice have the sizes of the mesh's axes.
        Untimed: the clock cannot time a part of the program. An example is a matmul outside ``shard_map``, because only
            the compiler decides which part of it each device computes.
    """
    if profile not in ASYNCHRONOUS:
        raise ValueError(unknown("profile", profile, list(ASYNCHRONOUS)))
    place = on if isinstance(on, Placement) else placed(on, program.mesh, axes)
    laid = Laying(program, place, profile).body(program.main, outermost=True)
    found = _Found()
    found.body(laid, 0, ())
    spans = sorted(found.spans, key=lambda s: (s.start, s.lane != COMPUTE, s.lane, s.number))
    return Timeline(
        place.slice.chip.name, place.slice.shape, place.axes, profile, laid.length, laid.busy, tuple(spans),
        tuple(found.loops), tuple(_collectives(laid, 1)), tuple(_critical(laid)), laid.flops, laid.memory,
        laid.matmuls,
    )  # fmt: skip


class _Found:
    """Collects a timeline's loops and spans. A loop has spans only for its first, second and last rounds."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.loops: list[Loop] = []

    def body(self, body: LaidBody, at: int, rounds: tuple[tuple[int, int], ...]) -> None:
        for i, unit in enumerate(body.fused.units):
            start = at + body.laid.start[i]
            if i in body.blocks:
                self.block(body, i, start, rounds)
            elif body.pieces[i].duration:
                for lane in body.pieces[i].resources:
                    self.spans.append(_span(body, i, unit, lane, start, rounds))

    def block(self, body: LaidBody, i: int, start: int, rounds: tuple[tuple[int, int], ...]) -> None:
        block, op = body.blocks[i], body.fused.units[i].root
        each, count = block.body.length, block.rounds
        if not block.is_loop:
            self.body(block.body, start, rounds)
            return
        self.loops.append(Loop(start, start + count * each, count, each, op.line, op.file, rounds))
        for n in sorted({1, 2, count} & set(range(1, count + 1))):
            self.body(block.body, start + (n - 1) * each, (*rounds, (n, count)))


def _span(body: LaidBody, i: int, unit: Unit, lane: str, start: int, rounds: tuple[tuple[int, int], ...]) -> Span:
    op = unit.root
    about = op.communication
    kind = about.kind if about else unit.kind
    end = start + body.pieces[i].duration
    return Span(
        lane, what(body, i), kind, start, end, body.numbers[i], op.line, op.file, unit.bytes, unit.flops, rounds
    )


def what(body: LaidBody, i: int) -> str:
    """Return unit ``i``'s name: a collective and its axes, or a kernel's main operation and at most two others."""
    unit = body.fused.units[i]
    if unit.root.communication is not None:
        return f"{unit.root.communication.kind} over {' and '.join(unit.root.communication.axes)}"
    inside = (body.fused.ops[j] for j in unit.inside if any(map(body.fused.size, body.fused.ops[j].results)))
    names = dict.fromkeys([unit.root.name, *(op.name for op in inside)])
    chosen = [name for n, name in enumerate(names) if not n or name not in PLAIN]
    return " + ".join(chosen[:SHOWN_NAMES]) + (" + ..." if len(chosen) > SHOWN_NAMES else "")


def _collectives(body: LaidBody, times: int) -> list[CollectiveTime]:
    found, after, before = [], _waits_for(body), _waited_for_by(body)
    for i, unit in enumerate(body.fused.units):
        if i in body.blocks:
            found += _collectives(body.blocks[i].body, times * body.blocks[i].rounds)
        about, op = unit.root.communication, unit.root
        if about is None:
            continue
        start, each = body.laid.start[i], body.pieces[i].duration
        beside = COMPUTE not in body.pieces[i].resources
        overlapped = body.kernels.overlap(start, start + each) if beside else 0
        sizes = times, each, times * overlapped, times * (each - overlapped)
        around = after[i], before[i]
        found.append(
            CollectiveTime(body.numbers[i], about.kind, about.axes, about.bytes, *sizes, *around, op.line, op.file)
        )
    return found


def _waits_for(body: LaidBody) -> list[str]:
    """Return, for each unit, the title of the last unit (kernel, collective or loop) that it waits for."""
    last: list[int | None] = []
    for unit in body.fused.units:
        near = (j if body.pieces[j].duration else last[j] for j in unit.after)
        found = {j for j in near if j is not None}
        last.append(max(found, key=lambda j: (body.laid.start[j] + body.pieces[j].duration, -j), default=None))
    return ["" if j is None else title(body.fused.units[j]) for j in last]


def _waited_for_by(body: LaidBody) -> list[str]:
    """Return, for each unit, the title of the first unit (kernel, collective or loop) that waits for it."""
    first: list[int | None] = [None] * len(body.pieces)
    for i in reversed(range(len(first))):
        near = (j if body.pieces[j].duration else first[j] for j in body.then[i])
        found = {j for j in near if j is not None}
        first[i] = min(found, key=lambda j: (body.laid.start[j], j), default=None)
    return ["" if j is None else title(body.fused.units[j]) for j in first]


def _critical(body: LaidBody) -> list[int]:
    """Return the numbers of the kernels and collectives on the critical path, in order of time."""
    ends = [s + p.duration for s, p in zip(body.laid.early, body.pieces, strict=True)]
    at = next((i for i, end in enumerate(ends) if end == body.length), None)
    found: list[int] = []
    while at is not None:
        if at in body.blocks:
            found += reversed(_critical(body.blocks[at].body))
        elif body.pieces[at].duration:
            found.append(body.numbers[at])
        now = at
        before = [j for j in body.laid.before[now] if ends[j] == body.laid.early[now]]
        needed = [j for j in before if j in body.fused.units[now].after]
        at = min(needed or before, default=None) if body.laid.early[now] else None
    return found[::-1]
