"""Judge: findings in, results out. The checks of an exercise with their hints, and each student's answers to questions."""

from __future__ import annotations

from collections.abc import Sequence

from grader.batch.findings import lasting
from grader.batch.poison import Poisoned
from grader.batch.references import References
from grader.batch.remembering import Checked
from grader.batch.workers import Workers
from grader.common.observation import Fault, Observation
from grader.common.result import Evidence, Result
from grader.course.loading import Course
from grader.exercise import Call, Exercise, Misconception, Question, Task
from grader.expect import laid_out
from grader.judging import answers
from grader.judging.judge import WRONG_IN_SECRET, judge_checks
from grader.judging.misconceptions import Shown, fitting, with_hint
from grader.judging.pairing import paired
from grader.judging.seen import Answered


class Judge:
    """Judges the checks of a course's exercises.

    Args:
        references: where hints come from.
    """

    def __init__(self, course: Course, references: References) -> None:
        self._course, self._references = course, references

    def checked(self, exercise: Exercise, answered: list[Answered], workers: Workers, public: bool) -> Checked:
        """Return a result for each check, with the hints of the misconceptions that explain it, and the evidence.

        Args:
            workers: run misconceptions that were not tried yet.
        """
        results = judge_checks(exercise, answered, public=public)
        if self._course.solved:
            results = self.with_hints(exercise, results, answered, workers, public)
        evidence = [_evidence(a) for a in paired(answered) if not isinstance(a.ask.of, Question)]
        return Checked(results=results, evidence=evidence, lasting=self._lasting(exercise, answered))

    def with_hints(
        self, exercise: Exercise, results: list[Result], answered: list[Answered], workers: Workers, public: bool
    ) -> list[Result]:
        """Return the results with the hints of misconceptions that explain failed checks."""
        plan = [a.ask for a in answered]
        submitted, statuses = Shown(answered), {result.name: result.status for result in results}
        hinted = []
        for result in results:
            misconceptions: list[Misconception] = []
            if result.status == "failed" and result.reason != WRONG_IN_SECRET:
                check = exercise.checks[result.name]
                tasks = [task for task in check.tasks if _ran(submitted, task)]
                candidates = [s for s in exercise.misconceptions.values() if result.name in s.fails and s.of in tasks]
                known = [
                    (misconception, self._references.shown(exercise, misconception, plan, workers, public))
                    for misconception in candidates
                ]
                misconceptions = fitting(check, submitted, statuses, known, exercise.checks)
            hinted.append(with_hint(result, misconceptions) if misconceptions else result)
        return hinted

    def _lasting(self, exercise: Exercise, answered: Sequence[Answered]) -> bool:
        """Whether nothing ended by time or memory: of the submission, or of what hints come from."""
        findings = [*(a.finding for a in answered), *self._references.findings(exercise.id)]
        poisons = [f.poison for f in findings if isinstance(f, Observation) and isinstance(f.poison, Poisoned)]
        faults = [f for f in findings if isinstance(f, Fault)]
        return all(map(lasting, faults)) and all(p.lasting for p in poisons)


def judge_answers(course: Course, exercise: Exercise, answered: Sequence[Answered], student: str) -> list[Result]:
    """Return a result for each question of an exercise, on the numbers drawn for this student."""
    found = {id(a.ask.of): a for a in answered}
    return [_answer(course, exercise, q, found[id(q)], student) for q in exercise.questions.values()]


def _answer(course: Course, exercise: Exercise, question: Question, answered: Answered, student: str) -> Result:
    finding, params = answered.finding, course.params(question, student)
    raw = finding[0].value if isinstance(finding, list) and finding else None
    if not course.solved:
        return answers.read_back(question, params, raw)
    result = answers.judge(question, params, exercise.misconceptions.values(), raw)
    if isinstance(finding, Fault) and finding.kind == "broken" and result.status != "broken":
        return result.model_copy(update={"status": "broken", "reason": finding.message})
    return result


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
    """Return the picoseconds of a timing call whose program has a time."""
    call, seen = answer.ask.of, answer.finding
    if not (isinstance(call, Call) and call.timing and isinstance(seen, Observation)):
        return None
    try:
        return laid_out(seen.operations, call.timing).step
    except Exception:  # it has none, or the clock failed: a check that needs it says which
        return None
