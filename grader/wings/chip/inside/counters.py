"""Count the rounds of a loop in a compiled program whose text does not state their number.

The functions compute the integers that the loop carries from round to round, such as its counter.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.runner.hlo_text import Computation, shapes
from grader.runner.hlo_text import HloInstruction as Line

MAX_ROUNDS = 100_000  # If a loop has more rounds, treat their number as unknown.
MAX_DEEP = 60  # Limit on nested calls, and on chains of instructions that each compute a number from the previous one.
MAX_FUSIONS = 4  # A fusion's numbers are computed only if the fusion is inside at most this many other fusions.
INTEGER = re.compile(r"-?\d+")
COMPARISONS = {
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq, "NE": operator.ne,
}  # fmt: skip
# Python functions that compute an HLO operation on integers, by the operation's name.
UNARY: dict[str, Callable[[int], int]] = {
    **dict.fromkeys(("copy", "convert", "bitcast", "reshape", "broadcast"), operator.pos), "negate": operator.neg,
}  # fmt: skip
BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "minimum": min, "maximum": max,
    "and": operator.and_, "or": operator.or_,
}  # fmt: skip


def count_rounds(
    computations: Mapping[str, Computation], condition: str, body: str, first: Mapping[int, int]
) -> int | None:
    """Return the number of rounds of a loop; None if it is unknown or above MAX_ROUNDS.

    The integers that the loop carries are computed round by round, until the loop's condition is false.

    Args:
        computations: all computations of the program, by name.
        condition, body: names of the loop's computations.
        first: the known integers that the loop carries into its first round, by index in the carry (a tuple).
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
        goes_on = Numbers(computations, asked, numbers).number(asked[-1].name)
        if goes_on is None:
            return None
        if not goes_on:
            return rounds
        after = Numbers(computations, inner, numbers)
        following = {i: after.number(outs[i]) for i in needed if i < len(outs)}
        numbers = {i: n for i, n in following.items() if n is not None}
    return None


def _needed(lines: Computation, of: set[str]) -> set[int]:
    """Return the indices of the elements in a computation's parameter (a tuple) on which the values ``of`` depend.

    If ``of`` is empty, the function uses the computation's result.
    """
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


def unchanged(computations: Mapping[str, Computation], body: str, first: Mapping[int, int]) -> dict[int, int]:
    """Return the integers in ``first`` that no round of the loop changes.

    ``first``: the known integers that the loop carries into its first round, by index in the carry (a tuple).
    """
    lines = computations.get(body, [])
    if not lines or lines[-1].opcode != "tuple":
        return {}
    by_name = {one.name: one for one in lines}
    kept = {}
    for i, name in enumerate(lines[-1].operands):
        one = by_name.get(name)
        if one is not None and one.opcode == "get-tuple-element" and one.attributes.get("index") == str(i):
            kept |= {i: first[i]} if i in first else {}
    return kept


@dataclass
class Numbers:
    """The integers that the instructions of one computation compute. Each is computed when it is needed."""

    computations: Mapping[str, Computation]
    lines: Computation
    # Known integers among the computation's inputs. A computation has one parameter, a tuple, and the key is an index
    # into this tuple. A fusion is the exception: it has several parameters, and the keys are the parameters' numbers.
    known: Mapping[int, int]
    level: int = 0  # number of nested fusions around this computation's instructions
    found: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name = {one.name: one for one in self.lines}

    def elements(self, name: str) -> dict[int, int]:
        """Return the known integers in the tuple that the instruction ``name`` makes, by index in the tuple."""
        one = self.by_name.get(name)
        if one is None or one.opcode != "tuple":
            return {}
        return self._known(one.operands)

    def number(self, name: str, deep: int = 0) -> int | None:
        if name not in self.found:
            self.found[name] = None if deep > MAX_DEEP else self._number(name, deep)
        return self.found[name]

    def _known(self, names: Sequence[str], deep: int = 0) -> dict[int, int]:
        numbers = ((i, self.number(name, deep)) for i, name in enumerate(names))
        return {i: n for i, n in numbers if n is not None}

    def _number(self, name: str, deep: int) -> int | None:
        one = self.by_name.get(name)
        if one is None or [dims for _, dims in shapes(one.shape)] not in ([[]], [[1]]):
            return None
        match one.opcode:
            case "constant":
                return _constant(one.text.strip("{} "))
            case "get-tuple-element":
                of = self.by_name.get(one.operands[0])
                index = int(one.attributes.get("index", "-1"))
                return self.known.get(index) if of is not None and of.opcode == "parameter" else None
            case "parameter":
                return self.known.get(int(one.text)) if self.level and one.text.isdigit() else None
        given = self._known(one.operands, deep + 1)
        if one.opcode == "fusion":
            return self._fusion(one, given)
        return _applied(one, list(given.values())) if len(given) == len(one.operands) else None

    def _fusion(self, one: Line, given: Mapping[int, int]) -> int | None:
        lines = [line for called in one.called("calls")[:1] for line in self.computations.get(called, [])]
        if self.level > MAX_FUSIONS or not lines:
            return None
        return Numbers(self.computations, lines, given, self.level + 1).number(lines[-1].name)


def _constant(text: str) -> int | None:
    return {"true": 1, "false": 0}.get(text, int(text) if INTEGER.fullmatch(text) else None)


def _applied(one: Line, given: list[int]) -> int | None:
    match given:
        case [a] if one.opcode in UNARY:
            return UNARY[one.opcode](a)
        case [a, b] if one.opcode in BINARY:
            return BINARY[one.opcode](a, b)
        case [a, b] if one.opcode == "compare" and one.attributes.get("direction") in COMPARISONS:
            return int(COMPARISONS[one.attributes["direction"]](a, b))
        case [condition, a, b] if one.opcode == "select":
            return a if condition else b
    return None
