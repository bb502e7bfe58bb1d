"""Asks in, findings out: through a pair of workers, or in this process for one's own notebook.

What comes back from the tracer is untrusted: every reply is checked for its kind, and a fault of theirs can never
claim to be one of ours. What cannot be read of the runner's, where no learner Python is, is our own fault. Where a worker
died twice over learners' work, something of ours is tried: only where that fares no better it is our fault.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any

from grader.common.observation import Collective, Fault, Interval, Observation, Outcome, Sharded
from grader.course.loading import Course
from grader.exercise import Call, Cases, Number
from grader.intake.submission import Source
from grader.judging.judge import Answered, Finding
from grader.judging.plan import Ask
from grader.sandbox.limits import backstop
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.frames import BadFrame, decode, unpack_array
from grader.wire.text import crash_reason, describe_load

MAX_RESTARTS = 8
NO_LIMIT = 3600.0
LEARNERS_FAULTS = ("missing", "raised", "syntax", "untraceable", "timeout", "memory", "refused", "compile", "crashed")
# What taking an untrusted reply apart can raise, besides what says so.
NOT_ONE = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, StopIteration, RecursionError, BadFrame,
)  # fmt: skip
Reply = Fault | tuple[dict[str, Any], list[bytes]]


class Runner:
    """A worker that runs programs, one at a time. Lanes share it: it remembers what equal programs did."""

    def __init__(self, course: Course, tier: str) -> None:
        self.worker = Worker("run", tier, course.config.devices, course.limits)
        self._lock = Lock()

    def run(self, request: dict, program: bytes, ask: Ask) -> tuple[dict, list[bytes]]:
        """Run a program; one over which the worker dies or hangs gets one more chance, in a fresh one.

        Raises:
            WorkerDied: it did so twice. Then ``ours`` says whether a fresh worker cannot run a program of ours either.
        """
        with self._lock:
            try:
                return self.worker.run(request, program, ask.arrays())
            except WorkerDied:
                pass
            try:
                return self.worker.run(request, program, ask.arrays())
            except WorkerDied as died:
                died.ours = died.reason != "timeout" and not self.worker.runs()
                raise


@dataclass
class Spent:
    """CPU seconds that one submission has cost, all its files together."""

    tracing: float = 0.0
    running: float = 0.0


class Lane:
    """A tracer of its own and the runners of all lanes, used by one submission at a time."""

    def __init__(self, course: Course, tier: str, runners: Sequence[Runner] = ()) -> None:
        self.limits = course.limits
        self.tracer = Worker("trace", tier, course.config.devices, course.limits)
        self.runners = runners or [Runner(course, tier)]

    @property
    def workers(self) -> list[Worker]:
        return [self.tracer, *(r.worker for r in self.runners)]

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()

    def collect(self, source: Source, asks: list[Ask], spent: Spent | None = None) -> tuple[list[Answered], list[str]]:
        """Ask everything of one source; also what stopped it while loading, as notes.

        ``spent`` is what the submission's other sources have cost: the limits are on all of it.

        Only the arguments of secret cases go to learner code late, when all that is told of it is in; a secret ask of a
        call is answered by the program that the open one came to.
        """
        files = [c.name for c in source.chunks]
        traced = [a for a in asks if not (a.secret and isinstance(a.of, Call))]
        repeats: dict[tuple, list[Ask]] = {}
        for ask in asks:
            if ask.secret and isinstance(ask.of, Call):
                repeats.setdefault(ask.program, []).append(ask)
        with ThreadPoolExecutor(1) as pool:  # programs run while the next ones are traced
            runs: dict[int, Future[dict[Ask, Finding]]] = {}
            spent = spent or Spent()
            runner = _Runs(self, files, spent)

            def on_reply(i: int, reply: Reply) -> None:
                if not isinstance(reply, Fault):
                    again = repeats.get(traced[i].program, []) if isinstance(traced[i].of, Call) else []
                    runs[i] = pool.submit(runner.run, [traced[i], *again], *reply)

            ends = dict(source.ends)
            requests = [a.for_tracer(files) | {"after": ends.get(a.exercise)} for a in traced]
            replies, notes = self._trace(source, requests, _open(traced), on_reply, spent)
            found: dict[Ask, Finding] = {}
            for i, (ask, reply) in enumerate(zip(traced, replies, strict=True)):
                if isinstance(reply, Fault):
                    found[ask] = reply
                else:
                    found |= runs[i].result()
        for again in repeats.values():
            first = next(a for a in traced if isinstance(a.of, Call) and a.program == again[0].program)
            found = dict.fromkeys(again, found[first]) | found  # a fault stands for all
        return [Answered(ask, found[ask]) for ask in asks], notes

    def _trace(
        self, source: Source, asks: list[dict], first: int, on_reply: Callable[[int, Reply], None], spent: Spent
    ) -> tuple[list[Reply], list[str]]:
        """A reply or a fault for every ask; those from number ``first`` on are secret. What ends the child is tried again, alone."""
        wire_source = {"name": source.name, "chunks": [[c.name, c.text] for c in source.chunks]}
        replies: dict[int, Reply] = {}
        notes: list[str] = []
        suspect, failed_loads = -1, 0
        over = time.monotonic() + backstop(self.limits.total_seconds)
        for _ in range(MAX_RESTARTS):
            left = [i for i in range(len(asks)) if i not in replies]
            if not left or spent.tracing > self.limits.total_seconds or time.monotonic() > over:
                break
            chosen = [suspect] if suspect in left else left
            loaded, ended, cpu = self._one_child(wire_source, asks, chosen, first, replies, notes, on_reply)
            spent.tracing += cpu
            left = [i for i in chosen if i not in replies]
            if not left:
                continue
            if not loaded:
                failed_loads += 1
                if failed_loads == 2:
                    told = _ended(ended, "your file, while it was loaded,", self.limits.trace_seconds)
                    replies |= dict.fromkeys(left, told)
            elif left[0] == suspect:
                replies[suspect] = _ended(ended, "it", self.limits.trace_seconds)
            else:
                suspect = left[0]
        given_up = Fault("crashed", "not asked: other work of this submission ended the process or used up its time")
        return [replies.get(i, given_up) for i in range(len(asks))], notes

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
                        notes += _load_notes(body.get("faults"))
                elif body.get("number") == expected and expected < len(chosen):  # each ask once, in order
                    replies[chosen[expected]] = reply = _reply(body, blobs)
                    on_reply(chosen[expected], reply)
                    expected += 1
        except WorkerDied:
            return loaded, "worker", 0.0
        return loaded, "garbage", 0.0

    def runner_of(self, ask: Ask) -> Runner:
        """The same for the same ask of anybody, so that equal programs meet."""
        return self.runners[zlib.crc32(f"{ask.task} {dict(ask.mesh)}".encode()) % len(self.runners)]


class _Runs:
    """The programs of one source: what hangs is not tried again and again."""

    def __init__(self, lane: Lane, files: list[str], spent: Spent) -> None:
        self.lane, self.files, self.spent = lane, files, spent
        self.hung: dict[tuple[str, bool], Fault] = {}  # a task whose program hangs on one mesh is not run on the next

    def run(self, asks: list[Ask], body: dict, blobs: list[bytes]) -> dict[Ask, Finding]:
        """What one reply comes to for each of these asks; after a fault, the same for the rest."""
        found: dict[Ask, Finding] = {}
        for ask in asks:
            fault = next((f for f in found.values() if isinstance(f, Fault)), None)
            found[ask] = fault or self.hung.get((ask.task, ask.secret)) or self._one(ask, body, blobs)
            finding = found[ask]
            if isinstance(finding, Fault) and finding.kind == "timeout":
                self.hung[ask.task, ask.secret] = finding
        return found

    def _one(self, ask: Ask, body: dict, blobs: list[bytes]) -> Finding:
        limits = self.lane.limits
        if self.spent.running > limits.total_run_seconds:
            return Fault("timeout", f"all programs together did not finish within {limits.total_run_seconds:g} s")

        def run(program: bytes) -> tuple[dict, list[bytes]]:
            header, shards = self.lane.runner_of(ask).run(ask.for_tracer(self.files), program, ask)
            self.spent.running += header.get("cpu", 0.0)
            return header, shards

        try:
            return _decoded(ask, body, blobs, run)
        except WorkerDied as died:
            self.spent.running += limits.run_seconds if died.reason == "timeout" else 0.0
            return _run_fault(died, limits.run_seconds)


def _open(asks: list[Ask]) -> int:
    """How many of these asks, which stand first, are no secret."""
    return sum(not ask.secret for ask in asks)


class Here:
    """Asks answered in this very process, for one's own notebook: no limits, no isolation."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace

    def collect(self, source: Source, asks: list[Ask], spent: Spent | None = None) -> tuple[list[Answered], list[str]]:
        """As ``Lane.collect``; a source without chunks stands for the notebook's own namespace."""
        from grader.learner import trace
        from grader.runner import run

        chunks = [[c.name, c.text] for c in source.chunks]
        program = trace.load({"name": source.name, "chunks": chunks}, NO_LIMIT)
        if not chunks:
            program.space.update(self.namespace)
            program.files = {f.__code__.co_filename: "" for f in self.namespace.values() if hasattr(f, "__code__")}
        files, answered = list(program.files), []
        for ask in asks:
            request = ask.for_tracer(files) | {"after": dict(source.ends).get(ask.exercise)}
            body, blobs = trace.answer(request, program, NO_LIMIT)
            finding = (
                _fault(body["fault"])
                if "fault" in body
                else _decoded(ask, body, blobs, lambda p, r=request, a=ask: run.run(r, p, a.arrays()))
            )
            answered.append(Answered(ask, finding))
        return answered, _load_notes(program.faults)


def _decoded(ask: Ask, body: dict, blobs: list[bytes], run: Callable[[bytes], tuple[dict, list[bytes]]]) -> Finding:
    """A reply as a finding; programs are run."""
    try:
        if isinstance(ask.of, Number):
            return [Outcome(value=_plain_raw(body["raw"]))]
        if isinstance(ask.of, Cases):
            return _outcomes(body["values"], len(ask.cases))
        program = blobs[0]
    except NOT_ONE:
        return Fault("refused", "the answer is not of the kind that was asked for")
    return _observation(ask, *run(program))


def _ended(how: str, what: str, seconds: float) -> Fault:
    if how == "worker":
        return Fault("broken", "the tracing process died twice; a person must look")
    if how == "timeout":
        return Fault("timeout", f"{what} did not finish within {seconds:g} s")
    told = {
        "flood": "sent back more than 16 MiB",
        "garbage": "sent back what nobody can read",
        "died of signal 9": "it was killed, as happens to what takes more memory than it is allowed",  # or kills itself
    }.get(how, how)
    return Fault("crashed", f"{what} ended the process: {told}")


def _run_fault(died: WorkerDied, seconds: float) -> Fault:
    """Whose it is that a program ended the worker twice: ours only where our own program does not run either."""
    if "rendezvous" in died.stderr.lower() or "stuck" in died.stderr.lower():
        return Fault(
            "timeout", "the devices waited for each other for ever: some of them never take part in a collective"
        )
    if died.reason == "timeout":
        return Fault("timeout", f"the program did not finish within {seconds:g} s, twice")
    told = crash_reason(died.stderr)
    what = "reading" if died.phase == "asked" else "running"
    reason = f"XLA ended the process twice while {what} this program{': ' + told if told else ''}"
    return Fault("broken", f"{reason}; it runs no program of ours either") if died.ours else Fault("crashed", reason)


def _load_notes(faults: Any) -> list[str]:
    """What stopped the source while it was loaded, one line each."""
    notes = []
    for fault in faults if isinstance(faults, list) else []:
        if isinstance(fault, dict) and {"chunk", "line", "message"} <= set(fault):
            notes.append(describe_load({k: fault.get(k) for k in ("chunk", "line", "message", "kind")})[:400])
    return notes[:5]


def _reply(body: dict, blobs: list[bytes]) -> Reply:
    fault = body.get("fault")
    return (body, blobs) if fault is None else _fault(fault)


def _fault(data: Any) -> Fault:
    """A fault from an untrusted process: never ``broken``, whatever it says."""
    if not isinstance(data, dict):
        return Fault("raised", "failed")
    line = data.get("line")
    return Fault(
        kind=data["kind"] if data.get("kind") in LEARNERS_FAULTS else "raised",
        message=str(data.get("message"))[:700],
        line=line if type(line) is int else None,
        file=str(data.get("file", ""))[:100],
        type=str(data.get("type", ""))[:100],
    )


def _plain_raw(raw: Any) -> Any:
    if isinstance(raw, dict):
        return {str(k): v for k, v in list(raw.items())[:4]}
    return raw if raw is None or isinstance(raw, bool | int | float | str) else str(raw)


def _outcomes(values: Any, count: int) -> list[Outcome]:
    if not isinstance(values, list) or len(values) != count:
        raise BadFrame("not one outcome per case")
    found = []
    for value in values:
        if "error" in value:
            found.append(_error_outcome(value))
        else:
            found.append(Outcome(value=decode(value["value"])))
    return found


def _error_outcome(value: dict) -> Outcome:
    line, kinds = value.get("line"), value.get("kinds", [])
    return Outcome(
        error=str(value["error"])[:100],
        kinds=tuple(str(k)[:100] for k in kinds[:20]) if isinstance(kinds, list) else (),
        message=str(value.get("message", ""))[:300],
        line=line if type(line) is int else None,
    )


def _observation(ask: Ask, header: dict, blobs: list[bytes]) -> Finding:
    """What the runner saw. The runner is ours: what cannot be read here is our fault, never the learner's."""
    if "fault" in header:
        return _fault(header["fault"])
    if "broken" in header:
        return Fault("broken", f"the grader failed while it ran this program: {str(header['broken'])[:400]}")
    try:
        seen = _seen(ask, header, blobs)
    except NOT_ONE as error:
        return Fault("broken", f"the grader cannot read its own answer: {type(error).__name__}: {error}")
    assert isinstance(ask.of, Call)
    if any(len(results) < len(ask.of.wrt) for results in seen.outputs):  # JAX gives each; who writes the bytes may not
        return Fault("refused", "the program does not give the gradients that were asked for")
    return seen


def _seen(ask: Ask, header: dict, blobs: list[bytes]) -> Observation:
    devices = math.prod(ask.mesh.values())
    rest = iter(blobs)
    outputs = []
    for run in header["outputs"]:
        arrays = []
        for about in run:
            slices = [tuple((int(a), int(b)) for a, b in device) for device in about["slices"]]
            shards = [
                unpack_array({"shape": [b - a for a, b in where], "dtype": about["dtype"]}, next(rest))
                for where in slices
            ]
            if len(slices) != devices:
                raise BadFrame("not one shard per device")
            arrays.append(Sharded(tuple(about["shape"]), shards[0].dtype, dict(ask.mesh), slices, shards))
        outputs.append(arrays)
    if len(outputs) != len(ask.inputs):
        raise BadFrame("not one output per run")
    collectives = [_collective(c) for c in header["collectives"]]
    numbers = int(header["memory"]), Interval.of(header["flops"]), Interval.of(header["dot_flops"])
    told = bool(header["typed"]), bool(header["mapped"]), str(header["program"])
    return Observation(outputs, collectives, *numbers, *told)


def _collective(data: dict[str, Any]) -> Collective:
    known: dict[str, Any] = {f.name: data[f.name] for f in fields(Collective) if f.name in data}
    known["axes"] = tuple(data["axes"])
    known["senders"] = None if data.get("senders") is None else tuple(data["senders"])
    known["path"] = tuple(tuple(map(int, branch)) for branch in data.get("path", ()))
    return Collective(**known)
