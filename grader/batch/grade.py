"""Make a report from a submission: steps 2 to 5 in ``CONTRIBUTING.md``, and the report of step 6."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

from grader.batch.backends import Beside, Compiler, Devices
from grader.batch.cost import Cost
from grader.batch.remembering import CHECKED, Checked, Keys, Store, surroundings
from grader.batch.reporting import Basis, exercise_report, note_of_devices, own_digest, report, versions
from grader.batch.runners import Runner
from grader.batch.running import Trace, answers_of, collect, run, trace
from grader.batch.verdicts import Judge, References, judge_answers
from grader.batch.workers import SPARE, SPARE_EACH, Pool, Workers
from grader.common.cache import Cache
from grader.common.result import ExerciseReport, Report
from grader.course.loading import Course
from grader.exercise import Exercise, Question
from grader.intake.submission import Submission, by_source
from grader.judging.plan import Ask, plan
from grader.judging.seen import AskFinding
from grader.sandbox.worker import Worker


class Grader:
    """Grades submissions of one course.

    Args:
        tier: the kind of sandbox that isolates the workers, see ``sandbox``.
        jobs: how many submissions are graded at a time.
        here: an ``InProcess``, which grades in this process, as in a learner's own notebook; None for worker processes.
        devices: devices that programs run on in addition to the simulated devices. The grader closes them.
        compiler: compiles programs for chips that this machine lacks. The grader closes the compiler.
        cache: keeps results from one run of the grader to the next. Without isolation the grader uses no cache, because
            learner code could write to it. With ``devices`` or a ``compiler`` the grader uses no cache either.
    """

    proves_itself = False  # True if other machines grade the submissions and the course's solutions

    def __init__(
        self, course: Course, tier: str, jobs: int = 1, *, here: Workers | None = None,
        devices: Devices | None = None, compiler: Compiler | None = None, cache: Cache | None = None,
    ) -> None:  # fmt: skip
        self.course, self.tier, self.jobs, self.devices, self.compiler = course, tier, jobs, devices, compiler
        self.store = _store(course, tier, cache if devices is None and compiler is None else None)
        runners = [] if here else [Runner(course, tier) for _ in range(jobs)]
        count = 0 if here else jobs + min(SPARE, SPARE_EACH * jobs)
        made = [Workers(course, tier, runners, Beside(devices, compiler), self.store) for _ in range(count)]
        # One set of workers for each submission that is graded at a time.
        self.worker_sets = [here] if here else made[:jobs]
        self.pool: Pool[Report] = Pool(self.worker_sets, made[jobs:])
        self.references = References()
        self.judge = Judge(course, self.references)
        self.basis = Basis(course, self.versions, tier, self.backend)
        self._plans: dict[tuple[str, bool], list[Ask]] = {}
        self._planning = Lock()

    # one submission

    def grade(self, submission: Submission, names: list[str], *, public: bool = False, fresh: bool = False) -> Report:
        """Grade the exercises ``names`` of one submission.

        Args:
            public: True to judge only the checks and inputs that learners may see.
            fresh: True to make all results anew instead of reading them from the cache.
        """
        done: dict[str, ExerciseReport] = {}
        notes = list[str]()
        with self.pool.lent() as lent:
            workers, cost = lent.afresh() if fresh else lent, Cost(lent.limits)
            # The submission was read before. Group the exercises by the source (file or notebook) that holds them.
            for source, members in by_source(submission, names):
                # Plan: list the asks, which are the requests to the submission.
                plans = {name: self.plan(name, public) for name in members}
                # Trace: a confined child runs the learner's Python and replies with programs and plain values.
                traced = trace(workers, source, [ask for asks in plans.values() for ask in asks], cost)
                for name, asks in plans.items():
                    exercise = self.course.exercise(name)
                    checked = self._checked(exercise, public, asks, traced, workers, cost)
                    # Judge the answers to questions, with this student's numbers.
                    answered_questions = answers_of(workers, traced, asks)
                    results = [
                        *checked.results,
                        *judge_answers(self.course, exercise, answered_questions, submission.student, source),
                    ]
                    own_notes = traced.notes if len(members) == 1 else ()
                    done[name] = exercise_report(
                        self.basis, submission, name, results, checked.evidence, own_notes, public=public
                    )
                if source is not None and len(members) > 1:
                    notes += [f"{source.name}: {note}" for note in traced.notes]
        exercises = [done[name] for name in names]
        notes += [note_of_devices(self.devices.text, exercises)] if self.devices else []
        return report(self.basis, submission, exercises, notes, public=public)

    def _checked(
        self, exercise: Exercise, public: bool, asks: list[Ask], traced: Trace, workers: Workers, cost: Cost
    ) -> Checked:
        """Return the results of an exercise's checks, which need no answers to questions."""
        about = [exercise.id, self.course.digest_of_checks(exercise.id), public, self.course.solved]
        key = workers.store.keys.checks(about, traced.files, {ask: traced.replies[ask] for ask in asks})
        # If equal programs were judged before, the cache has the results.
        checked = workers.store.find(CHECKED, key)
        if checked is not None and cost.fits(checked.seconds):
            cost.running += checked.seconds
            return checked
        # Run the programs, and judge the checks.
        before = cost.running
        answered = run(workers, traced, [ask for ask in asks if not isinstance(ask.of, Question)], cost)
        judged = self.judge.checked(exercise, answered, workers, public)
        return workers.store.keep(CHECKED, key, judged.model_copy(update={"seconds": cost.running - before}))

    def answered(self, submission: Submission, name: str) -> list[AskFinding]:
        """Return each request of an exercise with its finding. Raises KeyError if the submission lacks the exercise."""
        with self.pool.lent() as workers:
            return collect(workers, submission.sources[name], self.plan(name, public=False))[0]

    def plan(self, name: str, public: bool) -> list[Ask]:
        """Return every request of an exercise. All students get equal requests, so the grader makes them only once.

        Args:
            public: True to leave out requests with data that learners do not have.
        """
        with self._planning:
            if (name, public) not in self._plans:
                seed = f"{self.course.config.seed}/hidden"
                self._plans[name, public] = plan(self.course.exercise(name), public=public, seed=seed)
            return self._plans[name, public]

    # inputs of reports

    @property
    def versions(self) -> dict[str, str]:
        """The versions of all packages that a verdict depends on."""
        return versions() | (self.compiler.versions if self.compiler else {})

    @property
    def backend(self) -> str:
        """The devices that run programs, such as ``cpu`` (simulated); with a compiler, ``tpu:`` and the slice."""
        if self.compiler:
            return f"tpu:{self.compiler.on}"
        return self.devices.text if self.devices else "cpu"

    def fingerprint(self, submission: Submission, names: list[str], *, public: bool = False) -> str:
        """Return SHA-256 over everything that the submission's report depends on, to find out-of-date reports."""
        return self.basis.fingerprint(submission, names, public=public)

    # These methods grade several submissions with shared processes.

    def batch(
        self,
        students: Iterable[str],
        submission_of: Callable[[str], Submission],
        names: list[str],
        done: Callable[[str, Report | Exception], None],
    ) -> None:
        """Grade the submission of each student, and pass each report to ``done`` in the caller's thread.

        Args:
            submission_of: returns the submission of a student.
            names: the exercises to grade.
            done: called with a student and the student's report, or the exception that the grader's code raised.
        """
        self.pool.each(students, lambda student: self.grade(submission_of(student), names), done)

    def warm(self) -> None:
        """Start the workers without waiting for them. Spare workers start only when they are needed."""
        for workers in self.worker_sets:
            for worker in workers.each_worker:
                worker.start()

    def retire(self) -> None:
        """End all processes for good. Submissions that are being graded get no result. Any thread may call this."""
        beside = self.devices.workers if self.devices else [self.compiler.worker] if self.compiler else []
        for worker in [*self._processes(), *beside]:
            worker.retire()

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._processes():
            worker.kill()
        if self.devices:
            self.devices.close()
        if self.compiler is not None:
            self.compiler.close()

    def _processes(self) -> list[Worker]:
        return [worker for workers in self.pool.sets for worker in workers.each_worker]


def _store(course: Course, tier: str, cache: Cache | None) -> Store:
    if cache is None or tier == "none":
        return Store(Keys(None))
    config = course.config
    return Store(
        Keys([own_digest(), versions(), tier, config.devices, config.limits.model_dump(), surroundings()]), cache
    )
