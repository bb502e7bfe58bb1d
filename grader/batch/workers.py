"""Asks in, findings out: through a worker that traces and those that run programs.

Where a worker died twice over learners' work, a program of ours is tried: only if that fares no better is it our fault.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from grader.batch.backends import Compiler, Devices, stuck, unseen
from grader.batch.findings import Reply, decoded, ended_fault, load_notes, reply_of, run_fault
from grader.batch.memory import Digest, Forgotten, Memory, Recalled, digest_of
from grader.batch.poison import Poisoned
from grader.common.observation import Fault, Observation
from grader.course.loading import Course
from grader.exercise import Call
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.judging.seen import Answered, Finding
from grader.sandbox.allowance import backstop
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.limits import MAX_RESTARTS


class Runner:
    """A worker that runs programs, one at a time. All share it: it remembers what equal programs did.

    Args:
        compiler: what it shows every program that was not refused, beside running it.
    """

    def __init__(self, course: Course, tier: str, compiler: Compiler | None = None) -> None:
        self.worker = Worker("run", tier, course.config.devices, course.config.limits)
        self.compiler = compiler
        self._lock = Lock()

    def run(self, request: dict, program: bytes, ask: Ask) -> tuple[dict, list[bytes]]:
        """Run a program; where there is a compiler its answer is in the header, ``compiled``. Raises WorkerDied."""
        header, shards = self.run_or_try_again(request, program, ask)
        if self.compiler is None or "fault" in header or "broken" in header:
            return header, shards
        made = self.compiler.compiled(request, program, ask)
        return (header if made is None else header | {"compiled": (made, str(self.compiler.on))}), shards

    def run_or_try_again(self, request: dict, program: bytes, ask: Ask, **more: Any) -> tuple[dict, list[bytes]]:
        """Run a program; one over which the worker dies or hangs gets one more chance, in a fresh one.

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


@dataclass
class Spent:
    """CPU seconds that one submission has cost, all its files together. Any thread may add to them."""

    tracing: float = 0.0
    running: float = 0.0
    lock: Lock = field(default_factory=Lock, repr=False)

    def on_tracing(self, seconds: float) -> None:
        with self.lock:
            self.tracing += seconds

    def on_running(self, seconds: float) -> None:
        with self.lock:
            self.running += seconds


@dataclass(frozen=True)
class Collected:
    """What all that was asked of a source came to; ``came_to``: by ask, as far as keys go; None: it is not remembered."""

    answered: list[Answered]
    notes: list[str]
    came_to: Mapping[Ask, bytes] | None = None


class Workers:
    """A tracer of its own and runners that all share, used by one submission at a time.

    ``devices``: those that programs are run on beside the simulated ones, for their values. ``memory``: what is known of
    earlier runs.
    """

    def __init__(
        self, course: Course, tier: str, runners: Sequence[Runner] = (), devices: Devices | None = None,
        memory: Memory | None = None,
    ) -> None:  # fmt: skip
        self.limits, self.devices, self.memory = course.config.limits, devices, memory
        self.tracer = Worker("trace", tier, course.config.devices, course.config.limits)
        self.runners = runners or [Runner(course, tier)]

    @property
    def processes(self) -> list[Worker]:
        return [self.tracer, *(r.worker for r in self.runners)]

    def with_runner(self, number: int) -> Workers:
        """The same tracer, with one of the runners for all that is asked."""
        one = copy(self)
        one.runners = [self.runners[number]]
        return one

    def without_devices(self) -> Workers:
        """The same, where simulated devices will do."""
        one = copy(self)
        one.devices = None
        return one

    def close(self) -> None:
        for worker in self.processes:
            worker.kill()

    def collect(self, source: Source, asks: list[Ask], spent: Spent | None = None) -> tuple[list[Answered], list[str]]:
        """Ask everything of one source; also what stopped it while loading, as notes.

        ``spent`` is what the submission's other sources have cost: the limits are on all of it.

        Only the arguments of secret cases go to learner code late, when all that is reported of it has come in; a secret ask of a
        call is answered by the program that the open one came to.
        """
        spent = spent or Spent()
        found = self.collected(source, asks, spent, self.recall(source, asks, spent))
        return found.answered, found.notes

    def collected(
        self, source: Source, asks: list[Ask], spent: Spent, recalled: Recalled | None = None, *, fresh: bool = False
    ) -> Collected:
        """The same, with what was remembered of it, and what it comes to as far as keys go.

        Args:
            fresh: nothing that is remembered takes part.
        """
        if recalled is not None:
            with suppress(Forgotten):
                return self._collect(source, asks, spent, recalled)
        return self._collect(source, asks, spent, fresh=fresh)

    def recall(self, source: Source, asks: list[Ask], spent: Spent) -> Recalled | None:
        """What the source was traced to before; None where it must be traced, or there is no time left for that."""
        if self.memory is None or spent.tracing > self.limits.total_seconds:
            return None
        return self.memory.recall(source, asks, traced_of(asks))

    def _collect(
        self, source: Source, asks: list[Ask], spent: Spent, recalled: Recalled | None = None, *, fresh: bool = False
    ) -> Collected:
        files = [c.name for c in source.chunks]
        traced = traced_of(asks)
        repeats: dict[tuple, list[Ask]] = {}
        for ask in asks:
            if ask.secret and isinstance(ask.of, Call):
                repeats.setdefault((ask.exercise, ask.program), []).append(ask)
        with ThreadPoolExecutor(1) as pool:  # programs run while the next ones are traced
            runs: dict[int, Future[dict[Ask, Finding]]] = {}
            keys = self.memory.asked(source, asks, traced).inputs if self.memory else {}
            runs_of = Runs(self, files, spent, keys, fresh=fresh)

            def on_reply(i: int, reply: Reply) -> None:
                if not isinstance(reply, Fault):
                    again = repeats.get((traced[i].exercise, traced[i].program), [])
                    runs[i] = pool.submit(runs_of.findings, [traced[i], *again], *reply)

            if recalled is not None:
                replies, notes, came_to = recalled.replies, recalled.notes, recalled.came_to
                for i, reply in enumerate(replies):
                    on_reply(i, reply)
            else:
                ends = dict(source.ends)
                requests = [a.for_tracer(files) | {"after": ends.get(a.exercise)} for a in traced]
                replies, notes, cpu = self._trace(source, requests, _open(traced), on_reply, spent)
                came_to = self.memory.keep(source, asks, traced, replies, notes, cpu) if self.memory else None
            found: dict[Ask, Finding] = {}
            for i, (ask, reply) in enumerate(zip(traced, replies, strict=True)):
                if isinstance(reply, Fault):
                    found[ask] = reply
                else:
                    found |= runs[i].result()
            spent.on_tracing(recalled.cpu if recalled else 0.0)
        for again in repeats.values():
            first = next(a for a in traced if (a.exercise, a.program) == (again[0].exercise, again[0].program))
            found = dict.fromkeys(again, found[first]) | found  # a fault stands for all
        return Collected([Answered(ask, found[ask]) for ask in asks], notes, came_to)

    def _trace(
        self, source: Source, asks: list[dict], first: int, on_reply: Callable[[int, Reply], None], spent: Spent
    ) -> tuple[list[Reply], list[str], float]:
        """A reply or a fault for every ask, notes, and the CPU seconds it took; those asks from number ``first`` on are secret. What ends the child is tried again, alone."""
        wire_source = {"name": source.name, "chunks": [[c.name, c.text] for c in source.chunks]}
        replies: dict[int, Reply] = {}
        notes: list[str] = []
        suspect, failed_loads, took = -1, 0, 0.0
        over = time.monotonic() + backstop(self.limits.total_seconds)
        for _ in range(MAX_RESTARTS):
            left = [i for i in range(len(asks)) if i not in replies]
            if not left or spent.tracing > self.limits.total_seconds or time.monotonic() > over:
                break
            chosen = [suspect] if suspect in left else left
            loaded, ended, cpu = self._one_child(wire_source, asks, chosen, first, replies, notes, on_reply)
            spent.on_tracing(cpu)
            took += cpu
            left = [i for i in chosen if i not in replies]
            if not left:
                continue
            if not loaded:
                failed_loads += 1
                if failed_loads == 2:
                    fault = ended_fault(ended, "your file, while it was loaded,", self.limits.trace_seconds)
                    replies |= dict.fromkeys(left, fault)
            elif left[0] == suspect:
                replies[suspect] = ended_fault(ended, "it", self.limits.trace_seconds)
            else:
                suspect = left[0]
        given_up = Fault("crashed", "not asked: other work of this submission ended the process or used up its time")
        return [replies.get(i, given_up) for i in range(len(asks))], notes, took

    def _one_child(
        self,
        source: dict,
        asks: list[dict],
        chosen: list[int],
        first: int,
        replies: dict[int, Reply],
        notes: list[str],
        on_reply: Callable[[int, Reply], None],
    ) -> tuple[bool, str, float]:
        """Run one child over the chosen asks; fills ``replies``. Returns whether it loaded, how it ended, its CPU seconds."""
        started, loaded, expected = False, False, 0
        shown, secret = ([asks[i] for i in chosen if (i >= first) == late] for late in (False, True))
        try:
            for frame, blobs in self.tracer.trace(source, shown, secret):
                if frame.get("from") == "worker":
                    ended = str(frame.get("end", "garbage")) if started else "worker"
                    return loaded, ended, float(frame.get("cpu", 0))
                body = frame.get("body", {})
                if body.get("started"):
                    started = True
                elif body.get("loaded") and not loaded:  # what it says later, it may say knowing secret cases
                    loaded = True
                    if not notes:
                        notes += load_notes(body.get("faults"))
                elif body.get("number") == expected and expected < len(chosen):  # each ask once, in order
                    replies[chosen[expected]] = reply = reply_of(body, blobs)
                    on_reply(chosen[expected], reply)
                    expected += 1
        except WorkerDied:
            return loaded, "worker", 0.0
        return loaded, "garbage", 0.0

    def runner_of(self, ask: Ask) -> Runner:
        """The same for the same ask of anybody, so that equal programs meet."""
        return self.runners[zlib.crc32(f"{ask.task} {dict(ask.mesh)}".encode()) % len(self.runners)]


class Runs:
    """The programs of one source: what hangs is not tried again and again."""

    def __init__(
        self, workers: Workers, files: list[str], spent: Spent, keys: Mapping[Ask, bytes] | None = None,
        *, fresh: bool = False,
    ) -> None:  # fmt: skip
        """Nothing ran yet.

        Args:
            keys: of each ask, by which what programs come to is remembered; of others it is not.
            fresh: nothing that is remembered takes part.
        """
        self.workers, self.files, self.spent, self.keys, self.fresh = workers, files, spent, keys or {}, fresh
        self.hung: dict[tuple, Fault] = {}  # a task whose program hangs on one mesh is not run on the next
        self.stuck: dict[tuple, str] = {}  # the same on devices that are no simulated ones

    def findings(self, asks: list[Ask], body: dict, blobs: list[bytes]) -> dict[Ask, Finding]:
        """What one reply comes to for each of these asks; after a fault, the same for the rest."""
        found: dict[Ask, Finding] = {}
        before: Finding | None = None
        for ask in asks:
            known = before if isinstance(before, Fault) else self.hung.get((ask.exercise, ask.task, ask.secret))
            found[ask] = before = finding = known or self._one(ask, body, blobs, before)
            if isinstance(finding, Fault) and finding.kind == "timeout":
                self.hung[ask.exercise, ask.task, ask.secret] = finding
        return found

    def _one(self, ask: Ask, body: dict, blobs: list[bytes], before: Finding | None) -> Finding:
        limits = self.workers.limits
        if self.spent.running > limits.total_run_seconds:
            return Fault("timeout", f"all programs together did not finish within {limits.total_run_seconds:g} s")

        def run(program: bytes) -> tuple[dict, list[bytes]]:
            memory = self.workers.memory
            if memory is None or ask not in self.keys:
                return ran(program)
            digest = digest_of(program)
            if not self.fresh and (known := memory.ran(self.keys[ask], digest)) is not None:
                return known
            header, shards = ran(memory.program(digest) if isinstance(program, Digest) else program)
            memory.keep_run(self.keys[ask], digest, header, shards)
            return header, shards

        def ran(program: bytes) -> tuple[dict, list[bytes]]:
            header, shards = self.workers.runner_of(ask).run(ask.for_tracer(self.files), program, ask)
            self.spent.on_running(header.get("cpu", 0.0))
            return header, shards

        try:
            seen = decoded(ask, body, blobs, run, before if isinstance(before, Observation) else None)
            if isinstance(seen, Observation) and seen.outputs and seen.poison is None:
                seen = replace(seen, poison=self._poison(ask, seen, blobs[0]))
            devices = self.workers.devices
            if devices is None or not isinstance(seen, Observation):
                return seen
            return self._elsewhere(ask, seen, devices, blobs[0])
        except WorkerDied as died:
            self.spent.on_running(limits.run_seconds if died.reason == "timeout" else 0.0)
            return run_fault(died, limits.run_seconds)

    def _poison(self, ask: Ask, seen: Observation, program: bytes) -> Poisoned:
        """What shows which operations of a program matter; the same for all sets of inputs. Raises Forgotten."""
        memory, limits = self.workers.memory, self.workers.limits
        request, digest = ask.for_tracer(self.files), digest_of(program)
        code = memory.program(digest) if memory and isinstance(program, Digest) else program
        known = memory.poison(self.keys[ask], digest) if memory and ask in self.keys else None

        def moved(what: str, numbers: list[int]) -> dict[str, Any] | Fault:
            if self.spent.running > limits.total_run_seconds:
                return Fault("timeout", f"all programs together did not finish within {limits.total_run_seconds:g} s")
            try:
                runner = self.workers.runner_of(ask)
                header, _ = runner.run_or_try_again(request, code, ask, poison=[what, numbers])
            except WorkerDied as died:
                self.spent.on_running(limits.run_seconds if died.reason == "timeout" else 0.0)
                raise
            self.spent.on_running(header.get("cpu", 0.0))
            return header

        return Poisoned(seen, moved, limits.run_seconds, None if self.fresh else known, known)

    def _elsewhere(self, ask: Ask, seen: Observation, devices: Devices, program: bytes) -> Observation:
        """What other devices come to as well."""
        request, task = ask.for_tracer(self.files), (ask.exercise, ask.task)
        if seen.outputs and task in self.stuck:
            return replace(seen, elsewhere=[unseen(seen, self.stuck[task])])
        if seen.outputs:
            found = devices.outputs(ask, request, program, seen)
            if why := stuck(found):
                self.stuck[task] = why
            seen = replace(seen, elsewhere=found)
        return replace(seen, measured=devices.seconds(ask, request, program)) if devices.times else seen


def traced_of(asks: list[Ask]) -> list[Ask]:
    """Those that go to the tracer: not secret ones of calls, which repeat a program with other inputs."""
    return [a for a in asks if not (a.secret and isinstance(a.of, Call))]


def _open(asks: list[Ask]) -> int:
    """How many of these asks, which stand first, are no secret."""
    return sum(not ask.secret for ask in asks)
