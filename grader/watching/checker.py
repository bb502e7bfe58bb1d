"""Run checks in one thread, with workers that keep running.

A new request replaces a waiting request, and ends a running request that is slow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grader.batch.grade import Grader

Work = Callable[[Grader], Any]
PATIENCE = 2.0
"""Seconds after which a new request ends a running check. So saving again stops an endless loop in learner code."""


@dataclass(frozen=True)
class Done:
    """The outcome of a request: the ``value`` that its ``work`` returned, or the ``error`` that it raised."""

    name: str
    work: Work
    value: Any
    error: Exception | None
    seconds: float


class Checker:
    """Runs requests one at a time.

    Args:
        make: makes a grader. To end a slow request, the checker ends the grader and makes a new grader.
        tell: called from another thread with the ``Done`` of each request. A request has no ``Done`` if a newer request
            replaced or stopped it.
    """

    def __init__(self, make: Callable[[], Grader], tell: Callable[[Done], None]) -> None:
        self._make, self._tell = make, tell
        self._changed = threading.Condition()
        self._waiting: tuple[str, Work] | None = None
        self._round = self._start()

    def ask(self, name: str, work: Work) -> None:
        """Run this request next, in place of a waiting request."""
        with self._changed:
            self._waiting = (name, work)
            if self._round.began and time.monotonic() - self._round.began > PATIENCE:
                self._round.give_up()
                self._round = self._start()
            self._changed.notify_all()

    @property
    def busy(self) -> bool:
        """Whether a request is running or waiting."""
        with self._changed:
            return self._waiting is not None or self._round.began > 0

    def close(self) -> None:
        """End all processes, so that a running request reports no result."""
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
    """A grader and its thread. ``began`` is the time when the current request began, or 0 while the thread is idle."""

    thread: threading.Thread

    def __init__(self, grader: Grader) -> None:
        self.grader, self.over, self.began = grader, False, 0.0

    def give_up(self) -> None:
        self.over = True
        self.grader.retire()


def _done(name: str, work: Work, grader: Grader, began: float) -> Done:
    try:
        return Done(name, work, work(grader), None, time.monotonic() - began)
    # Go on after an error, because the next check may succeed. The screen shows the error.
    except Exception as error:
        return Done(name, work, None, error, time.monotonic() - began)
