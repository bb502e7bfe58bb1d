"""The text of a program that the TPU compiler has scheduled, as the instructions that take time, in its order.

What is read: ``estimated_cycles`` of a kernel; where a collective begins and where its result is waited for, which is written in four
ways (a pair of start and done; a call on another processor of the chip; fusions that start, carry on and end one beside a
product; one instruction that the core waits for); how often a loop runs, which the text says or which its counter shows.
What is not read: copies between HBM and VMEM that run beside the core.
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
from grader.runner.hlo_text import Computation, hlo_bytes, parse, shapes, trip_count
from grader.runner.hlo_text import HloInstruction as Line
from grader.wire.operations import Communication
from grader.wire.schedule import MAX_INSTRUCTIONS, Instruction

# These take no time of the core that anybody would see: names, numbers, and copies that run beside it.
FREE = {
    "parameter", "constant", "bitcast", "tuple", "get-tuple-element", "after-all", "partition-id", "replica-id",
    "copy-start", "copy-done", "slice-start", "slice-done", "dynamic-slice-start", "dynamic-slice-done", "opt-barrier",
    "add-dependency", "domain", "iota", "send", "send-done", "recv", "recv-done",
}  # fmt: skip
PRODUCTS = {"convolution", "dot"}
MAX_ROUNDS = 100_000  # of a loop whose counter is followed
MAX_DEEP = 60  # of calls in one another, and of numbers that depend on one another
CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
COMMENTS = re.compile(r"/\*index=\d+\*/")
INTEGER = re.compile(r"-?\d+")


class TooLarge(Exception):
    """The scheduled program has too many instructions to be carried."""


def read(
    hlo: str, mesh: Mapping[str, int], places: Sequence[tuple[str, int] | None], names: Sequence[str]
) -> tuple[Instruction, ...]:
    """The instructions of a scheduled program, see ``Scheduled``."""
    return Scheduled.of(hlo, mesh, places, names).instructions


@dataclass(frozen=True)
class Talk:
    """What the text says of one collective beyond its ``Communication``: the numbers of its ``marks``, the types it takes."""

    marks: tuple[int, ...]
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class Scheduled:
    """A scheduled program: its instructions, and of its collectives, by their number, what else the text says."""

    instructions: tuple[Instruction, ...]
    talks: Mapping[int, Talk]

    @classmethod
    def of(
        cls, hlo: str, mesh: Mapping[str, int], places: Sequence[tuple[str, int] | None], names: Sequence[str]
    ) -> Scheduled:
        """Read the compiled text.

        Args:
            hlo: its metadata have the numbers that ``tpu.number`` gave to the program's operations.
            mesh: axis sizes, in order.
            places, names: by those numbers, the learner's file and line, and what the operation is called.

        Raises:
            TooLarge: there are too many instructions.
        """
        computations, entry = parse(COMMENTS.sub("", hlo))
        reader = _Reader(computations, mesh, places, names)
        return cls(reader.body(entry, {}, 0), reader.talks)

    def added(self, mesh: Mapping[str, int], marked: Mapping[int, Sequence[Collective]]) -> list[Collective]:
        """The collectives that none of the source became; ``marked``: those of the source by their marks."""
        named, nameless = [], []
        for one, times, path in _runs(self.instructions, ONCE, (), Counter()):
            assert one.communication is not None
            talk, groups = self.talks[one.number], [list(group) for group in one.communication.groups]
            collective = compiled_text.made(one.communication.kind, talk.arrays, groups, mesh, times, path)
            if collective is None:
                continue
            if talk.marks:
                named.append(([m for m in talk.marks if m in marked], collective))  # of others, too, each has its mark
            else:
                nameless.append(collective)
        here = Counter(m for marks, _ in named for m in marks)
        gone = [c for number, source in marked.items() if not here[number] for c in source]
        return [*compiled_text.unclaimed(named, marked), *_rewritten(nameless, gone)]


# This compiler writes a sum that is scattered anew, and its name is lost: a sum of everything, of which each keeps a part; or one
# over the chips in the order of their ring, and a permute that brings the parts where they belong. Small parts that are gathered
# become a sum, too, of everybody's part and zeros.
REWRITTEN = {"reduce_scatter": ("reduce_scatter", "all_reduce", "permute"), "all_gather": ("all_gather", "all_reduce")}


def _rewritten(nameless: Sequence[Collective], gone: Sequence[Collective]) -> list[Collective]:
    """Those of ``nameless`` that the source's collectives which the text does not name cannot have become.

    Each of these becomes at most one of a kind, over its axes, that runs no more often than it did.
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
    """Every collective, how often it runs, and on which path of branches."""
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


@dataclass
class _Reader:
    computations: dict[str, Computation]
    mesh: Mapping[str, int]
    places: Sequence[tuple[str, int] | None]
    names: Sequence[str]
    count: int = 0
    talks: dict[int, Talk] = field(default_factory=dict)

    def body(self, name: str, known: Mapping[int, int], level: int) -> tuple[Instruction, ...]:
        """One computation in its order; ``known``: of its one parameter, a tuple, the elements that are known numbers."""
        if level > MAX_DEEP:
            raise TooLarge("calls too deep")
        lines = self.computations.get(name, [])
        scope = _Scope(self.computations, lines, known)
        shape_of = {one.name: one.shape for one in lines}
        found: list[Instruction] = []
        under_way: dict[str, int] = {}
        arrived = _Arrived(lines)
        for one in lines:
            made_of_it = self.instruction(one, scope, shape_of, under_way, level)
            if one.opcode == "fusion":
                made_of_it = [self.joined(made, one, arrived) for made in made_of_it]
            arrived.follow(one, made_of_it)
            for made in made_of_it:
                self.count += 1
                if self.count > MAX_INSTRUCTIONS:
                    raise TooLarge("too many instructions")
                found.append(made)
        over = {i.number for i in found if i.op == "done"}
        left = [i.number for i in found if i.op == "start" and i.number not in over]  # nobody waits: the end does
        return (*found, *(Instruction("done", "", number=number) for number in left))

    def instruction(
        self, one: Line, scope: _Scope, shape_of: Mapping[str, str], under_way: dict[str, int], level: int
    ) -> list[Instruction]:
        if one.opcode in FREE:
            return []
        if one.opcode == "while":
            return [self.loop(one, scope, level)]
        if one.opcode == "conditional":
            branches = one.called("branch_computations", "true_computation", "false_computation")
            bodies = tuple(self.body(b, {}, level + 1) for b in branches)
            return [Instruction("branches", "conditional", bodies=bodies, **self.place(one))]
        if one.opcode == "call":
            return [i for called in one.called("to_apply") for i in self.body(called, {}, level + 1)]
        inside = self.inside(one)
        talks = [(o, s) for o, s in ((i, {line.name: line.shape for line in c}) for c in inside for i in c) if _kind(o)]
        if _kind(one) is not None:
            talks = [(one, shape_of)]
        if one.opcode.endswith("-update"):  # it goes on under another name
            if one.operands and one.operands[0] in under_way:
                under_way[one.name] = under_way[one.operands[0]]
            return []
        if one.opcode.endswith("-done"):
            return self.done(one.operands[:1], under_way)
        targets = [o.attributes.get("custom_call_target", "") for c in inside for o in c if o.opcode == "custom-call"]
        if talks and '"AsyncCollectiveDone"' in targets:
            made = self.kernel(one, inside, shape_of) if CYCLES.search(one.rest) else []
            return [*made, *self.done([_chain(talks[0][0])], under_way)]
        if talks and '"AsyncCollectiveStart"' in targets:
            made = self.kernel(one, inside, shape_of) if CYCLES.search(one.rest) else []
            return [*self.start("start", one, talks, under_way, [_chain(talks[0][0])]), *made]
        if talks and one.opcode.endswith("-start"):
            return self.start("start", one, talks, under_way, [one.name])
        if talks and one.opcode == "fusion" and _chain(talks[0][0]) in under_way:
            return self.kernel(one, inside, shape_of)  # which carries on, beside its product, with what was begun
        if talks:
            return self.start("collective", one, talks, {}, [])
        return self.kernel(one, inside, shape_of)

    def inside(self, one: Line) -> list[Computation]:
        """What an instruction calls, and what that calls, but for what is applied to single elements."""
        found: list[Computation] = []
        left = one.called("calls") if one.opcode != "call-start" else one.called("to_apply", "calls")
        while left and len(found) < 200:
            lines = self.computations.get(left.pop(), [])
            found.append(lines)
            left += [c for i in lines if i.calls for c in i.called("calls")]
        return found

    def kernel(self, one: Line, inside: Sequence[Computation], shape_of: Mapping[str, str]) -> list[Instruction]:
        """A kernel of the core. Without the compiler's cycles: what it reads and writes."""
        cycles = CYCLES.search(one.rest)
        holders = [*inside, [one]]
        products = [(i, c) for c in holders for i in c if i.opcode in PRODUCTS]
        size = 0
        if cycles is None:
            size = hlo_bytes(one.shape) + sum(hlo_bytes(shape_of.get(o, "")) for o in one.operands)
            if size < 64 or one.opcode == "custom-call":
                return []
        flops = sum(_flops(i, {line.name: line.shape for line in c} if c != [one] else shape_of) for i, c in products)
        about = {"cycles": int(cycles[1])} if cycles else {"bytes": size}
        what = self.what(one)
        return [Instruction("product" if products else "kernel", what, flops=flops, **about, **self.place(one))]

    def joined(self, made: Instruction, one: Line, arrived: _Arrived) -> Instruction:
        """Of a product, which results it only uses after its multiplications."""
        if made.op != "product" or not (called := one.called("calls")):
            return made
        late = set(range(len(one.operands))) - self.feeding(called[0])
        numbers = (arrived.number(one.operands[i]) for i in sorted(late))
        return replace(made, joined=tuple(n for n in numbers if n is not None))

    def feeding(self, name: str, level: int = 0) -> set[int]:
        """Which parameters of a computation its products depend on."""
        lines = self.computations.get(name, [])
        by_name = {one.name: one for one in lines}
        left: list[str] = []
        for one in lines:
            if one.opcode in PRODUCTS:
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
        self,
        op: str,
        one: Line,
        talks: Sequence[tuple[Line, Mapping[str, str]]],
        under_way: dict[str, int],
        keys: list[str],
    ) -> list[Instruction]:
        """A collective; ``talks``: the instructions that make it up, which are several where some were joined."""
        about = self.communication(*talks[0], fused=[o for o, _ in talks], whole=one)
        if about is None:
            return []
        number, of = len(self.talks), talks[0][0]
        self.talks[number] = Talk(tuple(of.marks or one.marks), tuple(talks[0][1].get(o, "") for o in of.operands))
        for key in keys:
            under_way[key] = number
        marked = one if one.marks else talks[0][0]
        return [Instruction(op, about.kind, number=number, communication=about, **self.place(marked))]

    def done(self, keys: Sequence[str], under_way: Mapping[str, int]) -> list[Instruction]:
        return [Instruction("done", "", number=under_way[key]) for key in keys if key in under_way]

    def communication(
        self, one: Line, shape_of: Mapping[str, str], *, fused: Sequence[Line], whole: Line
    ) -> Communication | None:
        """Between whom, with how much; None where nobody sends anything to another."""
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
            kind = "reduce_scatter"  # each keeps its part of the sum: one instruction, which sends no more
        return Communication(kind, tuple(map(tuple, groups)), axes, size)

    def loop(self, one: Line, scope: _Scope, level: int) -> Instruction:
        (condition,), (inner,) = one.called("condition"), one.called("body")
        numbers = scope.elements(one.operands[0]) if one.operands else {}
        said = trip_count(one)
        rounds = int(said.most) if said.known and said.exact else counted(self.computations, condition, inner, numbers)
        steady = _steady(self.computations, inner, numbers)
        return Instruction(
            "loop", "while", rounds=rounds, bodies=(self.body(inner, steady, level + 1),), **self.place(one)
        )

    def place(self, one: Line) -> dict[str, Any]:
        """File and line of the last operation that became a part of it and has one."""
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
    """Which values of a computation are what a collective brought, that one instruction alone uses."""

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


def _chain(one: Line) -> str:
    """What the fusions that start, carry on and end one collective have in common."""
    return f"channel {one.attributes.get('channel_id')}, {one.attributes.get('frontend_attributes', '')}"


def _flops(one: Line, shape_of: Mapping[str, str]) -> int:
    most = cost_of(Visit(one, Interval.of(1), (), 0, shape_of)).dots.most
    return int(most) if most < 1 << 100 else 0


# -- loops whose counter is followed -----------------------------------------------------------


def counted(computations: Mapping[str, Computation], condition: str, body: str, first: Mapping[int, int]) -> int | None:
    """How often a loop runs: its condition asked, with the numbers that it carries followed from round to round.

    None where these are not known.
    """
    numbers = dict(first)
    asked, inner = computations.get(condition, []), computations.get(body, [])
    if not asked or not inner:
        return None
    outs = inner[-1].operands if inner[-1].opcode == "tuple" else []
    needed = _needed(asked, set())
    for _ in range(len(outs)):
        needed |= {n for i in needed if i < len(outs) for n in _needed(inner, {outs[i]})}
    for rounds in range(MAX_ROUNDS + 1):
        goes_on = _Scope(computations, asked, numbers).number(asked[-1].name)
        if goes_on is None:
            return None
        if not goes_on:
            return rounds
        scope = _Scope(computations, inner, numbers)
        following = {i: scope.number(outs[i]) for i in needed if i < len(outs)}
        numbers = {i: n for i, n in following.items() if n is not None}
    return None


def _needed(lines: Computation, of: set[str]) -> set[int]:
    """Which elements of the parameter these values, or else the last, depend on."""
    by_name = {one.name: one for one in lines}
    left, seen, found = list(of or {lines[-1].name}), set(), set()
    while left:
        one = by_name.get(left.pop())
        if one is None or one.name in seen:
            continue
        seen.add(one.name)
        if one.opcode == "get-tuple-element":
            found.add(int(one.attributes.get("index", "-1")))
        else:
            left += one.operands
    return found - {-1}


def _steady(computations: Mapping[str, Computation], body: str, first: Mapping[int, int]) -> dict[int, int]:
    """Those of the numbers carried that every round passes on as they are."""
    lines = computations.get(body, [])
    if not lines or lines[-1].opcode != "tuple":
        return {}
    by_name = {one.name: one for one in lines}
    kept = {}
    for i, name in enumerate(lines[-1].operands):
        one = by_name.get(name)
        if (
            i in first
            and one is not None
            and one.opcode == "get-tuple-element"
            and one.attributes.get("index") == str(i)
        ):
            kept[i] = first[i]
    return kept


@dataclass
class _Scope:
    """Whole numbers of one computation, worked out where somebody asks."""

    computations: Mapping[str, Computation]
    lines: Computation
    known: Mapping[int, int]  # elements of the one parameter, a tuple; of a fusion: its parameters
    level: int = 0
    found: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name = {one.name: one for one in self.lines}

    def elements(self, name: str) -> dict[int, int]:
        """Those of a tuple that are known."""
        one = self.by_name.get(name)
        if one is None or one.opcode != "tuple":
            return {}
        numbers = ((i, self.number(o)) for i, o in enumerate(one.operands))
        return {i: n for i, n in numbers if n is not None}

    def number(self, name: str, deep: int = 0) -> int | None:
        if name not in self.found:
            self.found[name] = None if deep > MAX_DEEP else self._number(name, deep)
        return self.found[name]

    def _number(self, name: str, deep: int) -> int | None:
        one = self.by_name.get(name)
        if one is None or (sizes := shapes(one.shape)[:2]) == [] or len(sizes) > 1 or sizes[0][1] not in ([], [1]):
            return None
        if one.opcode == "constant":
            text = one.text.strip("{} ")
            return {"true": 1, "false": 0}.get(text, int(text) if INTEGER.fullmatch(text) else None)
        if one.opcode == "get-tuple-element":
            of = self.by_name.get(one.operands[0])
            index = int(one.attributes.get("index", "-1"))
            return self.known.get(index) if of is not None and of.opcode == "parameter" else None
        if one.opcode == "parameter":
            return self.known.get(int(one.text)) if self.level and one.text.isdigit() else None
        given = [self.number(o, deep + 1) for o in one.operands]
        if one.opcode == "fusion":
            if self.level > 4 or not (called := one.called("calls")):
                return None
            lines = self.computations.get(called[0], [])
            numbers = {i: n for i, n in enumerate(given) if n is not None}
            return _Scope(self.computations, lines, numbers, self.level + 1).number(lines[-1].name) if lines else None
        if None in given:
            return None
        return _applied(one, [n for n in given if n is not None])


def _applied(one: Line, given: list[int]) -> int | None:
    """One operation on whole numbers."""
    if one.opcode in ("copy", "convert", "bitcast", "reshape", "broadcast") and len(given) == 1:
        return given[0]
    if one.opcode == "compare" and len(given) == 2:
        a, b = given
        found = {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "EQ": a == b, "NE": a != b}
        return int(found[one.attributes["direction"]]) if one.attributes.get("direction") in found else None
    if one.opcode == "select" and len(given) == 3:
        return given[1] if given[0] else given[2]
    two = {"add": int.__add__, "subtract": int.__sub__, "multiply": int.__mul__, "minimum": min, "maximum": max,
           "and": int.__and__, "or": int.__or__}  # fmt: skip
    if one.opcode in two and len(given) == 2:
        return two[one.opcode](*given)
    return -given[0] if one.opcode == "negate" else None
