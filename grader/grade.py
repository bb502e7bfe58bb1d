"""From a submission to its report: trace, run, judge, for one submission or a batch of them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import fields
from queue import SimpleQueue
from typing import Any

import grader
from grader import numbers, variants
from grader.build import reference_source
from grader.course import Course
from grader.exercise import Cases, Exercise, Misconception, Number
from grader.judge import Answered, Finding, judge_checks, matches, with_hint
from grader.observation import Collective, Fault, Observation, Outcome, Sharded
from grader.plan import Ask, plan
from grader.result import ExerciseReport, Report, Result
from grader.sandbox import Worker, WorkerDied
from grader.submission import Chunk, Source, Submission
from grader.wire import BadFrame, decode, unpack_array

PUBLIC_SEED = "public"
MAX_RESTARTS = 8


class Grader:
    """Holds the workers. ``lanes`` submissions are graded at a time, each by its own pair of workers.

    Args:
        course: what is graded against.
        tier: isolation of the workers, see ``sandbox``.
        lanes: pairs of workers.
    """

    def __init__(self, course: Course, tier: str, lanes: int = 1) -> None:
        self.course, self.tier, self.lanes = course, tier, lanes
        self._free: SimpleQueue[_Lane] = SimpleQueue()
        self._all = [_Lane(course, tier) for _ in range(lanes)]
        for lane in self._all:
            self._free.put(lane)
        self._known: dict[Any, list[Answered]] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *error: object) -> None:
        for lane in self._all:
            lane.close()

    def warm(self) -> None:
        """Start all workers without waiting for them."""
        for lane in self._all:
            lane.tracer.start()
            lane.runner.start()

    @contextmanager
    def _lane(self) -> Iterator[_Lane]:
        lane = self._free.get()
        try:
            yield lane
        finally:
            self._free.put(lane)

    # one submission

    def grade(self, submission: Submission, names: list[str], *, public: bool = False) -> Report:
        """Grade these exercises of one submission; ``public``: only what learners may see."""
        with self._lane() as lane:
            done = self._grade_sources(submission, names, lane, public)
        exercises = [done[name] for name in names]
        counted = [e for e in exercises if not self.course.exercise(e.exercise).extension]
        return Report(
            student=submission.student,
            course=self.course.config.name,
            versions=versions(),
            isolation=self.tier,
            backend="cpu",
            fingerprint=self.fingerprint(submission, names, public=public),
            points=_sum(e.points for e in counted),
            earned=_sum(e.earned for e in exercises),
            pending=_sum(e.pending for e in exercises),
            exercises=exercises,
            notes=list(submission.notes),
        )

    def fingerprint(self, submission: Submission, names: list[str], *, public: bool = False) -> str:
        """SHA-256 over all that the report depends on."""
        parts = [submission.student, submission.digest, self.course.digest(names), names, versions(), self.tier, public]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _grade_sources(
        self, submission: Submission, names: list[str], lane: _Lane, public: bool
    ) -> dict[str, ExerciseReport]:
        """Exercises that share a source (a notebook) share one process."""
        plans = {name: self._plan(name, public) for name in names}
        groups: dict[Source, list[str]] = {}
        done: dict[str, ExerciseReport] = {}
        for name in names:
            source = submission.sources.get(name)
            if source is None:
                fault = Fault("missing", "nothing was handed in for this exercise")
                done[name] = self._report(submission, name, [Answered(a, fault) for a in plans[name]], [], lane, public)
            else:
                groups.setdefault(source, []).append(name)
        for source, members in groups.items():
            asks = [ask for name in members for ask in plans[name]]
            answered, notes = lane.collect(source, asks)
            for name in members:
                mine = [a for a in answered if any(a.ask is ask for ask in plans[name])]
                done[name] = self._report(submission, name, mine, notes, lane, public)
        return done

    def _plan(self, name: str, public: bool) -> list[Ask]:
        seed = PUBLIC_SEED if public else f"{self.course.config.seed}/hidden"
        return plan(self.course.exercise(name), public=public, seed=seed)

    def _report(
        self, submission: Submission, name: str, answered: list[Answered], notes: list[str], lane: _Lane, public: bool
    ) -> ExerciseReport:
        exercise = self.course.exercise(name)
        results = judge_checks(exercise, answered, public=public)
        if self.course.solved:
            results = self._with_hints(exercise, results, answered, lane, public)
        results += [self._judge_number(exercise, q, answered, submission) for q in exercise.numbers.values()]
        weight = self.course.weight(name)
        results = [r.model_copy(update={"points": r.points * weight, "earned": r.earned * weight}) for r in results]
        return ExerciseReport(
            exercise=name,
            module=exercise.module,
            title=exercise.title,
            points=_sum(r.points for r in results),
            earned=_sum(r.earned for r in results),
            pending=_sum(r.points for r in results if r.status == "broken"),
            results=results,
            notes=notes,
        )

    # questions

    def params(self, question: Number, student: str) -> dict[str, Any]:
        """The parameters this student's question has."""
        config = self.course.config.variants
        who = student if config.mode == "per_student" else None
        return variants.params_for(question, seed=config.seed, student=who)

    def _judge_number(
        self, exercise: Exercise, question: Number, answered: list[Answered], submission: Submission
    ) -> Result:
        finding = next(a.finding for a in answered if a.ask.of is question)
        params = self.params(question, submission.student)
        if isinstance(finding, Fault):
            raw, fault = None, finding
        else:
            raw, fault = _raw(finding), None
        if not self.course.solved:
            return _recorded(question, params, raw)
        slips = exercise.misconceptions.values()
        result = numbers.judge(question, params, slips, raw, public=False)
        if fault is not None and fault.kind == "broken" and result.status != "broken":
            return result.model_copy(update={"status": "broken", "reason": fault.message})
        return result

    # known slips

    def _with_hints(
        self, exercise: Exercise, results: list[Result], answered: list[Answered], lane: _Lane, public: bool
    ) -> list[Result]:
        hinted = []
        for result in results:
            slip = None
            if result.status == "failed":
                slip = self._slip(exercise, result, answered, lane, public)
            hinted.append(with_hint(result, slip) if slip else result)
        return hinted

    def _slip(
        self, exercise: Exercise, result: Result, answered: list[Answered], lane: _Lane, public: bool
    ) -> Misconception | None:
        """The misconception that fails this check and behaves like the submission."""
        call = exercise.checks[result.name].call
        mine = [a for a in answered if a.ask.of is call]
        if all(isinstance(a.finding, Fault) and a.finding.kind != "raised" for a in mine):
            return None
        for slip in exercise.misconceptions.values():
            if slip.of is call.task and result.name in slip.fails:
                theirs, right = (self.known(exercise, s, lane, public) for s in (slip, None))
                of_call = [[a for a in known if a.ask.of is call] for known in (theirs, right)]
                if matches(mine, *of_call):
                    return slip
        return None

    def known(self, exercise: Exercise, slip: Misconception | None, lane: _Lane, public: bool) -> list[Answered]:
        """What the reference (``slip`` None) or a misconception comes to; found once."""
        key = (exercise.id, slip.name if slip else None, public)
        with self._lock:
            if key not in self._known:
                name = f"{exercise.id}.py"
                text = reference_source(exercise, {}, slip)
                asks = [a for a in self._plan(exercise.id, public) if not isinstance(a.of, Number)]
                if slip is not None:
                    asks = [a for a in asks if a.task == getattr(slip.of, "name", "")]
                self._known[key] = lane.collect(Source(name, (Chunk(name, text),)), asks)[0]
            return self._known[key]

    # a batch

    def batch(
        self,
        jobs: Mapping[str, Callable[[], Submission]],
        names: list[str],
        done: Callable[[str, Report | Exception], None],
    ) -> None:
        """Grade every job (student -> how to read the submission) and hand each report to ``done``.

        ``done`` is called in this thread. An exception of ours in one job is handed on in place of its
        report and stops no other.
        """
        with ThreadPoolExecutor(len(self._all)) as pool:
            running = {pool.submit(lambda read=read: self.grade(read(), names)): s for s, read in jobs.items()}
            for future in as_completed(running):
                error = future.exception()
                done(running[future], error if isinstance(error, Exception) else future.result())


def _sum(values: Any) -> float:
    return round(float(sum(values)), 6)


def versions() -> dict[str, str]:
    """Versions of all that a verdict depends on."""
    found = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy", "pint")}
    return {"shardlings": grader.__version__, **found}


def _recorded(question: Number, params: dict[str, Any], raw: Any) -> Result:
    """Without the answers at hand, an answer can only be read back."""
    try:
        text = (
            "not answered yet"
            if raw is None
            else f"read as {numbers.parse(raw, question.unit)}; judged after you submit"
        )
    except numbers.BadAnswer as error:
        text = str(error)
    return Result(
        kind="number", name=question.name, label=numbers.label_of(question, params), task=question.name,
        status="blocked", points=question.points, earned=0, public=False, reason=text,
    )  # fmt: skip


def _raw(finding: Finding) -> Any:
    return finding[0].value if isinstance(finding, list) and finding else None


# -- one pair of workers -----------------------------------------------------------------------


class _Lane:
    """A tracer and a runner, used by one submission at a time."""

    def __init__(self, course: Course, tier: str) -> None:
        limits, devices = course.limits, course.config.devices
        self.limits = limits
        self.tracer = Worker("trace", tier, devices, limits)
        self.runner = Worker("run", tier, devices, limits)

    def close(self) -> None:
        self.tracer.kill()
        self.runner.kill()

    def collect(self, source: Source, asks: list[Ask]) -> tuple[list[Answered], list[str]]:
        """Ask everything of one source; also what stopped it while loading, as notes."""
        files = [c.name for c in source.chunks]
        replies, notes = self._trace(source, [a.for_tracer(files) for a in asks])
        answered = []
        for ask, reply in zip(asks, replies, strict=True):
            answered.append(Answered(ask, reply if isinstance(reply, Fault) else self._finding(ask, files, *reply)))
        return answered, notes

    def _trace(self, source: Source, asks: list[dict]) -> tuple[list[Fault | tuple[dict, list[bytes]]], list[str]]:
        """A reply or a fault for every ask. An ask that ends the child is tried once more, alone."""
        wire_source = {"name": source.name, "chunks": [[c.name, c.text] for c in source.chunks]}
        replies: dict[int, Fault | tuple[dict, list[bytes]]] = {}
        notes: list[str] = []
        suspects: set[int] = set()
        for _ in range(MAX_RESTARTS):
            left = [i for i in range(len(asks)) if i not in replies]
            if not left:
                break
            alone = [i for i in left if i in suspects][:1] or left
            loaded, ended = self._one_child(wire_source, asks, alone, replies, notes)
            left = [i for i in alone if i not in replies]
            if not left or (ended == "done" and loaded):
                for i in left:
                    replies[i] = Fault("crashed", "the file ended the process before this was asked")
                continue
            if not loaded:
                for i in left if ended != "worker" or suspects else []:
                    replies[i] = _ended(ended, "your file, while it was loaded,", self.limits.trace_seconds)
                suspects.update(left)
            elif left[0] in suspects:
                replies[left[0]] = _ended(ended, "it", self.limits.trace_seconds)
            else:
                suspects.add(left[0])
        for i in range(len(asks)):
            replies.setdefault(i, Fault("crashed", "not asked: too many other tasks of this file ended the process"))
        return [replies[i] for i in range(len(asks))], notes

    def _one_child(
        self, source: dict, asks: list[dict], chosen: list[int], replies: dict, notes: list[str]
    ) -> tuple[bool, str]:
        """Run one child over the chosen asks; fills ``replies``. Returns whether it loaded, and how it ended."""
        started, loaded, expected = False, False, 0
        try:
            for frame, blobs in self.tracer.trace(source, [asks[i] for i in chosen]):
                if frame.get("from") == "worker":
                    return loaded, str(frame.get("end", "garbage")) if started else "worker"
                body = frame.get("body", {})
                if body.get("started"):
                    started = True
                elif body.get("loaded"):
                    loaded = True
                    if not notes:
                        notes += _load_notes(body.get("faults"))
                elif body.get("number") == expected and expected < len(chosen):  # each ask once, in order
                    replies[chosen[expected]] = _reply(body, blobs)
                    expected += 1
        except WorkerDied:
            return loaded, "worker"
        return loaded, "garbage"

    def _finding(self, ask: Ask, files: list[str], body: dict, blobs: list[bytes]) -> Finding:
        try:
            if isinstance(ask.of, Number):
                return [Outcome(value=_plain_raw(body["raw"]))]
            if isinstance(ask.of, Cases):
                return _outcomes(body["values"], len(ask.cases))
            return self._run(ask, files, blobs[0])
        except (KeyError, IndexError, TypeError, BadFrame):
            return Fault("refused", "the answer is not of the kind that was asked for")

    def _run(self, ask: Ask, files: list[str], program: bytes) -> Finding:
        """Run a program; a worker that dies or hangs gets one more chance, alone and fresh."""
        trouble = None
        for _ in range(2):
            try:
                return _observation(ask, *self.runner.run(ask.for_tracer(files), program, ask.arrays()))
            except WorkerDied as died:
                trouble = died
        assert trouble is not None
        return _run_fault(trouble, self.limits.run_seconds)


def _ended(how: str, what: str, seconds: float) -> Fault:
    if how == "worker":
        return Fault("broken", "the tracing process died twice; a person must look")
    if how == "timeout":
        return Fault("timeout", f"{what} did not finish within {seconds:g} s")
    told = {"flood": "sent back more than 16 MiB", "garbage": "sent back what nobody can read"}.get(how, how)
    return Fault("crashed", f"{what} ended the process: {told}")


def _run_fault(died: WorkerDied, seconds: float) -> Fault:
    from grader.run import crash_reason

    if "rendezvous" in died.stderr.lower() or "stuck" in died.stderr.lower():
        return Fault(
            "timeout", "the devices waited for each other for ever: some of them never take part in a collective"
        )
    if died.reason == "timeout":
        return Fault("timeout", f"the program did not finish within {seconds:g} s, twice")
    told = crash_reason(died.stderr)
    return Fault("broken", f"XLA ended the process twice while running this program{': ' + told if told else ''}")


def _load_notes(faults: Any) -> list[str]:
    """What stopped the source while it was loaded, one line each."""
    from grader.trace import describe_load

    notes = []
    for fault in faults if isinstance(faults, list) else []:
        if isinstance(fault, dict) and {"chunk", "line", "message"} <= set(fault):
            notes.append(describe_load({k: fault[k] for k in ("chunk", "line", "message")})[:400])
    return notes[:5]


def _reply(body: dict, blobs: list[bytes]) -> Fault | tuple[dict, list[bytes]]:
    fault = body.get("fault")
    return (body, blobs) if fault is None else _fault(fault)


def _fault(data: Any) -> Fault:
    """A fault from an untrusted process: never ``broken``, whatever it says."""
    if not isinstance(data, dict):
        return Fault("raised", "failed")
    line = data.get("line")
    return Fault(
        kind=str(data.get("kind")) if data.get("kind") != "broken" else "raised",
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
    """What the runner saw. It is ours, but it handles hostile programs: nothing in it is taken on trust."""
    if "fault" in header:
        return _fault(header["fault"])
    devices = 1
    for size in ask.mesh.values():
        devices *= size
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
    names = {f.name for f in fields(Collective)}
    collectives = [
        Collective(**{k: tuple(v) if k == "axes" else v for k, v in c.items() if k in names})
        for c in header["collectives"]
    ]
    return Observation(outputs, bool(header["tuple_out"]), collectives, int(header["memory"]), int(header["flops"]))
