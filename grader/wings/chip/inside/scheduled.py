"""Read the text of a program that the TPU compiler has scheduled: the instructions that take time, in order.

This module reads:

- The compiler's estimate of a kernel's time (``estimated_cycles``).
- Where a collective starts, and where the core waits for its result. A collective is one instruction, a pair of
  instructions (``-start`` and ``-done``), a call that another processor of the chip runs, or several fusions that also
  compute a matmul.
- The number of rounds of a loop. The text states this number, or ``counters`` computes it.

Copies between HBM and VMEM are ignored, because the core computes while they run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from grader.common.intervals import ONCE, UNKNOWN, Interval, Path
from grader.common.observation import Collective
from grader.runner import hlo as compiled_text
from grader.runner.groups import crossed_axes
from grader.runner.hlo import KINDS, Visit, cost_of, listed, replica_groups
from grader.runner.hlo_text import Computation, hlo_bytes, parse, trip_count
from grader.runner.hlo_text import HloInstruction as Line
from grader.wings.chip.inside.counters import MAX_DEEP, MAX_ROUNDS, Numbers, count_rounds, unchanged
from grader.wire.operations import Communication
from grader.wire.schedule import MAX_INSTRUCTIONS, Instruction

# Instructions that take no noticeable time on the core, such as constants and copies beside the core's work.
FREE = {
    "parameter", "constant", "bitcast", "tuple", "get-tuple-element", "after-all", "partition-id", "replica-id",
    "copy-start", "copy-done", "slice-start", "slice-done", "dynamic-slice-start", "dynamic-slice-done", "opt-barrier",
    "add-dependency", "domain", "iota", "send", "send-done", "recv", "recv-done",
}  # fmt: skip
MATMULS = {"convolution", "dot"}
CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
COMMENTS = re.compile(r"/\*index=\d+\*/")


class TooLarge(Exception):
    """The scheduled program has too many instructions for a ``Schedule``."""


@dataclass(frozen=True)
class Origin:
    """A compiled collective. ``marks``: numbers of the source operations. ``arrays``: types of the operands."""

    marks: tuple[int, ...]
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class Scheduled:
    """The instructions of a scheduled program. ``origins``: facts about each collective, by ``Instruction.number``."""

    instructions: tuple[Instruction, ...]
    origins: Mapping[int, Origin]

    @classmethod
    def of(
        cls, hlo: str, mesh: Mapping[str, int], places: Sequence[tuple[str, int] | None], names: Sequence[str]
    ) -> Scheduled:
        """Read the compiled text. Raises TooLarge if there are too many instructions.

        Args:
            hlo: the compiled text. Its metadata have the numbers that ``tpu.number`` gave to the source operations.
            mesh: axis sizes, in order.
            places, names: for each number, the learner's file and line, and the operation's name.
        """
        computations, entry = parse(COMMENTS.sub("", hlo))
        reader = _Reader(computations, mesh, places, names)
        return cls(reader.body(entry, {}, 0), reader.origins)

    def added(self, mesh: Mapping[str, int], marked: Mapping[int, Sequence[Collective]]) -> list[Collective]:
        """Return the collectives that the compiler added. ``marked``: the source's collectives, by operation number."""
        named, nameless = [], []
        for one, times, path in _runs(self.instructions, ONCE, (), Counter()):
            assert one.communication is not None
            origin, groups = self.origins[one.number], [list(group) for group in one.communication.groups]
            collective = compiled_text.made(one.communication.kind, origin.arrays, groups, mesh, times, path)
            if collective is None:
                continue
            if origin.marks:
                # Leave out the numbers of source operations that are not collectives.
                named.append(([m for m in origin.marks if m in marked], collective))
            else:
                nameless.append(collective)
        here = Counter(m for marks, _ in named for m in marks)
        gone = [c for number, source in marked.items() if not here[number] for c in source]
        return [*compiled_text.unclaimed(named, marked), *_rewritten(nameless, gone)]


# The compiler may replace a reduce-scatter and lose its operation number. One replacement is an all-reduce, after which
# each chip keeps its part. The other replacement is a reduce-scatter over the chips in ring order, and a permute that
# moves the parts to their places. The compiler may replace an all-gather of small parts by an all-reduce of the parts,
# padded with zeros.
REWRITTEN = {"reduce_scatter": ("reduce_scatter", "all_reduce", "permute"), "all_gather": ("all_gather", "all_reduce")}


def _rewritten(nameless: Sequence[Collective], gone: Sequence[Collective]) -> list[Collective]:
    """Return the collectives in ``nameless`` that the compiler added. The rest of ``nameless`` replaces ``gone``.

    A replacement is over the same axes as the replaced collective, and of a kind that REWRITTEN lists.

    Args:
        nameless: compiled collectives without the number of a source operation.
        gone: the source's collectives that the compiled program lacks.
    """
    left: Counter[tuple[str, str]] = Counter()
    for c in gone:
        for kind in REWRITTEN.get(c.kind, (c.kind,)):
            left[kind, c.over] += int(min(c.rounds.most, MAX_ROUNDS))
    added = []
    for c in nameless:
        if c.rounds.known and c.rounds.most <= left[c.kind, c.over]:
            left[c.kind, c.over] -= int(c.rounds.most)
        else:
            added.append(c)
    return added


def _runs(
    body: Sequence[Instruction], times: Interval, path: Path, cases: Counter[str]
) -> Iterator[tuple[Instruction, Interval, Path]]:
    """Yield every collective in ``body``, how often it runs, and the branches around it."""
    for one in body:
        if one.op in ("collective", "start"):
            yield one, times, path
        elif one.op == "loop":
            rounds = UNKNOWN if one.rounds is None else Interval.of(one.rounds)
            yield from _runs(one.bodies[0], times * rounds, path, cases)
        elif one.op == "branches":
            case, cases["branches"] = cases["branches"], cases["branches"] + 1
            for number, inner in enumerate(one.bodies):
                yield from _runs(inner, times, (*path, (case, number, len(one.bodies))), cases)


_Communicating = tuple[Line, Mapping[str, str]]  # an instruction that communicates, and all shapes in its computation


@dataclass
class _BodyReading:
    """The state of reading one computation."""

    numbers: Numbers
    shape_of: Mapping[str, str]
    level: int
    # Name of the instruction to which the end of a collective refers -> number of the collective.
    under_way: dict[str, int] = field(default_factory=dict)

    def arrays(self, one: Line) -> list[str]:
        return [self.shape_of.get(o, "") for o in one.operands]

    def rename(self, one: Line) -> None:
        """Record that an ``-update`` instruction continues a collective."""
        if one.operands and one.operands[0] in self.under_way:
            self.under_way[one.name] = self.under_way[one.operands[0]]

    def done(self, *keys: str) -> list[Instruction]:
        return [Instruction("done", "", number=self.under_way[key]) for key in keys if key in self.under_way]


@dataclass
class _Reader:
    computations: dict[str, Computation]
    mesh: Mapping[str, int]
    places: Sequence[tuple[str, int] | None]
    names: Sequence[str]
    count: int = 0
    origins: dict[int, Origin] = field(default_factory=dict)

    def body(self, name: str, known: Mapping[int, int], level: int) -> tuple[Instruction, ...]:
        """Return a computation's instructions in order. ``known``: the known integers in its parameter, by index."""
        if level > MAX_DEEP:
            raise TooLarge("calls are nested too deeply")
        lines = self.computations.get(name, [])
        body = _BodyReading(Numbers(self.computations, lines, known), _shapes(lines), level)
        found: list[Instruction] = []
        arrived = _Arrived(lines)
        for one in lines:
            made_of_it = self.instruction(one, body)
            if one.opcode == "fusion":
                made_of_it = [self.joined(made, one, arrived) for made in made_of_it]
            arrived.follow(one, made_of_it)
            self.count += len(made_of_it)
            if self.count > MAX_INSTRUCTIONS:
                raise TooLarge("too many instructions")
            found += made_of_it
        over = {i.number for i in found if i.op == "done"}
        left = [
            i.number for i in found if i.op == "start" and i.number not in over
        ]  # no instruction waits for these collectives; they end with the body
        return (*found, *(Instruction("done", "", number=number) for number in left))

    def instruction(self, one: Line, body: _BodyReading) -> list[Instruction]:
        match one.opcode:
            case opcode if opcode in FREE:
                return []
            case "while":
                return [self.loop(one, body)]
            case "conditional":
                return [self.branches(one, body)]
            case "call":
                return [i for called in one.called("to_apply") for i in self.body(called, {}, body.level + 1)]
            case opcode if opcode.endswith("-update"):
                body.rename(one)
                return []
            case opcode if opcode.endswith("-done"):
                return body.done(*one.operands[:1])
        inside = self.inside(one)
        if _kind(one) is not None:
            return self.collective(one, [(one, body.shape_of)], inside, body)
        parts = [(line, _shapes(lines)) for lines in inside for line in lines if _kind(line)]
        return self.collective(one, parts, inside, body) if parts else self.kernel(one, inside, body)

    def collective(
        self, one: Line, parts: Sequence[_Communicating], inside: Sequence[Computation], body: _BodyReading
    ) -> list[Instruction]:
        """Return a collective's instructions.

        ``parts``: the collective's lines in the compiled text; several if the compiler merged several collectives.
        """
        chain = _chain(parts[0][0])
        targets = [o.attributes.get("custom_call_target", "") for c in inside for o in c if o.opcode == "custom-call"]
        beside = self.kernel(one, inside, body) if CYCLES.search(one.rest) else []
        if '"AsyncCollectiveDone"' in targets:
            return [*beside, *body.done(chain)]
        if '"AsyncCollectiveStart"' in targets:
            return [*self.start("start", one, parts, body, chain), *beside]
        if one.opcode.endswith("-start"):
            return self.start("start", one, parts, body, one.name)
        if one.opcode == "fusion" and chain in body.under_way:
            return self.kernel(one, inside, body)  # this fusion computes a matmul while a started collective continues
        return self.start("collective", one, parts, body)

    def inside(self, one: Line) -> list[Computation]:
        """Return the computations that an instruction calls, also indirectly, but not the operators of reductions."""
        found: list[Computation] = []
        left = one.called("calls") if one.opcode != "call-start" else one.called("to_apply", "calls")
        while left and len(found) < 200:
            lines = self.computations.get(left.pop(), [])
            found.append(lines)
            left += [c for i in lines if i.calls for c in i.called("calls")]
        return found

    def kernel(self, one: Line, inside: Sequence[Computation], body: _BodyReading) -> list[Instruction]:
        """Return a kernel with the compiler's estimate of cycles, or else with the bytes that the kernel moves."""
        if cycles := CYCLES.search(one.rest):
            about = {"cycles": int(cycles[1])}
        else:
            about = {"bytes": hlo_bytes(one.shape) + sum(map(hlo_bytes, body.arrays(one)))}
            if about["bytes"] < 64 or one.opcode == "custom-call":
                return []
        matmuls = [_flops(i, _shapes(lines)) for lines in inside for i in lines if i.opcode in MATMULS]
        if one.opcode in MATMULS:
            matmuls.append(_flops(one, body.shape_of))
        op = "matmul" if matmuls else "kernel"
        return [Instruction(op, self.what(one), flops=sum(matmuls), **about, **self.place(one))]

    def joined(self, made: Instruction, one: Line, arrived: _Arrived) -> Instruction:
        """Return ``made``. For a matmul, set ``Instruction.joined``."""
        if made.op != "matmul" or not (called := one.called("calls")):
            return made
        late = set(range(len(one.operands))) - self.feeding(called[0])
        numbers = (arrived.number(one.operands[i]) for i in sorted(late))
        return replace(made, joined=tuple(n for n in numbers if n is not None))

    def feeding(self, name: str, level: int = 0) -> set[int]:
        """Return the numbers (0, 1, ...) of the parameters on which a computation's matmuls depend."""
        lines = self.computations.get(name, [])
        by_name = {one.name: one for one in lines}
        left: list[str] = []
        for one in lines:
            if one.opcode in MATMULS:
                left += one.operands
            elif one.opcode == "fusion" and level < MAX_DEEP and (called := one.called("calls")):
                left += [one.operands[i] for i in self.feeding(called[0], level + 1) if i < len(one.operands)]
        seen: set[str] = set()
        found: set[int] = set()
        while left:
            of = by_name.get(left.pop())
            if of is None or of.name in seen:
                continue
            seen.add(of.name)
            if of.opcode == "parameter" and of.text.isdigit():
                found.add(int(of.text))
            else:
                left += of.operands
        return found

    def start(
        self, op: str, one: Line, parts: Sequence[_Communicating], body: _BodyReading, key: str | None = None
    ) -> list[Instruction]:
        """Return the instruction that starts a collective. Record the collective in ``body.under_way[key]``."""
        first, shape_of = parts[0]
        about = self.communication(first, shape_of, whole=one)
        if about is None:
            return []
        number = len(self.origins)
        self.origins[number] = Origin(
            tuple(first.marks or one.marks), tuple(shape_of.get(o, "") for o in first.operands)
        )
        if key is not None:
            body.under_way[key] = number
        marked = one if one.marks else first
        return [Instruction(op, about.kind, number=number, communication=about, **self.place(marked))]

    def communication(self, one: Line, shape_of: Mapping[str, str], *, whole: Line) -> Communication | None:
        """Return the kind, groups, axes and bytes of a collective, or None if nothing moves between devices."""
        kind = _kind(one) or ""
        size = sum(hlo_bytes(shape_of.get(o, "")) for o in one.operands)
        if kind == "permute":
            groups = listed(one.attributes.get("source_target_pairs", ""))
        else:
            groups = replica_groups(one.attributes, self.mesh) or []
        axes = crossed_axes(groups, self.mesh)
        if not axes:
            return None
        if kind == "all_reduce" and one is not whole and hlo_bytes(whole.shape) * max(map(len, groups)) == size:
            kind = "reduce_scatter"  # each chip keeps one part of the sum, as after a reduce-scatter
        return Communication(kind, tuple(map(tuple, groups)), axes, size)

    def loop(self, one: Line, body: _BodyReading) -> Instruction:
        (condition,), (inner,) = one.called("condition"), one.called("body")
        numbers = body.numbers.elements(one.operands[0]) if one.operands else {}
        stated = trip_count(one)
        if stated.known and stated.exact:
            rounds = int(stated.most)
        else:
            rounds = count_rounds(self.computations, condition, inner, numbers)
        bodies = (self.body(inner, unchanged(self.computations, inner, numbers), body.level + 1),)
        return Instruction("loop", "while", rounds=rounds, bodies=bodies, **self.place(one))

    def branches(self, one: Line, body: _BodyReading) -> Instruction:
        called = one.called("branch_computations", "true_computation", "false_computation")
        bodies = tuple(self.body(c, {}, body.level + 1) for c in called)
        return Instruction("branches", "conditional", bodies=bodies, **self.place(one))

    def place(self, one: Line) -> dict[str, Any]:
        """Return the file and line of the learner's code from which an instruction comes; {} if they are unknown."""
        for number in reversed(one.marks):
            place = self.places[number] if number < len(self.places) else None
            if place is not None:
                return {"file": place[0], "line": place[1]}
        return {}

    def what(self, one: Line) -> str:
        for number in reversed(one.marks):
            if number < len(self.names):
                return self.names[number]
        return one.opcode.replace("-", "_")


class _Arrived:
    """The results of collectives in one computation that a single instruction uses."""

    def __init__(self, lines: Computation) -> None:
        self.uses = Counter(o for one in lines for o in one.operands)
        self.numbers: dict[str, int] = {}

    def follow(self, one: Line, made: Sequence[Instruction]) -> None:
        ended = [i.number for i in made if i.op == "done"]
        if len(ended) == 1:
            self.numbers[one.name] = ended[0]
        elif one.opcode in ("bitcast", "get-tuple-element") and (number := self.number(one.operands[0])) is not None:
            self.numbers[one.name] = number

    def number(self, name: str) -> int | None:
        return self.numbers.get(name) if self.uses[name] == 1 else None


def _kind(one: Line) -> str | None:
    return KINDS.get(one.opcode.removesuffix("-start"))


def _shapes(lines: Computation) -> dict[str, str]:
    return {one.name: one.shape for one in lines}


def _chain(one: Line) -> str:
    """Return a text that is equal for all fusions that start, continue and end one collective."""
    return f"channel {one.attributes.get('channel_id')}, {one.attributes.get('frontend_attributes', '')}"


def _flops(one: Line, shape_of: Mapping[str, str]) -> int:
    most = cost_of(Visit(one, Interval.of(1), (), 0, shape_of)).dots.most
    return int(most) if most < 1 << 100 else 0
