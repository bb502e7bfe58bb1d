"""Answers that are a number with a unit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grader.judging.kinds.kind import is_blank
from grader.judging.reading import Answer, parse
from grader.judging.units import DIMENSIONS, OF_DATA, show, unit_of

KIB_RTOL = 0.004
"""How near an answer must be to the kB/KiB slip: the slip is only 2.4 % and its powers would cover all near misses."""


@dataclass(frozen=True)
class QuantityKind:
    """``zero``: whether the answer may be 0, as an entry of a table."""

    unit: str
    rtol: float
    zero: bool = False

    @property
    def asked(self) -> Sequence[str]:
        factor, dimension = unit_of(self.unit)
        if dimension == DIMENSIONS[()] and factor == 1:
            return ["Answer with a bare number."]
        return [f"Answer in {self.unit} (a bare number), or with a unit."]

    def want(self, value: Any) -> float:
        number = float(value)
        if not (math.isfinite(number) and (number > 0 or (self.zero and number == 0))):
            raise ValueError(f"{number!r} is not a finite positive number")
        return number

    def read(self, raw: Any) -> Answer:
        return parse(raw, self.unit)

    def is_empty(self, raw: Any) -> bool:
        return is_blank(raw)

    def distance(self, given: Answer, want: float) -> float | None:
        if given.dimension != unit_of(self.unit)[1] or not is_close(given.value, want, self.rtol):
            return None
        return abs(given.value - want) / want if want else 0.0

    def are_close(self, one: float, other: float) -> bool:
        return abs(one - other) <= self.rtol * max(one, other)

    def shown(self, want: float) -> str:
        return show(want, self.unit)

    def read_as(self, given: Answer) -> str:
        return str(given)

    def written(self, want: float) -> str:
        return f"{want / unit_of(self.unit)[0]!r} {self.unit}".strip()

    def misfit(self, given: Answer) -> str:
        if other := self._other_dimension(given):
            return other
        if given.value < 0 or (given.value == 0 and not self.zero):
            return f"the answer is {'not negative' if self.zero else 'positive'}, you gave {given}"
        return ""

    def why(self, given: Answer, want: float) -> str:
        if other := self._other_dimension(given):
            return other
        if want == 0:
            return "not right, and no slip we know"
        return _generic_slip(given, want, self.unit, self.rtol)

    def _other_dimension(self, given: Answer) -> str:
        asked = unit_of(self.unit)[1]
        return "" if given.dimension == asked else f"{asked} was asked, you gave {given.dimension}"


def is_close(got: float, want: float, rtol: float) -> bool:
    """Within the tolerance; NaN never is."""
    return abs(got - want) <= rtol * abs(want)


def _generic_slip(answer: Answer, want: float, unit: str, rtol: float) -> str:
    """Why a wrong number may be wrong, without telling the right one."""
    got = answer.value
    if got <= 0:
        return f"the answer is positive, you gave {answer}"
    if is_close(answer.magnitude * unit_of(unit)[0], want, rtol):
        return f"the digits are right but the unit is not: you gave {answer}"
    if _off_by(got, want, 1000.0, rtol):
        return "the digits are right but the unit is not: you are off by a power of 1000"
    if answer.dimension not in OF_DATA:
        pass  # a time, a count or a rate of FLOPs has no bytes to mix up
    elif _off_by(got, want, 1.024, min(rtol, KIB_RTOL)):
        return "this looks like kB and KiB mixed up: 1 kB is 1000 B, 1 KiB is 1024 B (MB and MiB, GB and GiB likewise)"
    elif _off_by(got, want, 8.0, rtol, powers=(1, -1)):
        return "this looks like bits and bytes mixed up: b is a bit, B is a byte of 8 bits"
    if 1e-3 < got / want < 1e3:
        return "not right, and no slip we know; the size is plausible, so look at the formula before the units"
    return "not right: off by more than a factor of 1000, so look at the units first"


def _off_by(
    got: float, want: float, base: float, rtol: float, powers: Iterable[int] = (1, -1, 2, -2, 3, -3, 4, -4)
) -> bool:
    return any(is_close(got, want * base**k, rtol) for k in powers)
