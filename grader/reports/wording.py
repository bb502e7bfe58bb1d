"""Texts about results, for students and for staff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from grader.common.result import ByHand, ExerciseReport, Report, Result
from grader.reports.points import counted, percentage, score, short_score, show_percent, tidy
from grader.reports.untrusted import clean, show_data

Audience = Literal["student", "staff"]
Graded = TypeVar("Graded", Report, ExerciseReport)

NO_FILE = "nothing was handed in"
UNFINISHED = ("not written yet", "not answered yet", NO_FILE)
SHORT = 5  # expected or actual data with fewer characters, such as "2", may occur in a reason by chance
SAME_HINT = "as above"
BLOCKED = "this check needs an earlier check, which did not pass"


def seen_by(audience: Audience, graded: Graded) -> Graded:
    """Return the parts of a report that this audience may see. Every renderer for students calls this first.

    A hint that several results of an exercise share is shown once. The other results show ``SAME_HINT``.
    """
    seen = graded if audience == "staff" else graded.for_student()
    if isinstance(seen, ExerciseReport):
        return _with_hints_once(seen)
    return seen.model_copy(update={"exercises": [_with_hints_once(e) for e in seen.exercises]})


def _with_hints_once(exercise: ExerciseReport) -> ExerciseReport:
    first = {result.hint: result for result in reversed(exercise.results) if result.hint}
    return exercise.model_copy(
        update={
            "results": [
                result if first.get(result.hint, result) is result else result.model_copy(update={"hint": SAME_HINT})
                for result in exercise.results
            ]
        }
    )


def status_word(result: Result, audience: Audience) -> str:
    """Return the word for a result's status. Students see "pending" if the grader failed."""
    if result.status == "waiting":
        return "by hand" if result.by_hand else "needs grading"
    return "pending" if result.status == "broken" and audience == "student" else result.status


def reason_text(result: Result) -> str:
    """Return the reason why the result did not pass, or '' for an answer in words that a person has graded."""
    if result.status == "waiting" and result.by_hand:
        return ""
    return result.reason or (BLOCKED if result.status == "blocked" else "")


def place_text(result: Result) -> str:
    return "" if result.where in result.reason else f"at {result.where}"


def data_pairs(result: Result) -> list[tuple[str, str]]:
    """Return (name, text) pairs for a failure or a written answer: expected data, actual data, staff notes."""
    pairs = (("expected", result.expected), ("yours", result.actual), ("for staff", result.staff or None))
    if result.status == "waiting":  # a person grades this answer, so show all of it
        named = zip(("a good answer", "yours", "for staff"), (data for _, data in pairs), strict=True)
        rubric = [("rubric", rubric_text(result))] if result.rubric else []
        return [*((name, show_data(data, 4000)) for name, data in named if data is not None), *rubric]
    shown = [(name, data) for name, data in pairs if result.status == "failed" and data is not None]
    return [(name, with_unit(data, result.unit if name != "for staff" else "")) for name, data in shown]


def with_unit(data: object, unit: str) -> str:
    """Return a value as one line of text. If it is a number with a unit, group its digits: ``266,820 B``."""
    if unit and isinstance(data, int | float):
        return f"{data:,.0f} {clean(unit, 20)}" if abs(data) >= 10 else f"{show_data(data)} {clean(unit, 20)}"
    return show_data(data)


def rubric_text(result: Result) -> str:
    """Return the items of a rubric. After a person graded the answer, each item has a check mark or a cross."""
    marks = {True: "✓ ", False: "✗ "} if result.by_hand else {True: "", False: ""}
    items = (f"{marks[i.given]}{i.name} ({counted(i.points, 'point')}): {i.text}" for i in result.rubric)
    return "; ".join(items)


def unstated_pairs(result: Result) -> list[tuple[str, str]]:
    """Return the ``data_pairs`` of a result. Expected and actual data are left out if the reason contains both."""
    pairs, reason = data_pairs(result), _alike(reason_text(result))
    repeated = all(
        len(data) >= SHORT and _alike(data) in reason for name, data in pairs if name in ("expected", "yours")
    )
    return [pair for pair in pairs if not repeated or pair[0] == "for staff"]


def _alike(text: str) -> str:
    """Return the text in a form for comparisons: with equal brackets for lists and tuples, and single spaces."""
    return " ".join(text.translate(str.maketrans("[]", "()")).split())


def count_notes(report: Report) -> int:
    """Return the number of notes in a report: the notes on the submission plus the notes on its exercises."""
    return len(report.notes) + sum(len(e.notes) for e in report.exercises)


def is_unfinished(result: Result) -> bool:
    """Return whether the result failed because the learner has written or answered nothing yet."""
    return any(word in result.reason for word in UNFINISHED)


def is_begun(exercise: ExerciseReport) -> bool:
    """Return whether the learner wrote anything for the exercise. Unfinished code and blank answers do not count."""
    return exercise.handed_in and any(
        r.status in ("passed", "broken", "waiting")
        or r.actual is not None
        or (r.status == "failed" and not is_unfinished(r))
        for r in exercise.results
    )


def has_file(exercise: ExerciseReport) -> bool:
    """Return False if the results say that the submission has no file for the exercise."""
    results = exercise.results
    return exercise.handed_in or (bool(results) and not any(NO_FILE in result.reason for result in results))


def first_failure(exercise: ExerciseReport) -> Result | None:
    """Return the first failed or broken result; None if there is none.

    Results of parts in which the learner wrote something come before results of unfinished parts.
    """
    failed = [r for r in exercise.results if r.status in ("failed", "broken")]
    return min(failed, key=is_unfinished, default=None)


# earned points


def percent_of(report: Report) -> float | None:
    """Return the earned percentage of all points except bonus points; None if there are only bonus points."""
    return percentage(report.earned - report.bonus, report.points) if report.points > 0 else None


def class_percent_of(report: Report) -> float | None:
    """Return the percentage that counts in the statistics of a class; None if the student handed in nothing."""
    return percent_of(report) if report.handed_in else None


def score_of(report: Report) -> str:
    """Return a score such as ``2 / 8 + 1.5 bonus points``.

    If the report has only extensions, return a text such as ``1.5 of 4 bonus points``.
    """
    bonus = sum(e.points for e in report.exercises if e.extension)
    if report.points <= 0 and bonus > 0:
        return f"{tidy(report.bonus)} of {counted(bonus, 'bonus point')}"
    plain = score(report.earned - report.bonus, report.points)
    if report.unjudged > 0:
        seen = sum(e.points - e.unjudged for e in report.exercises if not e.extension)
        plain += f"; {tidy(seen)} of these points could be judged on this machine"
    return f"{plain} + {counted(report.bonus, 'bonus point')}" if report.bonus > 0 else plain


def worth_of(exercise: ExerciseReport) -> str:
    """Return the text beside an exercise's title, such as ``2/8`` or ``bonus 2/8``.

    If this installation cannot judge all answers, the text is like ``3 of 3 checks pass``.
    """
    if not_judged(exercise.results):
        return checked_text(exercise.results)
    return ("bonus " if exercise.extension else "") + short_score(exercise.earned, exercise.points)


def points_of(result: Result, written: Callable[[float, float], str] = score) -> str:
    """Return text for a result's points: earned and possible points, or only possible points if it was not judged."""
    return counted(result.points, "point") if not_judged([result]) else written(result.earned, result.points)


def standing_of(report: Report) -> str:
    """Return the last line of a report: the score, or the ``checked_text`` if not all answers can be judged."""
    results = [r for e in report.exercises for r in e.results]
    if not_judged(results):
        return checked_text(results)
    percent = None if report.unjudged > 0 else percent_of(report)  # a percentage would look like a grade
    return f"Score: {score_of(report)}" + ("" if percent is None else f" ({show_percent(percent)})")


def not_judged(results: Sequence[Result]) -> list[Result]:
    """Return the questions that this installation cannot judge because it lacks the right answers."""
    return [r for r in results if r.kind != "check" and r.status == "blocked"]


def checked_text(results: Sequence[Result]) -> str:
    """Return text such as ``3 of 3 checks pass; 2 answers read, not judged yet; 1 answer cannot be right``."""
    checks = [r for r in results if r.kind == "check"]
    answers = [r for r in results if r.kind != "check"]
    passed = sum(r.status == "passed" for r in checks)
    read = sum(r.status == "blocked" and r.actual is not None for r in answers)
    wrong = sum(r.status == "failed" for r in answers)
    left = sum(r.status not in ("failed", "waiting") and r.actual is None for r in answers)
    parts = [
        (len(checks), f"{passed} of {counted(len(checks), 'check')} pass"),
        (read, f"{counted(read, 'answer')} read, not judged yet"),
        (wrong, f"{counted(wrong, 'answer')} cannot be right"),
        (1, _to_be_read(answers)),
        (left, f"{left} not answered yet"),
    ]
    return "; ".join(text for count, text in parts if count and text)


def passing_text(results: Sequence[Result]) -> str:
    """Return a text such as ``4 of 7 pass``, followed by the number of answers that the staff must read.

    If this installation cannot judge some answers, return the ``checked_text``.
    """
    if not_judged(results):
        return checked_text(results)
    judged = [r for r in results if r.status != "waiting"]
    passing = f"{sum(r.status == 'passed' for r in judged)} of {len(judged)} pass" if judged else ""
    return "; ".join(filter(None, (passing, _to_be_read(results))))


def _to_be_read(results: Sequence[Result]) -> str:
    """Return a text such as ``1 answer for the staff to read``; '' if there is no such answer."""
    waiting = sum(r.status == "waiting" and not r.by_hand for r in results)
    return f"{counted(waiting, 'answer')} for the staff to read" if waiting else ""


def by_hand_text(of: ByHand, status: str = "") -> str:
    """Return a text such as ``set by hand by Bob: the reason; the grader gave 0``."""
    text = f"set by hand by {clean(of.by, 100)}: {clean(of.reason, 1000)}"
    return text if status == "waiting" else f"{text}; the grader gave {tidy(of.graded)}"


def remarks(report: Report) -> list[str]:
    """Return a line for each change to the grader's points: late penalties, and points set by hand."""
    late = [f"{one.module}: {one.text}" for one in report.hand_ins if one.text]
    hand = [
        f"{name}: {by_hand_text(of, status)}"
        for e in report.exercises
        for name, of, status in (
            (e.exercise, e.by_hand, ""),
            *((f"{e.exercise}/{r.name}", r.by_hand, r.status) for r in e.results),
        )
        if of is not None
    ]
    return [*late, *hand]
