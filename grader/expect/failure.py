"""What a check raises that is not met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Compared:
    """A result and what was due, device by device.

    Attributes:
        held, due: the values of each device; what is due as float64 or complex128.
        good: which values are right.
        bound: how far a right value may be off.
        informative: which values depend on their cause; None: all.
    """

    held: Sequence[np.ndarray]
    due: Sequence[np.ndarray]
    good: Sequence[np.ndarray]
    bound: float
    informative: Sequence[np.ndarray] | None = None


class Failure(Exception):
    """A check that was not met.

    Attributes:
        reason: one line, lower case, for the learner; no hidden expected value in it.
        expected, actual: data for the renderer (None when there is nothing to show).
        where: device, index or source line.
        staff: one line for staff only, such as the arguments; of secret inputs only ``grade --why`` tells it.
        layouts: ``(mesh, shape, slices)`` to draw, the learner's and, where it differs, the expected one.
        values: ``(expected, actual)``, some of the values where they first differ; told of public checks on public data
            alone.
        wrong: the devices that are marked in the learner's; none where all of them are wrong.
        compared: the values that are wrong, of checks on values; it never leaves the judge.
        spread: by which part the data of two programs that make the same mistake may differ.
        of: the name of the result that it is about.
        others: the failures of the other results that were compared at once.
    """

    def __init__(
        self,
        reason: str,
        *,
        expected: Any = None,
        actual: Any = None,
        where: str = "",
        staff: str = "",
        layouts: Sequence[tuple] = (),
        wrong: Sequence[int] = (),
        values: tuple[str, str] = ("", ""),
        compared: Compared | None = None,
        spread: float = 0.1,
    ) -> None:
        super().__init__(reason)
        self.staff = staff
        self.reason, self.expected, self.actual, self.where = reason, expected, actual, where
        self.layouts, self.values, self.compared = layouts, values, compared
        self.spread, self.of = spread, ""
        self.others: list[Failure] = []
        count = len(layouts[0][2]) if layouts else 0
        self.wrong = list(wrong) if len(wrong) < count else []

    def about(self, name: str) -> Failure:
        """The same failure, of the result with this name."""
        if name:
            self.of = name
            self.reason = f"{name}: {self.reason}"
            self.args = (self.reason,)
        return self
