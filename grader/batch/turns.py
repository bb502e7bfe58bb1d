"""Let only a few threads work at a time, in the order of their numbers.

While a thread's child process sleeps, one more thread may work.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from threading import Condition
from typing import Self


class Turns:
    """Lets at most ``most`` threads work at a time.

    Each thread has a *turn* with a number, and turns begin in the order of their numbers.
    """

    def __init__(self, most: int) -> None:
        self._most, self._awake, self._next, self._stopped = most, 0, 0, False
        self._changed = Condition()

    @contextmanager
    def turn(self, number: int) -> Iterator[None]:
        """Wait until turn ``number`` may begin, and run the block.

        Raises CancelledError if the ``with`` block of this object has ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or (number == self._next and self._awake < self._most))
            if self._stopped:
                raise CancelledError
            self._next, self._awake = self._next + 1, self._awake + 1
            self._changed.notify_all()
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Let one more thread work during the block. Afterwards, this thread continues without waiting for a turn."""
        self._count(-1)
        try:
            yield
        finally:
            self._count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _count(self, change: int) -> None:
        with self._changed:
            self._awake += change
            self._changed.notify_all()
