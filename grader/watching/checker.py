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
        self._start()

    def ask(self, name: str, work: Work) -> None:
        """Run this request next, in place of a waiting request."""
        with self._changed:
            self._waiting = (name, work)
            if self._began and time.monotonic() - self._began > PATIENCE:
                self._end()
                self._start()
            self._changed.notify_all()

    @property
    def busy(self) -> bool:
        """Whether a request is running or waiting."""
        with self._changed:
            return self._waiting is not None or self._began > 0

    def close(self) -> None:
        """End all processes, so that a running request reports no result."""
        with self._changed:
            self._end()
            self._changed.notify_all()
        self._thread.join(10)

    def _start(self) -> None:
        self._grader: Grader | None = self._make()
        self._began = 0.0  # The time when the running request began; 0 while no request is running.
        self._thread = threading.Thread(target=self._work, args=(self._grader,), daemon=True, name="checker")
        self._thread.start()

    def _end(self) -> None:
        if self._grader is not None:
            self._grader.retire()
        self._grader = None

    def _work(self, grader: Grader) -> None:
        """Run requests until a different grader replaces this grader."""
        with grader:
            grader.warm()
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._grader is not grader or self._waiting is not None)
                    if self._grader is not grader or self._waiting is None:
                        return
                    (name, work), self._waiting = self._waiting, None
                    began = self._began = time.monotonic()
                value = problem = None
                try:
                    value = work(grader)
                # Go on after an error, because the next check may succeed. The screen shows the error.
                except Exception as error:
                    problem = error
                with self._changed:
                    if self._grader is not grader:
                        return
                    self._began = 0.0
                self._tell(Done(name, work, value, problem, time.monotonic() - began))
