"""Schedule the units (kernels, collectives, loops) of each body of a program: the program itself, loops, branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from grader.clock.collectives import ASYNCHRONOUS, Untimed, duration
from grader.clock.kernels import ELEMENTWISE, Fused, Unit
from grader.clock.memory import worst
from grader.clock.order import Busy, Laid, Piece, lay
from grader.clock.placement import Placement, picoseconds
from grader.clock.timeline import COMPUTE, LiveMemory
from grader.wire.operations import Body, Communication, Operation, Operations

EIGHT_BITS = {"int8", "uint8", "int4", "uint4"}
# Outside shard_map, these operations move no data between devices.
ELEMENT_BY_ELEMENT = ELEMENTWISE | {"broadcast_in_dim", "constant", "iota", "reshape"}


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
        links: the links that each unit uses.
        blocks: the bodies of loops and conditionals, keyed by the position of the loop's or conditional's unit.
    """

    fused: Fused
    pieces: list[Piece]
    laid: Laid
    numbers: list[int]
    links: list[tuple[str, ...]]
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
        pieces, links, numbers, blocks = [], [], [], {}
        for i, unit in enumerate(fused.units):
            numbers.append(self.count)
            self.count += 1
            if unit.kind == "block":
                blocks[i] = self.block(unit.root)
            time, held, used = self.held(fused, unit, blocks.get(i))
            pieces.append(Piece(time, held, frozenset(unit.after), unit.kind == "collective"))
            links.append(used)
        laid = lay(pieces, COMPUTE)
        when = [(s, s + p.duration) for s, p in zip(laid.start, pieces, strict=True)]
        inside = {i: b.body.memory for i, b in blocks.items()}
        memory = worst(fused, when, inside, laid.length, outermost=outermost)
        return LaidBody(fused, pieces, laid, numbers, links, blocks, memory)

    def block(self, op: Operation) -> LaidBlock:
        if op.name != "while":
            return LaidBlock(max((self.body(b) for b in op.bodies), key=lambda b: b.length), 1, False)
        if op.rounds is None:
            raise _untimed("a loop's number of rounds cannot be read from the program, so the loop cannot be timed", op)
        return LaidBlock(self.body(op.bodies[1]), op.rounds, True)

    def held(self, fused: Fused, unit: Unit, block: LaidBlock | None) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        """Return a unit's duration in picoseconds, the resources that it holds, and the links that it uses."""
        op = unit.root
        if block is not None:
            return block.rounds * block.body.length, self.everything, ()
        if unit.kind == "barrier":
            return 0, (), ()
        self.check(fused, unit)
        if op.communication is not None:
            time, links = self.communication(op)
            beside = op.communication.kind in self.beside
            return time, (links if beside else (COMPUTE, *links)), links
        time = self.kernel(unit)
        return time, (COMPUTE,) if time else (), ()

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
