"""Grade a text of an author with all checks, and again with the public checks and inputs."""

from __future__ import annotations

from collections.abc import Iterable

from grader.batch.grade import Grader
from grader.batch.reporting import exercise_report
from grader.batch.running import collect
from grader.batch.verdicts import judge_answers
from grader.common.result import ExerciseReport
from grader.intake.submission import Submission
from grader.judging.seen import AskFinding


def graded_and_public(
    grader: Grader, submission: Submission, name: str, known: Iterable[AskFinding] = (), *, only_known: bool = False
) -> tuple[ExerciseReport, ExerciseReport, list[AskFinding]]:
    """Return (report on all checks, report on public checks and inputs, all answers) for one exercise.

    Args:
        known: answers from earlier runs, for requests that need not be sent again.
        only_known: send no request, and judge only the known answers.
    """
    found, exercise = {a.ask.answer_key: a.finding for a in known}, grader.course.exercise(name)
    plans = {
        public: [ask for ask in grader.plan(name, public) if not only_known or ask.answer_key in found]
        for public in (False, True)
    }
    every = {ask.answer_key: ask for ask in (*plans[True], *plans[False])}
    with grader.pool.lent() as workers:
        left = [ask for key, ask in every.items() if key not in found]
        new, notes = collect(workers, submission.sources[name], left) if left else ([], [])
        found |= {a.ask.answer_key: a.finding for a in new}
        reports = []
        for public in (False, True):
            answered = [AskFinding(ask, found[ask.answer_key]) for ask in plans[public]]
            checked = grader.judge.checked(exercise, answered, workers, public)
            own = judge_answers(grader.course, exercise, answered, submission.student, submission.sources[name])
            results = [*checked.results, *own]
            reports.append(
                exercise_report(grader.basis, submission, name, results, checked.evidence, notes, public=public)
            )
        return reports[0], reports[1], [AskFinding(ask, found[key]) for key, ask in every.items()]
