"""Start worker processes, exchange requests and answers with workers, and kill workers."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from grader.sandbox import needs, processes
from grader.sandbox.allowance import backstop
from grader.sandbox.limits import Limits
from grader.sandbox.tiers import NO_EXTRA, Extra, environment
from grader.wire import frames
from grader.wire.limits import GONE_SECONDS, MAX_STDERR, START_SECONDS
from grader.wire.messages import (
    KILLED,
    TIMEOUT,
    CallAsk,
    FormulaRequest,
    FormulaText,
    FunctionAsk,
    LookRequest,
    OwnTestRequest,
    ParseRequest,
    SourceCode,
    TraceFrame,
    TracerAsk,
    TraceRequest,
)

STUCK = "may be stuck"
"""Part of the message that XLA writes when devices have waited for each other for ``WARN_SECONDS``."""


class WorkerDied(Exception):
    """The worker ended or stopped answering.

    Attributes:
        reason: timeout, died, or garbage (the answer was no valid frame).
        stderr: the end of the worker's standard error.
        phase: what the worker did last.
            ``starting``: it had no request yet.
            ``asked``: it had a request.
            ``traced``: it may have run learner code.
            ``compiling``, ``executing``: it compiled or executed a program.
            ``poisoning N``: it executed a program in which operation N returned replacement values.
        ours: False if the learner's program is known to be at fault; else True.
        out_of_time: whether the worker used up its CPU time. If False, a busy machine may have caused a timeout.
        killed: whether the worker was killed from outside, for example by the kernel for lack of memory.
    """

    def __init__(self, reason: str, stderr: str = "", phase: str = "") -> None:
        super().__init__(reason)
        self.reason, self.stderr, self.phase, self.ours = reason, stderr, phase, True
        self.out_of_time = self.killed = False


class Worker:
    """Starts the processes of one role (trace, run or parse, see ``main``), one at a time, and talks to them.

    A request starts a process if none is running. If the process dies, the next request starts a new process.

    Args:
        devices: number of simulated devices.
        extra: access that the worker gets in addition to the access of its role.

    Attributes:
        ready: whether the process accepts requests.
    """

    def __init__(self, role: str, tier: str, devices: int, limits: Limits, extra: Extra = NO_EXTRA) -> None:
        self.role, self.tier, self.devices, self.limits, self.extra = role, tier, devices, limits, extra
        self.ready = self._retired = False  # ``ready``: whether the process accepts requests
        self._phase = "starting"
        self._begun: processes.WorkerProcess | None = None
        self._heard = 0  # size of the standard error, in bytes, when the current request was sent

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The process; None if it is not running."""
        return self._begun.process if self._begun else None

    @property
    def scratch(self) -> str:
        """The folder that the process may write to; '' if no process runs."""
        return self._begun.scratch if self._begun else ""

    def start(self) -> None:
        """Start the process without waiting until it is ready, so that several workers start in parallel.

        Raises WorkerDied if ``retire`` was called.
        """
        if self._begun is None and not self._retired:
            self._begun = processes.take(self.role, self.tier, self.devices, self.limits, self.extra)
            self.ready, self._heard, self._phase = False, 0, "starting"
        if self._retired:  # checked after the start, because ``retire`` misses a process that is starting
            self.kill()
            raise WorkerDied("died", "it was retired", "starting")

    def await_ready(self) -> None:
        """Start the process if it is not running, and wait until it accepts requests."""
        self.start()
        if not self.ready:
            header, _ = self.receive(time.monotonic() + START_SECONDS)
            if not header.get("ready"):
                raise WorkerDied("garbage", self.last_words(), self._phase)
            self.ready = True
        self._phase = "asked"

    def trace(
        self,
        source: SourceCode,
        asks: Sequence[TracerAsk],
        hidden: Sequence[TracerAsk] = (),
        total_seconds: float | None = None,
        idle_seconds: float | None = None,
    ) -> Iterator[tuple[TraceFrame, list[bytes]]]:
        """Start a child process for learner code, and yield the child's frames and the keeper's frames.

        The ``body`` of a child's frame is not trusted, and neither are its blobs. The keeper's last frame has ``end``.

        Args:
            source: the learner's code.
            asks: requests that the child gets after loading the source.
            hidden: requests with hidden inputs, which the child gets after answering all of ``asks``.
            total_seconds: limit on the child's CPU seconds and idle seconds; by default ``limits.total_seconds``.
            idle_seconds: limit on the child's idle seconds; by default only the total is limited.
        """
        try:
            yield from self._frames(source, asks, hidden, total_seconds or self.limits.total_seconds, idle_seconds)
        except WorkerDied as died:
            if died.phase != "traced" or not self.traces_own_test():
                raise
            # A new process has just answered the grader's test submission, so the machine is not at fault. The
            # learner's submission killed the old process.
            yield (
                {"from": "worker", "end": TIMEOUT if died.reason == "timeout" else KILLED, "cpu": 0.0},
                [],
            )

    def traces_own_test(self) -> bool:
        """Return whether a new process answers the grader's own test submission."""
        self.kill()
        source: SourceCode = {"name": "ours", "chunks": [["ours", "def go():\n    return 1"]]}
        ask: FunctionAsk = {"kind": "function", "task": "go", "cases": [{"dict": []}]}
        try:
            bodies = [
                header.get("body", {}) for header, _ in self._frames(source, [ask], (), self.limits.total_seconds)
            ]
        except WorkerDied:
            return False
        return any(body.get("values") == [{"value": 1}] for body in bodies)

    def _frames(
        self,
        source: SourceCode,
        asks: Sequence[TracerAsk],
        hidden: Sequence[TracerAsk],
        seconds: float,
        idle_seconds: float | None = None,
    ) -> Iterator[tuple[TraceFrame, list[bytes]]]:
        self.await_ready()
        request: TraceRequest = {
            "limits": self.limits.model_dump() | {"total_seconds": seconds, "idle_seconds": idle_seconds or seconds},
            "env": environment(self.devices),
            "scratch": self.scratch,
            "tier": self.tier,
            "packages": needs.packages(),
            "chunks": len(source["chunks"]),
            "counts": [len(asks), len(hidden)],
        }
        deadline = time.monotonic() + backstop(seconds) + START_SECONDS
        stages = [frames.pack({"asks": list(stage)}) for stage in (asks, hidden)]
        names, texts = zip(*source["chunks"], strict=True) if source["chunks"] else ((), ())
        # Source texts are binary parts of the frame. In the frame's JSON header, each byte could take six bytes, and
        # the texts could exceed the header's limit.
        packed = frames.pack({"name": source["name"], "chunks": names}, [t.encode("utf-8", "replace") for t in texts])
        self.send(b"!" + frames.pack(request, [packed, *stages]))
        while True:
            header, blobs = self.receive(deadline)
            if header.get("from") == "child":
                self._phase = "traced"  # the child sends its first frame before learner code runs
                header["body"], blobs = frames.read_frame(io.BytesIO(blobs[0]).read)
            # Kill before the yield, because the caller may stop at the yield.
            if "end" in header and not header.pop("clean"):
                self.kill()
            yield cast(TraceFrame, header), blobs
            if "end" in header:
                return

    def run_program(
        self, ask: CallAsk, program: bytes, inputs: list[list[Any]], wall: float = 0.0,
        stuck: Callable[[], None] | None = None, **more: Any,
    ) -> tuple[dict, list[bytes]]:  # fmt: skip
        """Run a program. Return the worker's answer, with the program's CPU seconds as ``cpu``, and the outputs' bytes.

        Args:
            ask: the request for the program. ``more`` has further fields of ``wire.messages.RunRequest``.
            program: the program's bytecode.
            wall: limit in seconds of wall time; 0 derives it from the limit of CPU time.
            stuck: a function to call about once a second while devices wait for each other, after ``WARN_SECONDS``.
        """
        packed = [[frames.pack_array(a) for a in one] for one in inputs]
        about = [[about for about, _ in one] for one in packed]
        header = {"ask": ask, "inputs": about, "seconds": self.limits.run_seconds} | more
        self.await_ready()
        self.send(b"!" + frames.pack(header, [program, *(data for one in packed for _, data in one)]))
        deadline = time.monotonic() + (wall or backstop(self.limits.run_seconds))
        while True:
            header, blobs = self.receive(deadline, stuck)
            if "phase" not in header:
                return header, blobs
            self._phase = header["phase"]

    def evaluate(self, request: FormulaText) -> dict[str, Any]:
        """Send a request about a formula, and return the answer. Raises WorkerDied."""
        header: FormulaRequest = {"formula": request, "seconds": self.limits.run_seconds}
        return self._exchange(header, [], backstop(self.limits.run_seconds))[0]

    def parse(self, request: ParseRequest, data: Sequence[bytes]) -> tuple[dict, list[bytes]]:
        """Ask a worker to parse submissions, and return its answer. ``request["seconds"]`` limits its CPU time."""
        return self._exchange(request, data, START_SECONDS + backstop(request["seconds"]))

    def look(self, joined: Sequence[Any] = ()) -> dict[str, Any]:
        """Return the devices that the worker finds. If it finds none, ``problem`` has the reason. Raises WorkerDied.

        Args:
            joined: if several processes share one mesh, the arguments of ``jax.distributed.initialize``: the
                coordinator's address, the number of processes, and this process's index.
        """
        header: LookRequest = {"look": True, "join": list(joined)}
        return self._exchange(header, [], START_SECONDS)[0].get("found", {})

    def runs_own_test(self) -> bool:
        """Return whether a new process runs the grader's own test program, on all devices."""
        self.kill()
        header: OwnTestRequest = {"ours": True, "seconds": self.limits.run_seconds}
        try:
            return self._exchange(header, [], backstop(self.limits.run_seconds))[0].get("runs") is True
        except WorkerDied:
            return False

    def _exchange(self, header: Mapping[str, Any], blobs: Sequence[bytes], wall: float) -> tuple[dict, list[bytes]]:
        """Send a request, and return the answer. ``wall``: limit in seconds of wall time. Raises WorkerDied."""
        self.await_ready()
        self.send(b"!" + frames.pack(header, [*blobs]))
        return self.receive(time.monotonic() + wall)

    # pipes

    def send(self, data: bytes) -> None:
        """Write to the worker's standard input. Raises WorkerDied."""
        assert self._begun is not None and self._begun.process.stdin is not None
        self._heard = os.fstat(self._begun.stderr.fileno()).st_size
        try:
            self._begun.process.stdin.write(data)
            self._begun.process.stdin.flush()
        except OSError:
            raise self._died("died", ended=True) from None

    def receive(self, deadline: float, stuck: Callable[[], None] | None = None) -> tuple[dict, list[bytes]]:
        """Return the worker's next frame. Raises WorkerDied if no valid frame arrives in time.

        Args:
            deadline: a time of ``time.monotonic``.
            stuck: a function to call about once a second after XLA has reported that devices wait for each other.
        """
        assert self.process is not None and self.process.stdout is not None
        fd = self.process.stdout.fileno()

        def read(n: int) -> bytes:
            parts, have = [], 0
            while have < n:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                if not select.select([fd], [], [], min(left, 1.0) if stuck else left)[0]:
                    if stuck and STUCK in self.last_words():
                        stuck()
                    continue
                part = os.read(fd, min(n - have, 1 << 20))
                if not part:
                    raise EOFError
                parts.append(part)
                have += len(part)
            return b"".join(parts)

        try:
            return frames.read_frame(read)
        except (TimeoutError, EOFError, frames.BadFrame) as error:
            kinds = {TimeoutError: "timeout", EOFError: "died", frames.BadFrame: "garbage"}
            raise self._died(kinds[type(error)], ended=isinstance(error, EOFError)) from None

    def _died(self, reason: str, *, ended: bool) -> WorkerDied:
        """End the process. Return the exception to raise. ``ended``: True to let the process first end by itself."""
        assert self.process is not None
        if ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GONE_SECONDS)
        words, ended_by = self.last_words(), self.kill()
        died = WorkerDied("timeout" if ended_by == signal.SIGPROF else reason, words, self._phase)
        died.out_of_time, died.killed = ended_by == signal.SIGPROF, ended and ended_by == signal.SIGKILL
        return died

    def last_words(self) -> str:
        """Return the end of the worker's standard error since the last request."""
        if self._begun is None:
            return ""
        stderr = self._begun.stderr.fileno()
        size = os.fstat(stderr).st_size
        start = max(self._heard, size - MAX_STDERR)  # skip output about earlier submissions
        return os.pread(stderr, MAX_STDERR, start).decode("utf-8", "replace")

    def kill(self) -> int:
        """End the process with its descendants. The next request starts a new process.

        Returns the number of the signal that ended the process, else 0. SIGPROF means that CPU time ran out.
        """
        begun, self._begun = self._begun, None
        if begun is None:
            return 0
        code = processes.end(begun)
        return -code if code < 0 else max(0, code - 128)  # launchers return 128 + the signal's number

    def retire(self) -> None:
        """End the process from another thread, permanently. The thread that uses the worker gets WorkerDied."""
        self._retired = True
        if (begun := self._begun) is not None:
            processes.stop(begun)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
