"""The exception of a failed check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Compared:
    """A result and the expected values, device by device.

    Attributes:
        held, due: the actual and the expected values of each device.
        good: for each device, the mask of the right values.
        bound: largest allowed error.
        informative: for each device, the mask of the values to use in a comparison with another program's values;
            None for all values.
    """

    held: Sequence[np.ndarray]
    due: Sequence[np.ndarray]
    good: Sequence[np.ndarray]
    bound: float
    informative: Sequence[np.ndarray] | None = None


class Failure(Exception):
    """A failed check.

    Attributes:
        reason: one line, lower case, for the learner; it reveals no hidden expected value.
        expected, actual: data that the report shows (None if there is nothing to show).
        where: the device, array index or source line where the check failed.
        staff: one line for staff only, for example with the arguments. If the inputs are drawn from the course's seed,
            only the command ``shardlings appeal`` shows ``staff``.
        layouts: layouts that the report draws: the learner's and, if it differs, the expected layout. A layout is a
            tuple of the mesh, the array's shape and each device's slices.
        values: a few expected and a few actual values, starting at the first difference. Reports show ``values`` only
            for public checks on public data.
        wrong: the devices to mark as wrong in the picture of the learner's layout; empty if all devices are wrong.
        compared: for checks of values, the compared values. Stored results and reports never contain these values.
        spread: if the numbers of two failures differ by more than this fraction of the larger number, the failures have
            different causes. The numbers are in ``expected`` and ``actual``, or if both are None, in ``reason``.
        unit: the unit of the numbers in ``expected`` and ``actual``, such as "B".
        of: name of the result that failed, or of the part of the program that a budget limits, such as "over x in the
            backward pass". Two failures that differ in this name have different causes.
        others: the failures of other results, if one comparison checked several results.
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
        unit: str = "",
        of: str = "",
    ) -> None:
        super().__init__(reason)
        self.staff = staff
        self.reason, self.expected, self.actual, self.where = reason, expected, actual, where
        self.layouts, self.values, self.compared = layouts, values, compared
        self.spread, self.unit, self.of = spread, unit, of
        self.others: list[Failure] = []
        count = len(layouts[0][2]) if layouts else 0
        self.wrong = list(wrong) if len(wrong) < count else []

    def about(self, name: str) -> Failure:
        """Add the result's name to this failure, and return the failure."""
        if name:
            self.of = name
            self.reason = f"{name}: {self.reason}"
            self.args = (self.reason,)
        return self


def place(file: str | None, line: int | None) -> str:
    """Return a place in the learner's source, ``line 7`` or ``cell 3, line 7``; '' if the line is not known."""
    cell = f"{file}, " if file and file.startswith("cell") else ""
    return f"{cell}line {line}" if line else ""


def prefix(file: str | None, line: int | None) -> str:
    """Return the place as the start of a message, ``line 7: ``; '' if the line is not known."""
    return f"{where}: " if (where := place(file, line)) else ""
