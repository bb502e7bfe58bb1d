"""Concurrency: workers that are lent to one submission at a time, and a bounded queue of submissions.

Submissions are graded side by side, one for each set of workers. The files of a submission are graded one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from itertools import islice
from queue import LifoQueue
from typing import Generic, TypeVar

from grader.batch.workers import Workers
from grader.common.pool import pool_of

AHEAD = (
    4  # queued submissions for each set of workers: of a whole class they would take memory; of one, workers would idle
)

T = TypeVar("T")


class Pool(Generic[T]):
    """Sets of workers. Those that run already are lent first."""

    def __init__(self, every: Sequence[Workers]) -> None:
        self.every = list(every)
        self._free: LifoQueue[Workers] = LifoQueue()
        for workers in every:
            self._free.put(workers)

    @contextmanager
    def lent(self) -> Iterator[Workers]:
        """Wait for workers and have them alone."""
        workers = self._free.get()
        try:
            yield workers
        finally:
            self._free.put(workers)

    def each(self, names: Iterable[str], work: Callable[[str], T], done: Callable[[str, T | Exception], None]) -> None:
        """Do the work of each name in a thread, and hand each result to ``done`` in this one.

        Results are handed on as they come; of several that came meanwhile, in the order of the names. An exception of
        ours over one name is handed on in place of the result and stops no other.
        """
        left, running = iter(names), dict[Future[T], str]()
        with pool_of(len(self.every)) as threads:
            while True:
                for name in islice(left, AHEAD * len(self.every) - len(running)):
                    running[threads.submit(work, name)] = name
                if not running:
                    break
                wait(running, return_when=FIRST_COMPLETED)
                for future in [one for one in running if one.done()]:  # in the order of names, not of a set
                    name, error = running.pop(future), future.exception()
                    done(name, error if isinstance(error, Exception) else future.result())
