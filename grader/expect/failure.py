"""What a check raises that is not met."""

from __future__ import annotations

from typing import Any


class Failure(Exception):
    """A check that was not met.

    Attributes:
        reason: one line, lower case, for the learner; no hidden expected value in it.
        expected, actual: data for the renderer (None when there is nothing to show).
        where: device, index or source line.
        staff: one line for staff only, such as the arguments; of secret inputs only ``grade --why`` tells it.
        layouts: two of ``(mesh, shape, slices)`` to draw, the learner's and the expected one.
    """

    def __init__(
        self,
        reason: str,
        *,
        expected: Any = None,
        actual: Any = None,
        where: str = "",
        staff: str = "",
        layouts: tuple[tuple, tuple] | None = None,
    ) -> None:
        super().__init__(reason)
        self.staff = staff
        self.reason, self.expected, self.actual, self.where = reason, expected, actual, where
        self.layouts = layouts

    def about(self, name: str) -> Failure:
        """The same failure, of the result with this name."""
        if name:
            self.reason = f"{name}: {self.reason}"
            self.args = (self.reason,)
        return self
