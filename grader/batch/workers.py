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
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from itertools import count, islice
from queue import LifoQueue
from threading import Condition
from typing import Any, Generic, Self, TypeVar

from grader.batch.backends import Devices
from grader.batch.findings import Replies, Reply, RunReply, ended_fault, load_notes, reply_of
from grader.batch.remembering import Keys, Store
from grader.batch.runners import Runner
from grader.common.observation import Fault
from grader.course.config import Limits
from grader.course.loading import Course
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.sandbox.allowance import backstop
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.limits import IDLE_SECONDS, MAX_RESTARTS
from grader.wire.messages import (
    GARBAGE,
    IDLE,
    TIMEOUT,
    WORKER_ENDED,
    CallAsk,
    FormulaText,
    SourceCode,
    TraceFrame,
    TracerAsk,
)

GIVEN_UP = Reply(
    Fault(
        "crashed", "not run, because other code of this submission ended the process or used up the submission's time"
    )
)


@dataclass(frozen=True)
class Ended:
    """How a child process ended (see ``wire.messages``), and whether the child had loaded the source."""

    loaded: bool
    how: str


class Children:
    """The child processes that answer the requests to one file of a submission. Only one child runs at a time.

    A request takes this way: ``answer`` -> ``_one_child`` -> ``Worker.trace`` -> ``keep`` (in the keeper process) ->
    ``child.answer`` -> ``answering.answer`` (both in the child), and then back in ``_one_child`` -> ``reply_of``.

    Args:
        tracer: the worker that starts the children.
        asks: all requests to the file. Requests with hidden inputs come last.
        seconds: seconds that are left for all children: CPU seconds and idle seconds together.
        hung: how many exercises of the submission have reached a time limit so far.
        while_asleep: returns a context manager, which is open from the first sleep of a child to the end of this child.
    """

    def __init__(
        self, tracer: Worker, limits: Limits, source: Source, asks: Sequence[Ask], seconds: float, hung: int,
        while_asleep: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:  # fmt: skip
        self._while_asleep = while_asleep
        self._tracer, self._limits, self._source, self._asks, self._seconds = tracer, limits, source, asks, seconds
        self._replies: dict[int, Reply] = {}
        self._notes: list[str] = []
        self._cpu = 0.0
        self._suspect, self._failed_loads, self._hung = -1, 0, hung

    def answer(self) -> Replies:
        """Return a reply for each request. Requests with hidden inputs are sent after all other requests are answered.

        - If a child ends before it has answered a request, a new child gets only this request. If the new child also
          ends too early, the request gets a fault.
        - If two children end while they load the file, all requests get a fault.
        - Code that reaches a time limit is not tried again. A function over its limit of CPU time gets a fault, and the
          child continues. If the keeper must end the child for time, no further function of the exercise runs. If this
          happens while the file loads, no function of the file runs.
        - After the keeper ended a child for time, later children of the submission may be idle for only IDLE_SECONDS.
        - After MAX_RESTARTS children, or if the time is used up, all requests that are left get the reply GIVEN_UP.
        """
        over = time.monotonic() + backstop(self._limits.total_seconds)
        for _ in range(MAX_RESTARTS):
            left = [i for i in range(len(self._asks)) if i not in self._replies]
            if not left or self._cpu > self._seconds or time.monotonic() > over:
                break
            chosen = [self._suspect] if self._suspect in left else left
            ended = self._one_child(chosen)
            if unanswered := [i for i in chosen if i not in self._replies]:
                self._blame(unanswered, ended)
        each = tuple(self._replies.get(i, GIVEN_UP) for i in range(len(self._asks)))
        files = tuple(c.name for c in self._source.chunks)
        return Replies(each, tuple(self._notes), self._cpu, files, self._source, self._hung)

    def _blame(self, left: Sequence[int], ended: Ended) -> None:
        """Record faults for requests that are not tried again. ``left``: the requests that the child did not answer."""
        seconds, late = self._limits.trace_seconds, ended.how in (TIMEOUT, IDLE)
        self._hung += late
        if not ended.loaded:
            self._failed_loads += 2 if late else 1
            if self._failed_loads >= 2:
                fault = ended_fault(ended.how, "the loading of your file", seconds)
                self._replies |= dict.fromkeys(left, Reply(fault))
        elif late:
            self._give_up_after(self._asks[left[0]], ended_fault(ended.how, "it", seconds))
        elif left[0] == self._suspect:
            self._replies[self._suspect] = Reply(ended_fault(ended.how, "it", seconds))
        else:
            self._suspect = left[0]

    def _give_up_after(self, hung: Ask, fault: Fault) -> None:
        """Record faults for a function that reached its time limit, and for the other functions of its exercise."""
        other = replace(
            fault, message=f"not run, because {hung.task} of this exercise{fault.message.removeprefix('it')}"
        )
        for i, ask in enumerate(self._asks):
            if i not in self._replies and ask.exercise == hung.exercise:
                self._replies[i] = Reply(fault if ask.task == hung.task else other)

    def _request(self, ask: Ask) -> TracerAsk:
        request = ask.for_tracer([])
        request["after"] = dict(self._source.ends).get(ask.exercise)
        return request

    def _one_child(self, chosen: Sequence[int]) -> Ended:
        """Send the chosen requests (numbers in the list of all requests) to one child, and keep the child's replies."""
        started, loaded, left = False, False, list(chosen)
        try:
            with closing(self._frames(chosen)) as found:
                for frame, blobs in found:
                    if frame["from"] == "worker":
                        self._cpu += float(frame.get("cpu", 0))
                        # If the child never started, the worker is the cause.
                        return Ended(loaded, str(frame.get("end", GARBAGE)) if started else WORKER_ENDED)
                    # The keeper process, which starts the child, names the kind of the message in "taken". Do not guess
                    # the kind from the message's keys, because learner code may forge a message with the keys of
                    # several kinds. The keeper accepts each kind once, and in order. Otherwise learner code could send
                    # an answer as the message "loaded", and put hidden inputs into that message's notes.
                    body, taken = frame["body"], frame["taken"]
                    if taken == "started":
                        started = True
                    elif taken == "loaded":
                        loaded = True
                        self._notes = self._notes or load_notes(body.get("faults"))
                    else:
                        i = left.pop(0)
                        self._replies[i] = reply_of(self._asks[i], body, blobs)
        except WorkerDied:
            return Ended(loaded, WORKER_ENDED)
        return Ended(loaded, GARBAGE)

    def _frames(self, chosen: Sequence[int]) -> Generator[tuple[TraceFrame, list[bytes]], None, None]:
        """Start a child for the chosen requests, and yield the messages (frames) that the child sends.

        When the child first sleeps, the grader may begin with one more submission (``Turns.asleep``).
        """
        source: SourceCode = {"name": self._source.name, "chunks": [[c.name, c.text] for c in self._source.chunks]}
        asked = [self._asks[i] for i in chosen]
        shown, hidden = ([self._request(a) for a in asked if a.hidden_inputs is late] for late in (False, True))
        with ExitStack() as until_end:
            for frame, blobs in self._tracer.trace(source, shown, hidden, IDLE_SECONDS if self._hung else None):
                if frame.get("asleep"):
                    until_end.enter_context(self._while_asleep())
                else:
                    yield frame, blobs


class Workers:
    """One tracer, for one submission at a time, and the runners that all submissions share.

    Attributes:
        limits: the limits of one submission.
        store: a cache that keeps results from one run of the grader to the next.
        devices: devices that programs run on in addition to the simulated devices. The checks must pass with the
            results from both kinds of devices.
        while_asleep: returns a context manager (``Turns.asleep``) for the time after the first sleep of a child, and
            for the time in which a worker is set aside.
    """

    def __init__(
        self, course: Course, tier: str, runners: Sequence[Runner] = (), devices: Devices | None = None,
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self.limits, self.devices, self.store = course.config.limits, devices, store or Store(Keys(None))
        self.tracer = Worker("trace", tier, course.config.devices, course.config.limits)
        self.runners = runners or [Runner(course, tier)]
        self.while_asleep: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def processes(self) -> list[Worker]:
        return [self.tracer, *(worker for runner in self.runners for worker in runner.workers)]

    def with_runner(self, number: int) -> Workers:
        """Return a copy of these workers that uses only one of the runners, chosen by ``number``."""
        one = copy(self)
        one.runners = [self.runners[number % len(self.runners)]]
        return one

    def without_devices(self) -> Workers:
        """Return a copy of these workers that uses simulated devices only."""
        one = copy(self)
        one.devices = None
        return one

    def afresh(self) -> Workers:
        """Return a copy of these workers whose store (cache) makes every value anew."""
        one = copy(self)
        one.store = self.store.afresh()
        return one

    def close(self) -> None:
        """End all processes."""
        for worker in self.processes:
            worker.kill()

    def replies(self, source: Source, asks: Sequence[Ask], seconds: float, hung: int) -> Replies:
        """Return the replies of a source (a file or notebook), from confined child processes that run it.

        Args:
            asks: the requests. Requests with hidden inputs come last.
            seconds: seconds that the children may take: CPU seconds and idle seconds together.
            hung: how many exercises of the submission have reached a time limit so far.
        """
        return Children(self.tracer, self.limits, source, asks, seconds, hung, self.while_asleep).answer()

    def run(self, ask: Ask, request: CallAsk, program: bytes) -> RunReply:
        """Run a program on the inputs of a request. Raises WorkerDied."""
        return RunReply(*self._runner_of(ask).run(request, program, ask, self.while_asleep))

    def formula(self, request: FormulaText) -> Mapping[str, Any]:
        """Evaluate a formula, see ``common.formulas.answer``. Raises WorkerDied."""
        return self.runners[0].formula(request)

    def changed(self, ask: Ask, request: CallAsk, program: bytes, poison: list[Any]) -> Mapping[str, Any]:
        """Run a program with changed operations, and return how much its results change. Raises WorkerDied.

        ``poison``: the kind and the numbers of the operations, see ``runner.poison.moved``.
        """
        return self._runner_of(ask).run_or_try_again(request, program, ask, self.while_asleep, poison=poison)[0]

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
