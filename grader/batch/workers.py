"""The worker processes that grade submissions, and the threads that grade in parallel.

``Workers`` are the processes that one submission uses: the *tracer*, which runs learner code and returns programs, and
the *runners*, which run the programs. ``Pool`` lends a set of workers to one submission at a time, and ``Turns`` limits
how many submissions are graded at once. The files of a submission are graded one after another. In the code, an *ask*
is one request to a submission.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from itertools import count, islice
from queue import LifoQueue
from threading import Condition
from typing import Any, Generic, Self, TypeVar

from grader.batch.backends import NOTHING_BESIDE, Beside
from grader.batch.children import Children
from grader.batch.remembering import Keys, Store
from grader.batch.replies import Replies, RunResult
from grader.batch.runners import Runner
from grader.course.loading import Course
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.sandbox.worker import Worker
from grader.wire.messages import CallAsk, FormulaText


class Workers:
    """One tracer, for one submission at a time, and the runners that all submissions share.

    Attributes:
        limits: the limits of one submission.
        store: a cache that keeps results from one run of the grader to the next.
        devices: devices that programs run on in addition to the simulated devices. The checks must pass with the
            results from both kinds of devices.
        compiler: compiles each program that ran without a fault, for chips that this machine lacks.
        while_asleep: returns a context manager (``Turns.asleep``) for the time after the first sleep of a child, and
            for the time in which a worker is set aside.
    """

    def __init__(
        self, course: Course, tier: str, runners: Sequence[Runner] = (), beside: Beside = NOTHING_BESIDE,
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self.limits, self.store = course.config.limits, store or Store(Keys(None))
        self.devices, self.compiler = beside
        self.tracer = Worker("trace", tier, course.config.devices, course.config.limits)
        self.runners = runners or [Runner(course, tier)]
        self.while_asleep: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def each_worker(self) -> list[Worker]:
        return [self.tracer, *(worker for runner in self.runners for worker in runner.workers)]

    def with_runner(self, number: int) -> Workers:
        """Return a copy of these workers that uses only one of the runners, chosen by ``number``."""
        return self._with(runners=[self.runners[number % len(self.runners)]])

    def without_devices(self) -> Workers:
        """Return a copy of these workers that uses simulated devices only."""
        return self._with(devices=None)

    def afresh(self) -> Workers:
        """Return a copy of these workers whose store (cache) makes every value anew."""
        return self._with(store=self.store.afresh())

    def _with(self, **changed: Any) -> Workers:
        one = copy(self)
        vars(one).update(changed)
        return one

    def close(self) -> None:
        """End all processes."""
        for worker in self.each_worker:
            worker.kill()

    def replies(self, source: Source, asks: Sequence[Ask], seconds: float, hung: bool) -> Replies:
        """Return the replies of a source (a file or notebook), from confined child processes (see ``Children``)."""
        return Children(self.tracer, self.limits, source, asks, seconds, hung, self.while_asleep).replies()

    def run(self, ask: Ask, request: CallAsk, program: bytes) -> RunResult:
        """Run a program on the inputs of a request. Raises WorkerDied.

        If there is a compiler and the program ran, the header's entry ``compiled`` has the compiler's answer.
        """
        header, shards = self.executed(ask, request, program)
        if self.compiler is not None and "fault" not in header and "broken" not in header:
            made = self.compiler.compiled(request, program, ask)
            header = header if made is None else {**header, "compiled": (made, str(self.compiler.on))}
        return RunResult(header, shards)

    def executed(self, ask: Ask, request: CallAsk, program: bytes) -> tuple[Mapping[str, Any], list[bytes]]:
        """Run a program. Return (header with the program's facts, bytes of its results). Raises WorkerDied."""
        return self._runner_of(ask).run(request, program, ask, self.while_asleep)

    def formula(self, request: FormulaText) -> Mapping[str, Any]:
        """Evaluate a formula, see ``common.formulas.answer``. Raises WorkerDied."""
        return self.runners[0].formula(request)

    def changed(self, ask: Ask, request: CallAsk, program: bytes, poison: list[Any]) -> Mapping[str, Any]:
        """Run a program with changed operations, and return how much its results change. Raises WorkerDied.

        ``poison``: the kind and the numbers of the operations, see ``runner.poison.moved``.
        """
        return self._runner_of(ask).run(request, program, ask, self.while_asleep, poison=poison)[0]

    def _runner_of(self, ask: Ask) -> Runner:
        """Return the runner for a request. All requests for a task on one mesh go to one runner, which has a cache."""
        return self.runners[zlib.crc32(f"{ask.task} {dict(ask.mesh)}".encode()) % len(self.runners)]


@contextmanager
def pool_of(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a thread pool for the block. An exception in the block cancels queued work.

    After an interruption such as Ctrl-C, the pool does not wait for running work either.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException as end:
        pool.shutdown(wait=isinstance(end, Exception), cancel_futures=True)
        raise
    pool.shutdown()


class Turns:
    """Lets at most ``most`` threads work at a time. While a thread's child process sleeps, one more thread may work.

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


SLOW = 40.0  # Seconds of work after which a submission is reported as slow.
AHEAD = 4  # Submissions that wait for each set of workers. More would fill the memory. Fewer would leave workers idle.
SPARE = 12  # The most spare sets of workers. Spare sets work while submissions sleep. A set takes about 0.2 GB.
# The largest number of spare sets for each submission that is graded in parallel. This number is below 10, because the
# limit on wall time (``backstop``) allows about 10 busy processes for a core.
SPARE_EACH = 6

T = TypeVar("T")


class Pool(Generic[T]):
    """Lends sets of workers to submissions. The pool prefers a set whose processes are already running.

    Args:
        every: one set for each submission that is graded in parallel.
        spare: further sets, which the method ``each`` uses while child processes of other sets sleep.

    Attributes:
        slow: called with a submission's name and the seconds of work on this submission so far. The first call is after
            ``SLOW`` seconds. Each further call is after the seconds have doubled.
    """

    def __init__(self, every: Sequence[Workers], spare: Sequence[Workers] = ()) -> None:
        self._at_once, self.sets = len(every), [*spare, *every]
        self.slow: Callable[[str, float], None] = lambda name, seconds: None
        self._free: LifoQueue[Workers] = LifoQueue()
        for workers in self.sets:
            self._free.put(workers)

    @contextmanager
    def lent(self) -> Iterator[Workers]:
        """Wait for a free set of workers. No other submission gets this set during the block."""
        workers = self._free.get()
        try:
            yield workers
        finally:
            self._free.put(workers)

    def each(self, names: Iterable[str], work: Callable[[str], T], done: Callable[[str, T | Exception], None]) -> None:
        """Call ``work`` for each name in a thread of a pool, and pass each result to ``done`` in the caller's thread.

        ``done`` gets results as they arrive. If several results arrive at once, they come in the order of the names. If
        ``work`` raises an exception for a name, ``done`` gets this exception, and work on the other names continues.
        """
        left, running, began = iter(names), dict[Future[T], str](), dict[str, float]()
        turns, numbers = Turns(self._at_once), count()
        for workers in self.sets:
            workers.while_asleep = turns.asleep

        def begin(number: int, name: str) -> T:
            with turns.turn(number):
                began[name] = time.monotonic()
                return work(name)

        reported = dict[str, float]()
        with pool_of(len(self.sets)) as threads, turns:
            while True:
                for name in islice(left, AHEAD * len(self.sets) - len(running)):
                    running[threads.submit(begin, next(numbers), name)] = name
                if not running:
                    break
                wait(running, SLOW / 8, FIRST_COMPLETED)
                for name in running.values():
                    seconds = time.monotonic() - began.get(name, math.inf)
                    if seconds >= 2 * reported.get(name, SLOW / 2):
                        reported[name] = seconds
                        self.slow(name, seconds)
                # This loop does not use the result of ``wait``, because ``wait`` returns a set, which has no order.
                for future in [one for one in running if one.done()]:
                    name, error = running.pop(future), future.exception()
                    done(name, error if isinstance(error, Exception) else future.result())
