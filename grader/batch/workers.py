"""The processes that one submission is graded with: one that traces, and those that run programs."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from copy import copy
from threading import Lock
from typing import Any

from grader.batch.backends import Compiler, Devices
from grader.batch.findings import Ran, Replies
from grader.batch.keys import Keys
from grader.batch.remembering import Store
from grader.batch.running import run
from grader.batch.tracing import Children, Cost, requests_of, trace
from grader.course.loading import Course
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.judging.seen import Answered
from grader.sandbox.worker import Worker, WorkerDied


class Runner:
    """A worker that runs programs, one at a time. All submissions share it: it remembers what equal programs did.

    Args:
        compiler: compiles every program that was not refused, beside running it.
    """

    def __init__(self, course: Course, tier: str, compiler: Compiler | None = None) -> None:
        self.worker = Worker("run", tier, course.config.devices, course.config.limits)
        self.compiler = compiler
        self._lock = Lock()

    def run(self, request: dict, program: bytes, ask: Ask) -> tuple[dict, list[bytes]]:
        """Run a program; the answer of a compiler is in the header, ``compiled``. Raises WorkerDied."""
        header, shards = self.run_or_try_again(request, program, ask)
        return with_compiled(self.compiler, header, request, program, ask), shards

    def run_or_try_again(self, request: dict, program: bytes, ask: Ask, **more: Any) -> tuple[dict, list[bytes]]:
        """Run a program. If the worker dies or hangs, a fresh one tries once more.

        Args:
            more: of the request to the worker.

        Raises:
            WorkerDied: it did so twice. Then ``ours`` says whether a fresh worker cannot run a program of ours either.
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


def with_compiled(
    compiler: Compiler | None, header: dict[str, Any], request: Mapping[str, Any], program: bytes, ask: Ask
) -> dict[str, Any]:
    """Return the header with what a compiler makes of a program that was not refused."""
    if compiler is None or "fault" in header or "broken" in header:
        return header
    made = compiler.compiled(request, program, ask)
    return header if made is None else header | {"compiled": (made, str(compiler.on))}


class Workers:
    """A tracer of its own and runners that all share, used by one submission at a time.

    Attributes:
        limits: of one submission.
        store: what is remembered over runs.
        devices: run programs beside the simulated devices, for their values.
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
        """Return the same tracer with one of the runners."""
        one = copy(self)
        one.runners = self.runners[number : number + 1]
        return one

    def without_devices(self) -> Workers:
        """Return the same workers with simulated devices only."""
        one = copy(self)
        one.devices = None
        return one

    def afresh(self) -> Workers:
        """Return the same workers, which look nothing up."""
        one = copy(self)
        one.store = self.store.afresh()
        return one

    def close(self) -> None:
        """End all processes."""
        for worker in self.processes:
            worker.kill()

    def collect(self, source: Source, asks: Sequence[Ask]) -> tuple[list[Answered], list[str]]:
        """Trace one source and run its programs; return what each ask came to, and what stopped it while loading."""
        cost = Cost(self.limits)
        traced = trace(self, source, asks, cost)
        return run(self, traced, asks, cost), list(traced.notes)

    # what the stages ask

    def replies(self, source: Source, asks: Sequence[Ask], seconds: float) -> Replies:
        """Return the replies of confined children.

        Args:
            asks: secret ones come last.
            seconds: CPU time that they may take.
        """
        return Children(self.tracer, self.limits, source, seconds).answer(requests_of(source, asks))

    def ran(self, ask: Ask, request: dict[str, Any], program: bytes) -> Ran:
        """Run a program on the inputs of an ask. Raises WorkerDied."""
        return Ran(*self._runner_of(ask).run(request, program, ask))

    def changed(self, ask: Ask, request: dict[str, Any], program: bytes, poison: list[Any]) -> Mapping[str, Any]:
        """Run a program with some of its operations changed. Raises WorkerDied."""
        return self._runner_of(ask).run_or_try_again(request, program, ask, poison=poison)[0]

    def _runner_of(self, ask: Ask) -> Runner:
        """Return one runner for equal asks of all submissions, so that equal programs meet."""
        return self.runners[zlib.crc32(f"{ask.task} {dict(ask.mesh)}".encode()) % len(self.runners)]
