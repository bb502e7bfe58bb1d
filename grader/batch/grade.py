"""From a submission to its report: trace, run, judge, for one submission or a batch of them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any

import grader
from grader.batch.backends import Compiler, Devices
from grader.batch.here import Here
from grader.batch.lending import Lending
from grader.batch.memory import Memory, lasting
from grader.batch.poison import Poisoned
from grader.batch.workers import Collected, Runner, Spent, Workers
from grader.common.cache import Cache
from grader.common.observation import Fault, Observation
from grader.common.pool import pool_of
from grader.common.result import Evidence, ExerciseReport, Report, Result
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.exercise import Call, Exercise, Misconception, Question, Task
from grader.expect import laid_out
from grader.intake.pseudonyms import pseudonym_of
from grader.intake.submission import Chunk, Source, Submission
from grader.intake.submission import fingerprint as source_digest
from grader.judging import answers
from grader.judging.judge import WRONG_IN_SECRET, judge_checks
from grader.judging.pairing import paired
from grader.judging.plan import Ask, plan
from grader.judging.seen import Answered, Finding
from grader.judging.slips import Shown, fitting, with_hint
from grader.reports.pages import load_templates
from grader.sandbox.worker import Worker

AHEAD = 4  # submissions for each host that are queued: all of a large class take memory, and one would idle between two
MOST_CHECKED = 1000  # different outcomes of an exercise's checks


@dataclass(frozen=True)
class Checked:
    """What the checks of an exercise say, before its weight, and what they looked at."""

    results: list[Result]
    evidence: list[Evidence]


@dataclass
class Known:
    """What the reference or a misconception was found to do, by ``Ask.same``; whoever finds out more holds the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    findings: dict[tuple, Finding] = field(default_factory=dict)
    shown: dict[bool, Shown] = field(default_factory=dict)


class Grader:
    """Holds the workers. ``jobs`` submissions are graded at a time, each traced by a worker of its own; of fewer, their files.

    Args:
        course: what is graded against.
        tier: isolation of the workers, see ``sandbox``.
        jobs: how many submissions are graded at a time.
        here: takes the place of workers in one's own notebook.
        devices: those that programs are run on beside the simulated ones; they are closed with the workers.
        compiler: what judges what needs no execution; ends with the grader.
        cache: where what depends on bytes alone is remembered over runs; of isolated workers only: without isolation
            learner code could write there itself. What other devices do, or another compiler makes, is not remembered here.
    """

    proves_itself = False  # True: what grades for it proves itself by the canary, wherever that is

    def __init__(
        self, course: Course, tier: str, jobs: int = 1, *, here: Here | Workers | None = None,
        devices: Devices | None = None, compiler: Compiler | None = None, cache: Cache | None = None,
    ) -> None:  # fmt: skip
        self.course, self.tier, self.jobs, self.devices, self.compiler = course, tier, jobs, devices, compiler
        about = [own_digest(), versions(), tier, course.config.devices, course.config.limits.model_dump()]
        alone = devices is None and compiler is None
        self.memory = Memory(cache, about) if cache and tier != "none" and alone else None
        self._free: LifoQueue[Workers | Here] = LifoQueue()  # what runs already is taken first
        runners = [Runner(course, tier, compiler) for _ in range(jobs)]
        self.hosts: list[Workers | Here] = (
            [here] if here else [Workers(course, tier, runners, devices, self.memory) for _ in range(jobs)]
        )
        for workers in self.hosts:
            self._free.put(workers)
        self._known: dict[Any, Known] = {}
        self._checked: dict[bytes | None, Checked] = {}  # by all that they depend on, which is the same for many
        self._plans: dict[tuple[str, bool], list[Ask]] = {}
        self._digests: dict[tuple[str, ...], str] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._processes():
            worker.kill()
        if self.devices:
            self.devices.close()
        if self.compiler is not None:
            self.compiler.close()

    @property
    def versions(self) -> dict[str, str]:
        """Versions of all that a verdict depends on."""
        return versions() | (self.compiler.versions if self.compiler else {})

    def warm(self) -> None:
        """Start all workers without waiting for them."""
        for worker in self._processes():
            worker.start()

    def retire(self) -> None:
        """End all processes for good, from another thread: what is being graded comes to nothing, soon."""
        beside = self.devices.workers if self.devices else [self.compiler.worker] if self.compiler else []
        for worker in [*self._processes(), *beside]:
            worker.retire()

    def _processes(self) -> list[Worker]:
        return [w for workers in self.hosts if isinstance(workers, Workers) for w in workers.processes]

    @contextmanager
    def workers(self) -> Iterator[Workers | Here]:
        workers = self._free.get()
        try:
            yield workers
        finally:
            self._free.put(workers)

    @property
    def backend(self) -> str:
        """Where programs are judged: ``cpu``; beside simulated devices others, or a slice's compiler, ``tpu:v5e:2x4``."""
        if self.compiler:
            return f"tpu:{self.compiler.on}"
        return self.devices.text if self.devices else "cpu"

    # one submission

    def grade(self, submission: Submission, names: list[str], *, public: bool = False, fresh: bool = False) -> Report:
        """Grade these exercises of one submission.

        Args:
            public: only what learners may see.
            fresh: nothing that is remembered takes part.
        """
        with self.workers() as workers:
            done, notes = self._grade_sources(submission, names, workers, public, fresh)
        exercises = [done[name] for name in names]
        counted = [e for e in exercises if not self.course.exercise(e.exercise).extension]
        return Report(
            student=submission.student,
            course=self.course.config.name,
            versions=self.versions,
            isolation=self.tier,
            backend=self.backend,
            fingerprint=self.fingerprint(submission, names, public=public),
            points=_sum(e.points for e in counted),
            earned=_sum(e.earned for e in exercises),
            pending=_sum(e.pending for e in exercises),
            exercises=exercises,
            notes=[*submission.notes, *notes, *self._notes(exercises)],
        )

    def _notes(self, exercises: Iterable[ExerciseReport]) -> list[str]:
        """What is to be known of a report that other devices than simulated ones decided on."""
        if self.devices is None:
            return []
        results = [r for e in exercises for r in e.results]
        every, seen = sum(r.points for r in results), sum(r.points for r in results if not r.unjudged)
        return [f"{self.devices.text}: judged {_sum([seen]):g} of {_sum([every]):g} points here"]

    def graded_and_public(
        self, submission: Submission, name: str, known: Iterable[Answered] = ()
    ) -> tuple[ExerciseReport, ExerciseReport, list[Answered]]:
        """One exercise as it is graded, as learners see it, and all it came to; what is asked for both is asked once.

        Args:
            known: what some asks come to: these are not asked.
        """
        plans = {public: self.plan(name, public) for public in (False, True)}
        every = {ask.same: ask for ask in (*plans[True], *plans[False])}
        found = {a.ask.same: a.finding for a in known}
        with self.workers() as workers:
            asks = sorted((ask for same, ask in every.items() if same not in found), key=lambda ask: ask.secret)
            answered, notes = workers.collect(submission.sources[name], asks) if asks else ([], [])
            found |= {a.ask.same: a.finding for a in answered}

            def report(public: bool) -> ExerciseReport:
                answers = [Answered(ask, found[ask.same]) for ask in plans[public]]
                checked = self._checks(name, answers, workers, public)
                return self._report(submission, name, answers, notes, public, checked)

            return report(False), report(True), [Answered(ask, found[same]) for same, ask in every.items()]

    def fingerprint(self, submission: Submission, names: list[str], *, public: bool = False) -> str:
        """SHA-256 over all that the report depends on."""
        parts = [
            submission.student,
            submission.digest,
            self._digest(names),
            names,
            self.versions,
            own_digest(),
            self.tier,
            public,
        ]
        parts += [self.backend] if self.devices or self.compiler else []
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _digest(self, names: Sequence[str]) -> str:
        """The course's, of these exercises; a course stays as it was loaded."""
        if tuple(names) not in self._digests:
            self._digests[tuple(names)] = self.course.digest(list(names))
        return self._digests[tuple(names)]

    def _grade_sources(
        self, submission: Submission, names: list[str], workers: Workers | Here, public: bool, fresh: bool
    ) -> tuple[dict[str, ExerciseReport], list[str]]:
        """Exercises that share a source (a notebook) share one process, and what stopped it is noted once."""
        plans = {name: self.plan(name, public) for name in names}
        groups: dict[Source, list[str]] = {}
        done: dict[str, ExerciseReport] = {}
        shared: dict[Source, list[str]] = {}
        for name in names:
            source = submission.sources.get(name)
            if source is None:
                key = self._verdict_key(submission, name, plans[name], dict.fromkeys(plans[name], b"nothing"), public)
                if (known := self._remembered(submission, name, key, [], public)) is None:
                    fault = Fault("missing", "nothing was handed in for this exercise")
                    found = [Answered(a, fault) for a in plans[name]]
                    checked = self._checks(name, found, workers, public)
                    known = self._remember(key, found, self._report(submission, name, found, [], public, checked))
                done[name] = known
            else:
                groups.setdefault(source, []).append(name)
        judging: list[
            tuple[str, bytes | None, list[Answered], list[str], bytes | None, Future[list[Result]] | Checked]
        ] = []

        def came_to(by: Workers | Here, source: Source, spent: Spent) -> Collected | dict[str, ExerciseReport]:
            """What all that is asked of a source comes to; its reports, where that was judged before."""
            members = groups[source]
            asks = [ask for name in members for ask in plans[name]]
            if not isinstance(by, Workers):
                return Collected(*by.collect(source, asks, spent))
            recalled = None if fresh else by.recall(source, asks, spent)
            if recalled is not None:
                keys = {n: self._verdict_key(submission, n, plans[n], recalled.came_to, public) for n in members}
                known = {n: self._remembered(submission, n, keys[n], [], public) for n in members}
                if all(known.values()):
                    spent.on_tracing(recalled.cpu)
                    return {name: report for name, report in known.items() if report is not None}
            return by.collected(source, asks, spent, recalled, fresh=fresh)

        def judge(source: Source, members: list[str], found: Collected | dict[str, ExerciseReport]) -> None:
            if isinstance(found, dict):
                done.update(found)
                return
            notes = found.notes
            if len(members) > 1:
                shared[source] = [f"{source.name}: {note}" for note in notes]
                notes = []
            for name in members:
                key = self._verdict_key(submission, name, plans[name], None if fresh else found.came_to, public)
                if (same := self._remembered(submission, name, key, notes, public)) is not None:
                    done[name] = same
                    continue
                own = {id(ask) for ask in plans[name]}
                answered = [a for a in found.answered if id(a.ask) in own]
                of_checks = None if fresh else self._checks_key(name, plans[name], found.came_to, public)
                checked = self._checked.get(of_checks) or pool.submit(
                    judge_checks, self.course.exercise(name), answered, public=public
                )
                judging.append((name, key, answered, notes, of_checks, checked))

        def finish() -> None:
            for name, key, found, notes, of_checks, checked in judging:
                if isinstance(checked, Future):
                    checked = self._hinted(self.course.exercise(name), checked.result(), found, workers, public)
                    if of_checks and self._lasts(name, found) and all(r.status != "broken" for r in checked.results):
                        if len(self._checked) >= MOST_CHECKED:
                            self._checked.clear()
                        self._checked[of_checks] = checked
                report = self._report(submission, name, found, notes, public, checked)
                done[name] = self._remember(key, found, report)
            judging.clear()

        # What one source came to is judged while the next is traced; workers that no submission waits for take some of them.
        lending, others = Lending(came_to, self._idle, self._free.put), len(self.hosts) - 1
        limits = workers.limits if isinstance(workers, Workers) else self.course.config.limits
        with (
            pool_of(1 + others) as pool,
            closing(lending.in_order(groups, workers, limits, pool, others)) as each,
        ):
            for source, found in each:
                finish()
                judge(source, groups[source], found)
            finish()
        return done, [note for source in groups for note in shared.get(source, ())]

    def _idle(self) -> Workers | Here | None:
        """Workers that nobody uses; whoever takes them puts them back."""
        try:
            return self._free.get_nowait()
        except Empty:
            return None

    # what was judged before

    def _verdict_key(
        self, submission: Submission, name: str, asks: Sequence[Ask], came_to: Mapping[Ask, bytes] | None, public: bool
    ) -> bytes | None:
        """Over what the asks of an exercise came to and all that judges it; None where nothing is remembered."""
        if self.memory is None or came_to is None:
            return None
        own = submission.student if self.course.config.variants.mode == "per_student" else ""
        about = json.dumps([name, self._digest([name]), public, own, self.course.solved])
        return self.memory.key(b"verdict", about.encode(), *(came_to[ask] for ask in asks))

    def _remembered(
        self, submission: Submission, name: str, key: bytes | None, notes: list[str], public: bool
    ) -> ExerciseReport | None:
        """A verdict that was reached before, as this submission's."""
        found = self.memory.verdict(key) if self.memory and key else None
        if found is None:
            return None
        source = submission.sources.get(name)
        whose = {
            "notes": notes,
            "handed_in": source is not None,
            "pseudonym": pseudonym_of(source) if source else "",
            "basis": {} if public else self._basis(submission, name),
        }
        return found.model_copy(update=whose)

    def _remember(self, key: bytes | None, answered: list[Answered], report: ExerciseReport) -> ExerciseReport:
        if self.memory and key and self._lasts(report.exercise, answered):
            self.memory.keep_verdict(key, report.model_copy(update={"notes": [], "pseudonym": "", "basis": {}}))
        return report

    def _lasts(self, name: str, answered: list[Answered]) -> bool:
        """Unless something ended by time or memory: of the submission, or of what hints come from."""
        with self._lock:
            compared = [known for (exercise, _), known in self._known.items() if exercise == name]
        findings = [a.finding for a in answered] + [f for known in compared for f in list(known.findings.values())]
        poisons = [f.poison for f in findings if isinstance(f, Observation) and isinstance(f.poison, Poisoned)]
        return all(map(lasting, findings)) and all(p.lasting for p in poisons)

    def _checks_key(
        self, name: str, asks: Sequence[Ask], came_to: Mapping[Ask, bytes] | None, public: bool
    ) -> bytes | None:
        """As ``_verdict_key``, of an exercise's checks alone: who hands in the same programs seldom gives the same answers."""
        if self.memory is None or came_to is None:
            return None
        about = json.dumps([name, self._digest([name]), public, self.course.solved])
        return self.memory.key(b"checks", about.encode(), *(came_to[a] for a in asks if not isinstance(a.of, Question)))

    def plan(self, name: str, public: bool) -> list[Ask]:
        """The same for everybody, so drawn once."""
        if (name, public) not in self._plans:
            seed = f"{self.course.config.seed}/hidden"
            self._plans[name, public] = plan(self.course.exercise(name), public=public, seed=seed)
        return self._plans[name, public]

    def _report(
        self,
        submission: Submission,
        name: str,
        answered: list[Answered],
        notes: list[str],
        public: bool,
        checked: Checked,
    ) -> ExerciseReport:
        exercise = self.course.exercise(name)
        results = [*checked.results]
        results += [self._judge_answer(exercise, q, answered, submission) for q in exercise.questions.values()]
        weight = self.course.weight(name)
        results = [r.model_copy(update={"points": r.points * weight, "earned": r.earned * weight}) for r in results]
        return ExerciseReport(
            exercise=name,
            module=exercise.module,
            title=exercise.title,
            points=_sum(r.points for r in results),
            earned=_sum(r.earned for r in results),
            pending=_sum(r.points for r in results if r.waits),
            results=results,
            notes=notes,
            handed_in=name in submission.sources,
            evidence=[*checked.evidence],
            pseudonym=pseudonym_of(submission.sources[name]) if name in submission.sources else "",
            extension=exercise.extension,
            basis={} if public else self._basis(submission, name),
        )

    def _checks(self, name: str, answered: list[Answered], workers: Workers | Here, public: bool) -> Checked:
        exercise = self.course.exercise(name)
        return self._hinted(exercise, judge_checks(exercise, answered, public=public), answered, workers, public)

    def _hinted(
        self, exercise: Exercise, results: list[Result], answered: list[Answered], workers: Workers | Here, public: bool
    ) -> Checked:
        """What was judged, with the hints of the misconceptions that it comes of."""
        if self.course.solved:
            results = self._with_hints(exercise, results, answered, workers, public)
        return Checked(results, [_evidence(a) for a in paired(answered) if not isinstance(a.ask.of, Question)])

    def _basis(self, submission: Submission, name: str) -> dict[str, str]:
        """What this exercise is graded with, so that a regrade can say what is another."""
        source = submission.sources.get(name)
        parts = {
            "submission": source_digest(source) if source else "",
            "course": self._digest([name]),
            "grader": own_digest(),
            "versions": ", ".join(f"{package} {version}" for package, version in self.versions.items()),
            "isolation": self.tier,
        } | ({"backend": self.backend} if self.devices or self.compiler else {})
        return {
            part: value[:16] if part in ("submission", "course", "grader") else value for part, value in parts.items()
        }

    def ask(self, submission: Submission, name: str) -> list[Answered]:
        """What every ask of one exercise comes to. Raises KeyError when nothing was handed in for it."""
        with self.workers() as workers:
            return workers.collect(submission.sources[name], self.plan(name, public=False))[0]

    # questions

    def _judge_answer(
        self, exercise: Exercise, question: Question, answered: list[Answered], submission: Submission
    ) -> Result:
        finding = next(a.finding for a in answered if a.ask.of is question)
        params = self.course.params(question, submission.student)
        if isinstance(finding, Fault):
            raw, fault = None, finding
        else:
            raw, fault = _raw(finding), None
        if not self.course.solved:
            return answers.read_back(question, params, raw)
        slips = exercise.misconceptions.values()
        result = answers.judge(question, params, slips, raw)
        if fault is not None and fault.kind == "broken" and result.status != "broken":
            return result.model_copy(update={"status": "broken", "reason": fault.message})
        return result

    # known slips

    def _with_hints(
        self, exercise: Exercise, results: list[Result], answered: list[Answered], workers: Workers | Here, public: bool
    ) -> list[Result]:
        submitted, statuses = Shown(answered), {result.name: result.status for result in results}
        hinted = []
        for result in results:
            slips: list[Misconception] = []
            if result.status == "failed" and result.reason != WRONG_IN_SECRET:
                check = exercise.checks[result.name]
                tasks = [task for task in check.tasks if _ran(submitted, task)]
                candidates = [s for s in exercise.misconceptions.values() if result.name in s.fails and s.of in tasks]
                known = [(slip, self._shown(exercise, slip, workers, public)) for slip in candidates]
                slips = fitting(check, submitted, statuses, known, exercise.checks)
            hinted.append(with_hint(result, slips) if slips else result)
        return hinted

    def _shown(self, exercise: Exercise, slip: Misconception, workers: Workers | Here, public: bool) -> Shown:
        """What a misconception comes to, beside right solutions of all other tasks."""
        with self._lock:
            known = self._known.setdefault((exercise.id, slip.name), Known())
        if public not in known.shown:
            right, wrong = (self.known(exercise, one, workers, public) for one in (None, slip))
            instead = {a.ask.same: a for a in wrong}
            known.shown[public] = Shown([instead.get(a.ask.same, a) for a in right])
        return known.shown[public]

    def known(
        self, exercise: Exercise, slip: Misconception | None, workers: Workers | Here, public: bool
    ) -> list[Answered]:
        """What the reference (``slip`` None) or a misconception comes to, on inputs that are no secret; found once."""
        with self._lock:
            known = self._known.setdefault((exercise.id, slip.name if slip else None), Known())
        asks = [a for a in self.plan(exercise.id, public) if not (a.secret or isinstance(a.of, Question))]
        if slip is not None:
            asks = [a for a in asks if a.task == getattr(slip.of, "name", "")]
        with known.lock:
            if left := [a for a in asks if a.same not in known.findings]:
                name = f"{exercise.id}.py"
                source = Source(name, (Chunk(name, reference_source(exercise, {}, slip)),))
                simulated = workers.without_devices() if isinstance(workers, Workers) else workers
                known.findings |= {a.ask.same: a.finding for a in simulated.collect(source, left)[0]}
            return [Answered(a, known.findings[a.same]) for a in asks]

    def knows(self, exercise: Exercise, slip: Misconception, found: list[Answered]) -> None:
        """A misconception was tried: it is not once more when a hint is looked for."""
        with self._lock:
            known = self._known.setdefault((exercise.id, slip.name), Known())
        with known.lock:
            known.findings |= {a.ask.same: a.finding for a in found if not a.ask.secret}

    # a batch

    def batch(
        self,
        students: Iterable[str],
        read: Callable[[str], Submission],
        names: list[str],
        done: Callable[[str, Report | Exception], None],
    ) -> None:
        """Grade what each student handed in, which ``read`` reads, and hand each report to ``done``.

        ``done`` is called in this thread. An exception in our own code over one student is handed on in place of the
        report and stops no other.
        """
        load_templates()  # of the reports that ``done`` writes while the other threads read submissions
        left, running = iter(students), dict[Future[Report], str]()
        with pool_of(len(self.hosts)) as pool:
            while True:
                for student in islice(left, AHEAD * len(self.hosts) - len(running)):
                    running[pool.submit(lambda student=student: self.grade(read(student), names))] = student
                if not running:
                    break
                wait(running, return_when=FIRST_COMPLETED)
                for future in [one for one in running if one.done()]:  # in the order of students, not of a set
                    student, error = running.pop(future), future.exception()
                    done(student, error if isinstance(error, Exception) else future.result())


def _ran(submitted: Shown, task: Task) -> bool:
    """Whether anything is known of what a task does: an error of its own, or what it came to."""
    found = [a.finding for a in submitted.answered if a.ask.task == task.name]
    return any(not isinstance(finding, Fault) or finding.kind == "raised" for finding in found)


def _evidence(answer: Answered) -> Evidence:
    ask, seen = answer.ask, answer.finding
    return Evidence(
        task=ask.task, mesh=dict(ask.mesh), dims=dict(ask.dims), secret=ask.secret,
        program=seen.program if isinstance(seen, Observation) else "", inputs=ask.digest, step=_step(answer),
    )  # fmt: skip


def _step(answer: Answered) -> int | None:
    """Picoseconds, of a timing call whose program has a time."""
    call, seen = answer.ask.of, answer.finding
    if not (isinstance(call, Call) and call.timing and isinstance(seen, Observation)):
        return None
    try:
        return laid_out(seen.operations, call.timing).step
    except Exception:  # it has none, or the clock failed: a check that needs it says which
        return None


def _sum(values: Any) -> float:
    return round(float(sum(values)), 6)


@cache
def own_digest() -> str:
    """SHA-256 over this package's code: a verdict of other code is not kept."""
    files = sorted(Path(grader.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of all that a verdict depends on."""
    found = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy", "pint")}
    return {"shardlings": grader.__version__, **found}


def _raw(finding: Finding) -> Any:
    return finding[0].value if isinstance(finding, list) and finding else None
