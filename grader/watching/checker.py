"""One thread that checks, with warm workers: the newest request counts, and what runs for long gives way to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grader.batch.grade import Grader

Work = Callable[[Grader], Any]
PATIENCE = 2.0
"""Seconds that a check may take before a newer one ends it: a program that loops is stopped by saving again."""


@dataclass(frozen=True)
class Done:
    """What came of a request: ``value``, or the ``error`` of ours that stopped it."""

    name: str
    value: Any
    error: Exception | None
    seconds: float


class Checker:
    """Runs requests one at a time.

    Args:
        make: a grader, made anew where its workers were given up.
        tell: is called with each ``Done``, from another thread; never with one that gave way.
    """

    def __init__(self, make: Callable[[], Grader], tell: Callable[[Done], None]) -> None:
        self._make, self._tell = make, tell
        self._changed = threading.Condition()
        self._waiting: tuple[str, Work] | None = None
        self._round = self._start()

    def ask(self, name: str, work: Work) -> None:
        """Do this next, in place of whatever waits."""
        with self._changed:
            self._waiting = (name, work)
            if self._round.began and time.monotonic() - self._round.began > PATIENCE:
                self._round.give_up()
                self._round = self._start()
            self._changed.notify_all()

    @property
    def busy(self) -> bool:
        """Whether something is being done or waits."""
        with self._changed:
            return self._waiting is not None or self._round.began > 0

    def close(self) -> None:
        """End all processes. What is being done is not told any more."""
        with self._changed:
            self._round.give_up()
            self._changed.notify_all()
        self._round.thread.join(10)

    def _start(self) -> _Round:
        begun = _Round(self._make())
        begun.thread = threading.Thread(target=self._work, args=(begun,), daemon=True, name="checker")
        begun.thread.start()
        return begun

    def _work(self, mine: _Round) -> None:
        with mine.grader as grader:
            grader.warm()
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: mine.over or self._waiting is not None)
                    if mine.over or self._waiting is None:
                        return
                    (name, work), self._waiting = self._waiting, None
                    mine.began = time.monotonic()
                done = _done(name, work, grader, mine.began)
                with self._changed:
                    mine.began = 0.0
                    if mine.over:
                        return
                self._tell(done)


class _Round:
    """A grader and the thread that uses it; ``began``: when what it does now was begun, 0 for nothing."""

    thread: threading.Thread

    def __init__(self, grader: Grader) -> None:
        self.grader, self.over, self.began = grader, False, 0.0

    def give_up(self) -> None:
        self.over = True
        self.grader.retire()


def _done(name: str, work: Work, grader: Grader, began: float) -> Done:
    try:
        return Done(name, work(grader), None, time.monotonic() - began)
    except Exception as error:  # told on the screen; the next save may go well
        return Done(name, None, error, time.monotonic() - began)
