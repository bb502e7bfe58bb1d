"""Intervals: the minimum and maximum of a number, such as bytes sent, over all devices and all paths of a program.

A path is one way through the program's branches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

COUNTABLE = 1 << 256


@dataclass(frozen=True, eq=False)
class Interval:
    """The minimum and maximum of a number, such as bytes sent, over all paths through a program and all devices.

    A check that requires a minimum uses ``least``; a check with a budget (a maximum) uses ``most``. If both are equal,
    the interval equals (``==``) this number.
    """

    least: float
    most: float

    def __post_init__(self) -> None:
        """Replace numbers above COUNTABLE: ``least`` by COUNTABLE, and ``most`` by infinity.

        The rounds of nested loops can multiply to a number that no float can hold.
        """
        object.__setattr__(self, "least", min(self.least, COUNTABLE))
        object.__setattr__(self, "most", self.most if self.most <= COUNTABLE else math.inf)

    @classmethod
    def of(cls, value: Any) -> Interval:
        """Return an interval for a number, an interval, or an interval's dict (from ``dataclasses.asdict`` or JSON).

        Raises ValueError for any other value, and for negative numbers.
        """
        if isinstance(value, Interval):
            return value
        least, most = (value["least"], value["most"]) if isinstance(value, Mapping) else (value, value)
        if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in (least, most)):
            raise ValueError("an interval has two numbers")
        if not 0 <= least <= most or least == math.inf:
            raise ValueError(f"an interval needs 0 <= minimum <= maximum, not {least} to {most}")
        return cls(least, most)

    @property
    def known(self) -> bool:
        """Whether there is an upper bound."""
        return self.most != math.inf

    @property
    def exact(self) -> bool:
        return self.least == self.most

    def __add__(self, other: Interval | float) -> Interval:
        other = Interval.of(other)
        return Interval(self.least + other.least, self.most + other.most)

    def __mul__(self, other: Interval | float) -> Interval:
        other = Interval.of(other)
        # An operation that never runs costs nothing: 0 times infinity is 0 here.
        most = self.most * other.most if self.most and other.most else 0
        return Interval(self.least * other.least, most)

    __radd__, __rmul__ = __add__, __mul__

    def either(self, other: Interval) -> Interval:
        """Return the smallest interval that covers this interval and ``other``."""
        return Interval(min(self.least, other.least), max(self.most, other.most))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Interval):
            return (self.least, self.most) == (other.least, other.most)
        return isinstance(other, int | float) and self.least == self.most == other

    def __hash__(self) -> int:
        return hash(self.least) if self.exact else hash((self.least, self.most))

    def __str__(self) -> str:
        """Return the interval as text: ``3``, ``0 to 3`` or ``2 or more``."""
        if not self.known:
            return f"{self.least:g} or more"
        return f"{self.most:,}" if self.exact else f"{self.least:,} to {self.most:,}"


UNKNOWN = Interval(0, math.inf)
ZERO, ONCE = Interval(0, 0), Interval(1, 1)
Path = tuple[tuple[int, int, int], ...]


def sum_over_paths(parts: Iterable[tuple[Path, Interval]]) -> Interval:
    """Return the least and the largest sum of the parts' amounts on any path through the program.

    On a path, each conditional takes only one of its branches.

    Args:
        parts: pairs (branches, amount). The branches are those around the part, outermost first: (number of the
            conditional, index of the branch, number of branches).
    """
    found, cases = ZERO, {}
    for path, value in parts:
        if path:
            case, branch, branches = path[0]
            cases.setdefault((case, branches), {}).setdefault(branch, []).append((path[1:], value))
        else:
            found += value
    for (_, branches), taken in cases.items():
        sums = [sum_over_paths(inside) for inside in taken.values()]
        if len(sums) < branches:  # a branch that is not in ``taken`` costs nothing
            sums.append(ZERO)
        found += Interval(min(s.least for s in sums), max(s.most for s in sums))
    return found
