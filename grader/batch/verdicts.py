"""Judge findings (observations, outcomes, faults): make results of checks, with hints, and results of questions.

To find the hint for a failed check, the grader runs the misconceptions (known mistakes) and compares their findings
with the submission's findings. ``References`` keeps the findings of the misconceptions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from grader.batch.poison import Poisoned
from grader.batch.remembering import Checked
from grader.batch.replies import lasting
from grader.batch.running import collect
from grader.batch.workers import Workers
from grader.common.observation import Outcome
from grader.common.result import Evidence, Result
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.exercise import Call, Check, Code, Exercise, Misconception, Question, Task
from grader.expect import laid_out
from grader.intake.facts import written_code
from grader.intake.submission import Chunk, Source
from grader.judging import answers
from grader.judging.judge import WRONG_ON_HIDDEN, judge_checks
from grader.judging.misconceptions import Attempt, fitting
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding, Finding
from grader.wire.limits import MAX_TEXT


class Judge:
    """Judges the checks of a course's exercises. To choose hints, ``references`` runs the misconceptions."""

    def __init__(self, course: Course, references: References) -> None:
        self._course, self._references = course, references

    def checked(self, exercise: Exercise, answered: list[AskFinding], workers: Workers, public: bool) -> Checked:
        """Return the results of all checks, with hints, and the evidence for the results.

        Args:
            answered: the submission's findings for the grader's requests.
            workers: the workers that run a misconception if it was not run before.
            public: True if the submission is judged on public data only.
        """
        results = judge_checks(exercise, answered, public=public)
        if self._course.solved:
            results = self.with_hints(exercise, results, answered, workers, public)
        evidence = [_evidence(a) for a in answered if not isinstance(a.ask.of, Question)]
        return Checked(results=results, evidence=evidence, lasting=self._lasting(exercise, answered))

    def with_hints(
        self, exercise: Exercise, results: list[Result], answered: list[AskFinding], workers: Workers, public: bool
    ) -> list[Result]:
        """Return the results with the hints of misconceptions that explain failed checks."""
        attempt_of = partial(self._references.attempt, exercise, workers)
        statuses, submitted = {result.name: result.status for result in results}, Attempt(answered)
        hinted = []
        for result in results:
            misconceptions: list[Misconception] = []
            if result.status == "failed" and result.reason != WRONG_ON_HIDDEN:
                check = exercise.checks[result.name]
                tasks = [task for task in check.tasks if _executed(submitted, task)]
                known = [
                    misconception
                    for misconception in exercise.misconceptions.values()
                    if misconception.of in tasks and may_explain(misconception, check, statuses, public)
                ]
                misconceptions = fitting(check, submitted, statuses, known, exercise.checks, attempt_of)
            hinted.append(answers.with_hint(result, misconceptions) if misconceptions else result)
        return hinted

    def _lasting(self, exercise: Exercise, answered: Sequence[AskFinding]) -> bool:
        """Return True if a new run of the submission and of the misconceptions would give equal results."""
        findings = [*(a.finding for a in answered), *self._references.findings(exercise.id)]
        poisons = [f.observation.poison for f in findings if f.observation]
        return all(p.lasting for p in poisons if isinstance(p, Poisoned)) and all(
            lasting(f.fault, (kind for outcome in f.outcomes for kind in outcome.kinds)) for f in findings
        )


def judge_answers(
    course: Course, exercise: Exercise, answered: Sequence[AskFinding], student: str, source: Source | None
) -> list[Result]:
    """Return a result for each question of an exercise, judged with the numbers drawn for this student.

    The submission's ``source`` is needed, because the answer to some questions is the code of a task.
    """
    found = {id(a.ask.of): a.finding for a in answered}
    results = []
    for question in exercise.questions.values():
        finding = found[id(question)] if source else Finding()  # without a file, nothing is answered yet
        if isinstance(question.answer, Code):
            code = written_code(source, question.answer.task) if source else ""
            finding = Finding(outcomes=[Outcome(value=code[:MAX_TEXT])])
        results.append(_judged_answer(course, exercise, question, finding, student))
    return results


def _judged_answer(course: Course, exercise: Exercise, question: Question, finding: Finding, student: str) -> Result:
    params, fault = course.params(question, student), finding.fault
    raw = finding.outcomes[0].value if finding.outcomes else None
    if course.solved:
        result = answers.judge_answer(question, params, exercise.misconceptions.values(), raw)
    else:
        result = answers.read_back(question, params, raw)
    if fault is None or result.status == "broken":
        return result
    status = "broken" if fault.kind == "broken" else "failed"
    return result.model_copy(update={"status": status, "reason": fault.message})


def may_explain(misconception: Misconception, check: Check, statuses: Mapping[str, str], public: bool) -> bool:
    """Return True if a misconception (known mistake) may explain a failed check. If not, the grader need not run it.

    The misconception must name the check in ``fails``. In addition, one of these conditions must be met:

    - The misconception has a function ``gives``, which says whether results can come from the misconception.
    - The submission passes none of the checks in ``fails``.
    - The submission is judged on public data. With this data, the misconception may pass checks that it fails on hidden
      data.
    """
    if check.name not in misconception.fails:
        return False
    return public or bool(misconception.gives) or all(statuses.get(name) != "passed" for name in misconception.fails)


def _executed(submitted: Attempt, task: Task) -> bool:
    """Return True if the code of a task ran: it returned a result or raised an error."""
    faults = [a.finding.fault for a in submitted.answered if a.ask.task == task.name]
    return any(fault is None or fault.kind == "raised" for fault in faults)


def _evidence(answer: AskFinding) -> Evidence:
    ask, observation, fault = answer.ask, answer.finding.observation, answer.finding.fault
    return Evidence(
        task=ask.task, mesh=dict(ask.mesh), dims=dict(ask.dims), secret=ask.hidden_inputs,
        program=observation.program if observation else "", inputs=ask.digest, step=_step(answer),
        ended=fault.message if fault and fault.kind == "crashed" else "",
    )  # fmt: skip


def _step(answer: AskFinding) -> int | None:
    """Return the program's time by the grader's time model (``clock``), in picoseconds; None if there is none."""
    call, observation = answer.ask.of, answer.finding.observation
    if not (isinstance(call, Call) and call.timing and observation):
        return None
    try:
        return laid_out(observation.operations, call.timing).step
    # The error is not reported here, because the checks that use the time report it.
    except Exception:
        return None


def _is_broken(finding: Finding) -> bool:
    return finding.fault is not None and finding.fault.kind == "broken"


@dataclass
class ProgramFindings:
    """The findings (observations, outcomes, faults) of the reference or of a misconception.

    Attributes:
        findings: findings by the key of the request (``Ask.answer_key``).
        attempts: cached results of ``References.attempt``, by the keys of the requests.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    findings: dict[tuple, Finding] = field(default_factory=dict)
    attempts: dict[tuple, Attempt] = field(default_factory=dict)


class References:
    """Findings (observations, outcomes, faults) of references (the author's solutions) and misconceptions.

    Each request is made once, or again after a failure of the machine. No request has hidden inputs. Thread-safe.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], ProgramFindings] = {}
        self._lock = threading.Lock()

    def answered(
        self, exercise: Exercise, misconception: Misconception | None, plan: Sequence[Ask], workers: Workers
    ) -> list[AskFinding]:
        """Return the answers of the solution with this misconception in its task (None: of the unchanged solution).

        Args:
            plan: the requests. Questions and requests with hidden inputs get no answer. With a misconception, only its
                own task gets answers.
        """
        found = self._of(exercise, misconception)
        asks = [a for a in plan if not (a.hidden_inputs or isinstance(a.of, Question))]
        if misconception is not None:
            asks = [a for a in asks if a.task == getattr(misconception.of, "name", "")]
        with found.lock:
            # A failure of the machine may not repeat, so such a request is made again.
            known = {key for key, finding in found.findings.items() if not _is_broken(finding)}
            if left := [a for a in asks if a.answer_key not in known]:
                name = f"{exercise.id}.py"
                source = Source(name, (Chunk(name, reference_source(exercise, {}, misconception)),))
                answered, _ = collect(workers.without_devices(), source, left)
                found.findings |= {a.ask.answer_key: a.finding for a in answered}
            return [AskFinding(a, found.findings[a.answer_key]) for a in asks]

    def attempt(
        self, exercise: Exercise, workers: Workers, misconception: Misconception, asks: Sequence[Ask]
    ) -> Attempt:
        """Return the answers of a submission with this misconception in one task and right solutions in all others."""
        found = self._of(exercise, misconception)
        key = tuple(ask.answer_key for ask in asks)
        if (kept := found.attempts.get(key)) is None:
            others = [ask for ask in asks if ask.task != misconception.of.name]
            right = self.answered(exercise, None, others, workers)
            by_ask = {a.ask.answer_key: a for a in (*right, *self.answered(exercise, misconception, asks, workers))}
            kept = Attempt([by_ask[same] for same in key if same in by_ask])
            if not any(_is_broken(one.finding) for one in by_ask.values()):
                found.attempts[key] = kept
        return kept

    def learn(self, exercise: Exercise, misconception: Misconception | None, answered: Sequence[AskFinding]) -> None:
        """Keep answers of a solution with this misconception (None: the reference), so that it need not run again."""
        found = self._of(exercise, misconception)
        with found.lock:
            found.findings |= {a.ask.answer_key: a.finding for a in answered if not a.ask.hidden_inputs}

    def findings(self, name: str) -> Iterator[Finding]:
        """Yield all findings so far about the programs of an exercise's reference and misconceptions."""
        with self._lock:
            known = [found for (exercise, _), found in self._found.items() if exercise == name]
        for found in known:
            yield from list(found.findings.values())

    def _of(self, exercise: Exercise, misconception: Misconception | None) -> ProgramFindings:
        with self._lock:
            return self._found.setdefault(
                (exercise.id, misconception.name if misconception else None), ProgramFindings()
            )
