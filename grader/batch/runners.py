"""Workers that run programs.

If a program's devices wait for each other too long, the next program gets a new worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from grader.course.loading import Course
from grader.judging.plan import Ask
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.messages import CallAsk, FormulaText

# The most workers that one runner sets aside (see ``Runner``) at once. Each worker takes about 0.4 GB of memory.
MOST_ASIDE = 3
Asleep = Callable[[], AbstractContextManager[None]]
T = TypeVar("T")


class Runner:
    """Runs programs in a worker process, one at a time. All submissions share the worker and its cache of results.

    A program takes this way: ``run`` (takes the worker, or a new one if this one is set aside), ``_tried_twice`` (tries
    once more if the process dies), ``Worker.run_program`` (sends the request to the process), and in the process
    ``runner/serve.py``.

    If a program's devices wait for each other too long, the runner *sets its worker aside*: this worker continues with
    the program, and the next program gets a new worker.
    """

    def __init__(self, course: Course, tier: str) -> None:
        self._make = partial(Worker, "run", tier, course.config.devices, course.config.limits)
        self.worker, self._aside = self._make(), list[Worker]()
        self._lock = Lock()

    @property
    def workers(self) -> list[Worker]:
        """All workers, including those that are set aside."""
        return [self.worker, *self._aside]

    def run(
        self, request: CallAsk, program: bytes, ask: Ask, while_asleep: Asleep = nullcontext, **more: Any
    ) -> tuple[dict, list[bytes]]:
        """Run a program. If the worker's process dies or hangs, a new process tries once more.

        Return (header with the program's facts, bytes of its results).

        Args:
            while_asleep: returns a context manager for the time in which the worker is set aside.
            more: additional fields of the request to the worker (``wire.messages.RunRequest``).

        Raises WorkerDied.
        """
        with self._lent(while_asleep) as (worker, set_aside):
            run = partial(worker.run_program, request, program, ask.arrays(), stuck=set_aside, **more)
            return _tried_twice(worker, run)

    def formula(self, request: FormulaText) -> dict[str, Any]:
        """Evaluate a formula. If the process dies or hangs, a new process tries once more. Raises WorkerDied."""
        with self._lock:
            return _tried_twice(self.worker, partial(self.worker.evaluate, request))

    @contextmanager
    def _lent(self, while_asleep: Asleep) -> Iterator[tuple[Worker, Callable[[], None]]]:
        """Wait until the worker is free.

        Yield the worker, and a function that sets it aside. After the block, a worker that was set aside is killed.
        """
        self._lock.acquire()
        worker = self.worker

        def set_aside() -> None:
            if worker is self.worker and len(self._aside) < MOST_ASIDE:
                self._aside.append(worker)
                self.worker = self._make()
                self._lock.release()
                until_end.callback(self._end, worker)
                until_end.enter_context(while_asleep())

        with ExitStack() as until_end:
            try:
                yield worker, set_aside
            finally:
                if worker is self.worker:
                    self._lock.release()

    def _end(self, worker: Worker) -> None:
        worker.kill()
        self._aside.remove(worker)


def _tried_twice(worker: Worker, request: Callable[[], T]) -> T:
    """Return the worker's answer to a request. If its process dies or hangs, a new process tries once more.

    Raises:
        WorkerDied: two processes died or hung. If a new process then cannot run the grader's test program, the grader
            is at fault, and the exception's ``ours`` is True. After a timeout, ``ours`` is False.
    """
    with suppress(WorkerDied):
        return request()
    try:
        return request()
    except WorkerDied as died:
        died.ours = died.reason != "timeout" and not worker.runs_own_test()
        raise
