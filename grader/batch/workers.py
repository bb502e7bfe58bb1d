"""The worker processes that grade submissions, and the threads that grade in parallel.

``Workers`` are the processes that one submission uses: the *tracer*, which runs learner code and returns programs, and
the *runners*, which run the programs. ``Pool`` lends a set of workers to one submission at a time. The files of a
submission are graded one after another. An *ask* is one request to a submission.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from queue import LifoQueue
from threading import Lock
from typing import Any, Generic, TypeVar

from grader.batch.backends import Compiler, Devices
from grader.batch.findings import Ran, Replies, Reply, ended_fault, load_notes, reply_of
from grader.batch.remembering import Keys, Store
from grader.common.observation import Fault
from grader.course.config import Limits
from grader.course.loading import Course
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.sandbox.allowance import backstop
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.limits import IDLE_SECONDS, MAX_RESTARTS, PATIENCE

GIVEN_UP = Reply(Fault("crashed", "not run: other code of this submission ended the process or used up its time"))


class Runner:
    """A worker that runs programs, one at a time. Submissions share the worker, which caches results of programs.

    Args:
        compiler: also compiles every program that the worker does not refuse.
    """

    def __init__(self, course: Course, tier: str, compiler: Compiler | None = None) -> None:
        self.worker = Worker("run", tier, course.config.devices, course.config.limits)
        self.compiler = compiler
        self._lock = Lock()

    def run(self, request: dict, program: bytes, ask: Ask) -> tuple[dict, list[bytes]]:
        """Run a program. The header holds a compiler's answer as ``compiled``. Raises WorkerDied."""
        header, shards = self.run_or_try_again(request, program, ask)
        return with_compiled(self.compiler, header, request, program, ask), shards

    def run_or_try_again(self, request: dict, program: bytes, ask: Ask, **more: Any) -> tuple[dict, list[bytes]]:
        """Run a program. If the worker dies or hangs, a fresh worker tries once more.

        Args:
            more: additional fields of the request to the worker.

        Raises:
            WorkerDied: both tries failed. ``ours`` is True if a new worker cannot run the grader's own program either.
        """
        with self._lock:
            try:
                return self.worker.run_program(request, program, ask.arrays(), **more)
            except WorkerDied:
                pass
            try:
                return self.worker.run_program(request, program, ask.arrays(), **more)
            except WorkerDied as died:
                died.ours = died.reason != "timeout" and not self.worker.runs()
                raise

    def formula(self, request: dict[str, Any]) -> dict[str, Any]:
        """Evaluate a formula. Raises WorkerDied as ``run_or_try_again`` does."""
        with self._lock:
            try:
                return self.worker.evaluate(request)
            except WorkerDied:
                pass
            try:
                return self.worker.evaluate(request)
            except WorkerDied as died:
                died.ours = not self.worker.runs()
                raise


def with_compiled(
    compiler: Compiler | None, header: dict[str, Any], request: Mapping[str, Any], program: bytes, ask: Ask
) -> dict[str, Any]:
    """Return the header with the compiler's answer, unless the program did not run."""
    if compiler is None or "fault" in header or "broken" in header:
        return header
    made = compiler.compiled(request, program, ask)
    return header if made is None else header | {"compiled": (made, str(compiler.on))}


@dataclass(frozen=True)
class Ended:
    """The reason why a child ended (``how``), and whether it had loaded the source."""

    loaded: bool
    how: str


class Children:
    """The child processes that answer the asks to one source, one after another.

    Args:
        tracer: the worker that starts the children.
        asks: all asks to the source; secret asks come last.
        seconds: CPU time that is left for all children.
        hung: how many exercises of the submission have ended a child by a time limit so far.
    """

    def __init__(
        self, tracer: Worker, limits: Limits, source: Source, asks: Sequence[Ask], seconds: float, hung: int
    ) -> None:
        self._tracer, self._limits, self._source, self._asks, self._seconds = tracer, limits, source, asks, seconds
        self._replies: dict[int, Reply] = {}
        self._notes: list[str] = []
        self._cpu = 0.0
        self._suspect, self._failed_loads, self._hung = -1, 0, hung

    def answer(self) -> Replies:
        """Return a reply for each ask. Secret asks are sent after all public asks are answered.

        An ask that ends its child is tried once more, alone. If two children end while loading a source, the source is
        given up.
        Code that reaches a timeout is never tried again: a timeout while loading ends the source, and a timeout of a
        function ends the exercise. After PATIENCE exercises with a timeout, a child may be idle for only IDLE_SECONDS.
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
        """Add replies for asks that are not tried again. The child ended before it answered the first of ``left``."""
        seconds, late = self._limits.trace_seconds, ended.how in ("timeout", "idle")
        self._hung += late
        if not ended.loaded:
            self._failed_loads += 2 if late else 1
            if self._failed_loads >= 2:
                fault = ended_fault(ended.how, "your file, while it was loaded,", seconds)
                self._replies |= dict.fromkeys(left, Reply(fault))
        elif late:
            self._give_up_after(self._asks[left[0]], ended_fault(ended.how, "it", seconds))
        elif left[0] == self._suspect:
            self._replies[self._suspect] = Reply(ended_fault(ended.how, "it", seconds))
        else:
            self._suspect = left[0]

    def _give_up_after(self, hung: Ask, fault: Fault) -> None:
        """Add replies for a function that used up its time, and for the exercise's other unanswered functions."""
        other = replace(fault, message=f"not run: {hung.task} of this exercise{fault.message.removeprefix('it')}")
        for i, ask in enumerate(self._asks):
            if i not in self._replies and ask.exercise == hung.exercise:
                self._replies[i] = Reply(fault if ask.task == hung.task else other)

    def _request(self, ask: Ask) -> dict[str, Any]:
        """Return the request to a child for an ask."""
        return ask.for_tracer([]) | {"after": dict(self._source.ends).get(ask.exercise)}

    def _one_child(self, chosen: Sequence[int]) -> Ended:
        """Send the chosen asks to one child, and keep the child's replies."""
        started, loaded, left = False, False, list(chosen)
        try:
            for frame, blobs in self._frames(chosen):
                if frame.get("from") == "worker":
                    self._cpu += float(frame.get("cpu", 0))
                    return Ended(loaded, str(frame.get("end", "garbage")) if started else "worker")
                body = frame.get("body", {})
                if body.get("started"):
                    started = True
                elif body.get("loaded") and not loaded:  # a second, forged frame could reveal hidden cases
                    loaded = True
                    self._notes = self._notes or load_notes(body.get("faults"))
                elif left and body.get("number") == len(chosen) - len(left):  # accept each answer once, in order
                    i = left.pop(0)
                    self._replies[i] = reply_of(self._asks[i], body, blobs)
        except WorkerDied:
            return Ended(loaded, "worker")
        return Ended(loaded, "garbage")

    def _frames(self, chosen: Sequence[int]) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
        """Start a child for the chosen asks, and return the frames that the child sends."""
        source = {"name": self._source.name, "chunks": [[c.name, c.text] for c in self._source.chunks]}
        asked = [self._asks[i] for i in chosen]
        shown, secret = ([self._request(a) for a in asked if a.secret is late] for late in (False, True))
        return self._tracer.trace(source, shown, secret, IDLE_SECONDS if self._hung >= PATIENCE else None)


class Workers:
    """One tracer, for one submission at a time, and the runners that all submissions share.

    Attributes:
        limits: the limits of one submission.
        store: keeps results over runs of the grader.
        devices: run programs in addition to the simulated devices, to check the values on these devices too.
        processes: all workers.
    """

    def __init__(
        self, course: Course, tier: str, runners: Sequence[Runner] = (), devices: Devices | None = None,
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self.limits, self.devices, self.store = course.config.limits, devices, store or Store(Keys(None))
        self.tracer = Worker("trace", tier, course.config.devices, course.config.limits)
        self.runners = runners or [Runner(course, tier)]

    @property
    def processes(self) -> list[Worker]:
        return [self.tracer, *(r.worker for r in self.runners)]

    def with_runner(self, number: int) -> Workers:
        """Return these workers with only one of their runners."""
        one = copy(self)
        one.runners = self.runners[number : number + 1]
        return one

    def without_devices(self) -> Workers:
        """Return these workers with simulated devices only."""
        one = copy(self)
        one.devices = None
        return one

    def afresh(self) -> Workers:
        """Return these workers with a store that makes every value anew."""
        one = copy(self)
        one.store = self.store.afresh()
        return one

    def close(self) -> None:
        """End all processes."""
        for worker in self.processes:
            worker.kill()

    def replies(self, source: Source, asks: Sequence[Ask], seconds: float, hung: int) -> Replies:
        """Return the replies of confined children.

        Args:
            asks: secret asks come last.
            seconds: CPU time that the children may take.
            hung: how many exercises of the submission have ended a child by a time limit so far.
        """
        return Children(self.tracer, self.limits, source, asks, seconds, hung).answer()

    def ran(self, ask: Ask, request: dict[str, Any], program: bytes) -> Ran:
        """Run a program on the inputs of an ask. Raises WorkerDied."""
        return Ran(*self._runner_of(ask).run(request, program, ask))

    def formula(self, request: dict[str, Any]) -> dict[str, Any]:
        """Evaluate a formula, see ``common.formulas.answer``. Raises WorkerDied."""
        return self.runners[0].formula(request)

    def changed(self, ask: Ask, request: dict[str, Any], program: bytes, poison: list[Any]) -> Mapping[str, Any]:
        """Run a program with some of its operations changed. Raises WorkerDied."""
        return self._runner_of(ask).run_or_try_again(request, program, ask, poison=poison)[0]

    def _runner_of(self, ask: Ask) -> Runner:
        """Return the runner of an ask. Equal asks of all submissions use one runner, which caches equal programs."""
        return self.runners[zlib.crc32(f"{ask.task} {dict(ask.mesh)}".encode()) % len(self.runners)]


@contextmanager
def pool_of(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield a thread pool for the block. An exception drops queued work. An interruption leaves running work behind."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    except BaseException as end:
        pool.shutdown(wait=isinstance(end, Exception), cancel_futures=True)
        raise
    pool.shutdown()


SLOW = 40.0  # seconds until work on one name is reported as slow
AHEAD = 4  # queued submissions for each set of workers: more fill the memory, fewer leave workers idle

T = TypeVar("T")


class Pool(Generic[T]):
    """Sets of workers. Sets that are already running are lent first.

    Attributes:
        slow: called with a name and the elapsed seconds when the work has taken ``SLOW`` seconds, and again each time
            that the elapsed seconds have doubled.
    """

    def __init__(self, every: Sequence[Workers]) -> None:
        self.every = list(every)
        self.slow: Callable[[str, float], None] = lambda name, seconds: None
        self._free: LifoQueue[Workers] = LifoQueue()
        for workers in every:
            self._free.put(workers)

    @contextmanager
    def lent(self) -> Iterator[Workers]:
        """Wait for a free set of workers and hold it during the block."""
        workers = self._free.get()
        try:
            yield workers
        finally:
            self._free.put(workers)

    def each(self, names: Iterable[str], work: Callable[[str], T], done: Callable[[str, T | Exception], None]) -> None:
        """Call ``work`` for each name in a thread, and pass each result to ``done`` in this thread.

        Results are passed on as they arrive, in the order of the names if several arrive at once. If ``work`` raises an
        exception for one name, ``done`` gets the exception, and work on the other names continues.
        """
        left, running, began = iter(names), dict[Future[T], str](), dict[str, float]()

        def begin(name: str) -> T:
            began[name] = time.monotonic()
            return work(name)

        told = dict[str, float]()
        with pool_of(len(self.every)) as threads:
            while True:
                for name in islice(left, AHEAD * len(self.every) - len(running)):
                    running[threads.submit(begin, name)] = name
                if not running:
                    break
                wait(running, SLOW / 8, FIRST_COMPLETED)
                for name in running.values():
                    seconds = time.monotonic() - began.get(name, math.inf)
                    if seconds >= 2 * told.get(name, SLOW / 2):
                        told[name] = seconds
                        self.slow(name, seconds)
                # A list, because ``wait`` returns a set without order.
                for future in [one for one in running if one.done()]:
                    name, error = running.pop(future), future.exception()
                    done(name, error if isinstance(error, Exception) else future.result())
