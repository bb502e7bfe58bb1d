"""Answers that are a number with a unit."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.exercise import Quantity
from grader.judging.kinds.kind import UNKNOWN, AnswerKind
from grader.judging.units import COUNTED, DIMENSIONS, OF_DATA, ParsedAnswer, parse, show, unit_of

EXACT = 1e-4
"""Relative tolerance to detect kB taken for KiB.

The tolerance is small, because a mistake in a count can cause a factor (N + 1) / N near a power of 1.024.
"""
PLAUSIBLE = 10.0
"""The size of a wrong answer is plausible if the answer is too large or too small by less than this factor."""
ROUNDED = 1e-3
"""Relative tolerance to detect a mistake in a count. A learner may round an answer to four digits."""
FEW = range(3, 8)
"""Numbers of layers, steps or arrays in a question's text. 8 has other causes, such as bits taken for bytes."""
TWICE = (
    "off by a factor of two: check what counts once or twice (bytes of the dtype, directions of a link, forward and "
    "backward pass, reduce-scatter and all-gather, send and receive, multiply and add)"
)
"""What to check if an answer is twice or half the right one: the general causes of this factor."""
MANY = 64
"""Of more than this number of parts, one part hardly changes an answer."""
COUNTS = range(1, 9)
"""Numbers that occur in many formulas, in addition to the numbers drawn for the question."""


@dataclass(frozen=True)
class QuantityKind(AnswerKind[float, ParsedAnswer]):
    """A number with a unit. ``zero``: True if it may be 0. ``drawn``: the numbers drawn for the question."""

    unit: str
    rtol: float
    zero: bool = False
    drawn: tuple[float, ...] = ()

    name = "number"
    valid = "number"

    @classmethod
    def of(cls, answer: Quantity, drawn: Mapping[str, Any], rtol: float) -> QuantityKind:
        return cls(answer.unit, rtol, drawn=numbers_of(drawn))

    @staticmethod
    def heading(answer: Quantity) -> str:
        return answer.unit or "a number"

    @property
    def asked(self) -> Sequence[str]:
        factor, dimension = unit_of(self.unit)
        if dimension == DIMENSIONS[()] and factor == 1:
            return ["Answer with a bare number."]
        return [f"Answer in {self.unit} (a bare number), or with a unit."]

    @property
    def of_mistakes(self) -> QuantityKind:
        return replace(self, zero=True)

    def want(self, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{value!r} is not a number; return a number in seconds, bytes or FLOP") from None
        if not (math.isfinite(number) and (number > 0 or (self.zero and number == 0))):
            raise ValueError(f"{number!r} is not a finite positive number")
        return number

    def read(self, raw: Any) -> ParsedAnswer:
        return parse(raw, self.unit)

    def distance(self, given: ParsedAnswer, want: float) -> float | None:
        if given.dimension != unit_of(self.unit)[1] or not is_close(given.value, want, self.rtol):
            return None
        return abs(given.value - want) / want if want else 0.0

    def are_close(self, one: float, other: float) -> bool:
        return abs(one - other) <= self.rtol * max(one, other)

    def shown(self, want: float) -> str:
        return show(want, self.unit)

    def read_as(self, given: ParsedAnswer) -> str:
        return str(given)

    def written(self, want: float) -> str:
        return f"{want / unit_of(self.unit)[0]!r} {self.unit}".strip()

    def misfit(self, given: ParsedAnswer) -> str:
        if other := self._other_dimension(given):
            return other
        if given.value < 0 or (given.value == 0 and not self.zero):
            return f"the answer is {'not negative' if self.zero else 'positive'}, but you gave {given}"
        return ""

    def why(self, given: ParsedAnswer, want: float) -> str:
        if other := self._other_dimension(given):
            return other
        if want == 0:
            return UNKNOWN
        return self._likely_reason(given, want)

    def _other_dimension(self, given: ParsedAnswer) -> str:
        asked = unit_of(self.unit)[1]
        return "" if given.dimension == asked else f"the question asks for {asked}, but you gave {given.dimension}"

    def _likely_reason(self, answer: ParsedAnswer, want: float) -> str:
        """Return the likely reason why a number is wrong, without revealing the right number.

        A wrong answer may differ from the right answer by a power of 1000, or by a power of 1.024 (kB taken for KiB).
        The reason then names a mistake in the unit. If a mistake in the formula can also cause this factor, the reason
        does not name the unit (see ``_of_the_question``). No reason mentions a factor of 8, because many mistakes cause
        this factor, not only bits taken for bytes. Other reasons say whether the answer's size is plausible. Plain
        numbers and numbers of tokens get no such reason, because their unit is rarely wrong.
        """
        got = answer.value
        if got <= 0:
            return f"the answer is positive, but you gave {answer}"
        if is_close(answer.magnitude * unit_of(self.unit)[0], want, self.rtol):
            return f"the digits are right but the unit is not: you gave {answer}"
        if self._off_by(1000.0, got / want, self.rtol):
            return "the digits are right but the unit is not: you are off by a power of 1000"
        if answer.dimension in OF_DATA and self._off_by(1.024, got / want, min(self.rtol, EXACT)):
            return (
                "this looks like kB and KiB mixed up: 1 kB is 1000 B, 1 KiB is 1024 B (MB and MiB, GB and GiB likewise)"
            )
        if likely := self._miscounted(got / want):
            return f"{UNKNOWN}; {likely}"
        if answer.dimension in COUNTED:
            return UNKNOWN
        if 1 / PLAUSIBLE < got / want < PLAUSIBLE:
            return f"{UNKNOWN}; the size is plausible, so check the formula first, then the units"
        if 1e-3 < got / want < 1e3:
            return UNKNOWN
        return "not right: off by a factor of 1000 or more, so look at the units first"

    def _miscounted(self, factor: float) -> str:
        """Return what to check if a mistake in a count explains the factor of a wrong answer; '' for other factors.

        The count is 2 to 7, one of the whole numbers drawn for the question, or the product of two of them.
        """
        counts = {int(n) for n in self.drawn if n >= 3 and n == int(n)}
        near = functools.partial(is_close, factor, rtol=ROUNDED)
        if near(2) or near(1 / 2):
            return TWICE
        if any(near((n - 1) / n) or near(n / (n - 1)) for n in counts if n <= MANY):
            return "check the number of parts or steps: all, or one less because a device keeps its own part"
        made = set(FEW) | counts | {a * b for a, b in itertools.combinations_with_replacement(counts, 2)}
        if any(near(n) or near(1 / n) for n in made):
            return "check what counts: which array, a part or the whole, one device or all, one step or all"
        return ""

    def _off_by(self, base: float, factor: float, rtol: float) -> bool:
        """Return True if ``factor`` is close to a power of ``base`` and the question's numbers do not explain it."""
        powers = (base**k for k in (1, -1, 2, -2, 3, -3, 4, -4))
        near = [abs(factor / power - 1) for power in powers if is_close(factor, power, rtol)]
        return bool(near) and not self._of_the_question(factor, min(near) + EXACT)

    def _of_the_question(self, factor: float, rtol: float) -> bool:
        """Return True if a factor is a·b, a/b or 1/(a·b) for two of the question's numbers a and b.

        The question's numbers are 1 to 8, its drawn numbers, and the drawn numbers plus or minus 1.
        """
        numbers = {*COUNTS, *(n + more for n in self.drawn for more in (-1, 0, 1) if n + more > 0)}
        pairs = itertools.product(numbers, repeat=2)
        return any(is_close(factor, made, rtol) for a, b in pairs for made in (a / b, a * b, 1 / (a * b)))


def is_close(got: float, want: float, rtol: float) -> bool:
    """Return True if ``got`` is within the relative tolerance of ``want``; False for NaN."""
    return abs(got - want) <= rtol * abs(want)


def numbers_of(drawn: object) -> tuple[float, ...]:
    """Return the numbers among the drawn values, including numbers inside tuples, lists and dicts."""
    if isinstance(drawn, Mapping):
        drawn = tuple(drawn.values())
    if isinstance(drawn, list | tuple):
        return tuple(number for one in drawn for number in numbers_of(one))
    return (drawn,) if isinstance(drawn, int | float) and not isinstance(drawn, bool) else ()
