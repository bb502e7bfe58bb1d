"""The files of one submission, each asked by workers that are free for it, counted in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from copy import copy
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from grader.batch.workers import Spent
from grader.course.config import Limits
from grader.intake.submission import Source

W = TypeVar("W")  # workers
T = TypeVar("T")  # what a source comes to


@dataclass
class Begun(Generic[T]):
    """A source that is being asked; ``spent``: what those before it had cost as far as that was known, and now itself."""

    source: Source
    before: Spent
    spent: Spent
    came_to: Future[T] = field(default_factory=Future)


class Lending(Generic[W, T]):
    """Asks one source after another of some workers, and others of those that nobody uses.

    Args:
        asked: what a source comes to; adds what that costs.
        idle: workers that nobody uses, or None; ``back``: they are free again.
    """

    def __init__(
        self, asked: Callable[[W, Source, Spent], T], idle: Callable[[], W | None], back: Callable[[W], None]
    ) -> None:
        self._asked, self._idle, self._back = asked, idle, back
        self._lock = Lock()
        self._waiting: deque[Source] = deque()
        self._begun: deque[Begun[T]] = deque()
        self._spent = Spent()  # by those that were handed on

    def in_order(
        self, sources: Iterable[Source], workers: W, limits: Limits, pool: Executor, most: int
    ) -> Generator[tuple[Source, T], None, None]:
        """Each source and what it comes to, as if one were asked after another by these workers.

        A source may be asked before it is known what those before it cost. Where they cost so much together that this
        one would not have been asked, or not to its end, it is asked again.

        Args:
            limits: on what all sources may cost.
            pool: for as many threads as there may be other workers, ``most``.
        """
        self._waiting.extend(sources)
        helpers: list[Future[None]] = []
        try:
            while (mine := self._next()) or self._begun:
                if mine:
                    helpers = [h for h in helpers if not h.done()]
                    if self._waiting and len(helpers) < most:
                        helpers.append(pool.submit(self._help))
                    self._ask(mine, workers)
                while self._begun and (self._begun[0].came_to.done() or not mine):
                    first = self._begun.popleft()
                    yield first.source, self._counted(first, workers, limits)
        finally:
            self._waiting.clear()

    def _next(self) -> Begun[T] | None:
        with self._lock:
            if not self._waiting:
                return None
            begun = Begun(self._waiting.popleft(), copy(self._spent), copy(self._spent))
            self._begun.append(begun)
            return begun

    def _ask(self, begun: Begun[T], workers: W) -> None:
        try:
            begun.came_to.set_result(self._asked(workers, begun.source, begun.spent))
        except Exception as error:  # it ends the submission, when its turn comes
            begun.came_to.set_exception(error)

    def _help(self) -> None:
        while (workers := self._idle()) is not None:
            try:
                if (begun := self._next()) is None:
                    return
                self._ask(begun, workers)
            finally:
                self._back(workers)

    def _counted(self, begun: Begun[T], workers: W, limits: Limits) -> T:
        came_to, known, spent = begun.came_to.result(), begun.before, self._spent
        tracing = spent.tracing + begun.spent.tracing - known.tracing
        running = spent.running + begun.spent.running - known.running
        if (known.tracing, known.running) != (spent.tracing, spent.running) and (
            tracing > limits.total_seconds or running > limits.total_run_seconds
        ):
            begun.spent = copy(spent)
            came_to = self._asked(workers, begun.source, begun.spent)
            tracing, running = begun.spent.tracing, begun.spent.running
        with self._lock:
            self._spent = Spent(tracing, running)
        return came_to
