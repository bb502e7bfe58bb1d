"""Count the steps of Python code, to test that it ends early on a machine of any speed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def counted(work: Callable[[], T]) -> tuple[T, int]:
    """Return the result of ``work``, and the number of calls and returns of functions in it."""
    steps = 0

    def step(*event: object) -> None:
        nonlocal steps
        steps += 1

    before = sys.getprofile()
    sys.setprofile(step)
    try:
        return work(), steps
    finally:
        sys.setprofile(before)
