"""Texts about results, for students and for staff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from grader.common.result import ByHand, ExerciseReport, Report, Result
from grader.reports.points import counted, percentage, score, short_score, show_percent, tidy
from grader.reports.untrusted import clean, show_data

Audience = Literal["student", "staff"]
Graded = TypeVar("Graded", Report, ExerciseReport)

UNFINISHED = ("not written yet", "not answered yet", "nothing was handed in")
SHORT = 5  # shorter data, such as 2, may occur in a reason by chance
BLOCKED = "an earlier check that this one needs did not pass"


def seen_by(audience: Audience, graded: Graded) -> Graded:
    """Return the parts that this audience may see. Every renderer for students begins here."""
    return graded if audience == "staff" else graded.for_student()


def status_word(result: Result, audience: Audience) -> str:
    """Return the word for a status. Students read "pending" for a broken check, because its points are pending."""
    if result.status == "waiting":
        return "by hand" if result.by_hand else "needs grading"
    return "pending" if result.status == "broken" and audience == "student" else result.status


def reason_text(result: Result) -> str:
    """Return the reason why the result did not pass, or '' for a written answer that a person has graded."""
    if result.status == "waiting" and result.by_hand:
        return ""
    return result.reason or (BLOCKED if result.status == "blocked" else "")


def place_text(result: Result) -> str:
    """Return the place of the failure, or '' if the reason contains it."""
    return "" if result.where in result.reason else f"at {result.where}"


def data_pairs(result: Result) -> list[tuple[str, str]]:
    """Return expected and actual data and notes for staff as text, for failed results and written answers only."""
    pairs = (("expected", result.expected), ("yours", result.actual), ("for staff", result.staff or None))
    if result.status == "waiting":  # a person reads this answer, so it is shown in full
        named = zip(("a good answer", "yours", "for staff"), (data for _, data in pairs), strict=True)
        rubric = [("rubric", rubric_text(result))] if result.rubric else []
        return [*((name, show_data(data, 4000)) for name, data in named if data is not None), *rubric]
    return [(name, show_data(data)) for name, data in pairs if result.status == "failed" and data is not None]


def rubric_text(result: Result) -> str:
    """Return the items of a rubric; once a person has graded, the items that are given have a check mark."""
    marks = {True: "✓ ", False: "✗ "} if result.by_hand else {True: "", False: ""}
    items = (f"{marks[i.given]}{i.name} ({counted(i.points, 'point')}): {i.text}" for i in result.rubric)
    return "; ".join(items)


def unstated_pairs(result: Result) -> list[tuple[str, str]]:
    """Return ``data_pairs`` without data that the reason contains, because a page shows both side by side."""
    pairs, reason = data_pairs(result), _alike(reason_text(result))
    repeated = all(
        len(data) >= SHORT and _alike(data) in reason for name, data in pairs if name in ("expected", "yours")
    )
    return [pair for pair in pairs if not repeated or pair[0] == "for staff"]


def _alike(text: str) -> str:
    """Return the text with brackets as parentheses and single spaces, so that lists and line ends compare equal."""
    return " ".join(text.translate(str.maketrans("[]", "()")).split())


def count_notes(report: Report) -> int:
    """Return the number of notes of the submission and of its exercises."""
    return len(report.notes) + sum(len(e.notes) for e in report.exercises)


def is_unfinished(result: Result) -> bool:
    """Return whether the failure is that nothing was written or answered yet."""
    return any(word in result.reason for word in UNFINISHED)


def is_begun(exercise: ExerciseReport) -> bool:
    """Return whether there is anything to judge: a result that passed, failed because of the code, or was read."""
    return exercise.handed_in and any(
        r.status in ("passed", "broken", "waiting")
        or r.actual is not None
        or (r.status == "failed" and not is_unfinished(r))
        for r in exercise.results
    )


def first_failure(exercise: ExerciseReport) -> Result | None:
    """Return the first failure of written code, else the first part that is not written yet, or None."""
    failed = [r for r in exercise.results if r.status in ("failed", "broken")]
    return min(failed, key=is_unfinished, default=None)


# earned points


def percent_of(report: Report) -> float | None:
    """Return the percentage of the points, without bonus. Return None if the report has only bonus points."""
    return percentage(report.earned - report.bonus, report.points) if report.points > 0 else None


def score_of(report: Report) -> str:
    """Return ``2 / 8``, ``2 / 8 + 1.5 bonus points``, or ``1.5 of 4 bonus points`` for extensions alone."""
    bonus = sum(e.points for e in report.exercises if e.extension)
    if report.points <= 0 and bonus > 0:
        return f"{tidy(report.bonus)} of {counted(bonus, 'bonus point')}"
    plain = score(report.earned - report.bonus, report.points)
    if report.unjudged > 0:
        seen = sum(e.points - e.unjudged for e in report.exercises if not e.extension)
        plain += f"; {tidy(seen)} of these could be judged here"
    return f"{plain} + {counted(report.bonus, 'bonus point')}" if report.bonus > 0 else plain


def worth_of(exercise: ExerciseReport) -> str:
    """Return the score beside an exercise's title: ``2/8``, ``bonus 2/8``, or ``3 of 3 checks pass`` if unjudged."""
    if not_judged(exercise.results):
        return checked_text(exercise.results)
    return ("bonus " if exercise.extension else "") + short_score(exercise.earned, exercise.points)


def points_of(result: Result, written: Callable[[float, float], str] = score) -> str:
    """Return the points beside a result's label: earned and possible, or only possible if it is not judged here."""
    return counted(result.points, "point") if not_judged([result]) else written(result.earned, result.points)


def standing_of(report: Report) -> str:
    """Return the last line of a report. Results that are not judged here count neither as earned nor as lost."""
    results = [r for e in report.exercises for r in e.results]
    if not_judged(results):
        return checked_text(results)
    percent = None if report.unjudged > 0 else percent_of(report)  # a percentage would look like a grade
    return f"Score: {score_of(report)}" + ("" if percent is None else f" ({show_percent(percent)})")


def not_judged(results: Sequence[Result]) -> list[Result]:
    """Return the questions that cannot be judged here because the right answers are not available."""
    return [r for r in results if r.kind != "check" and r.status == "blocked"]


def checked_text(results: Sequence[Result]) -> str:
    """Return text such as ``3 of 3 checks pass; 2 answers read, judged when graded; 1 answer cannot be right``."""
    checks = [r for r in results if r.kind == "check"]
    answers = [r for r in results if r.kind != "check"]
    passed = sum(r.status == "passed" for r in checks)
    read = sum(r.status == "blocked" and r.actual is not None for r in answers)
    wrong = sum(r.status == "failed" for r in answers)
    left = sum(r.status not in ("failed", "waiting") and r.actual is None for r in answers)
    parts = [
        (len(checks), f"{passed} of {counted(len(checks), 'check')} pass"),
        (read, f"{counted(read, 'answer')} read, judged when graded"),
        (wrong, f"{counted(wrong, 'answer')} cannot be right"),
        (1, _to_be_read(answers)),
        (left, f"{left} not answered yet"),
    ]
    return "; ".join(text for count, text in parts if count and text)


def passing_text(results: Sequence[Result]) -> str:
    """Return ``4 of 7 pass``, with the numbers of answers that are judged later or read by the staff."""
    if not_judged(results):
        return checked_text(results)
    judged = [r for r in results if r.status != "waiting"]
    passing = f"{sum(r.status == 'passed' for r in judged)} of {len(judged)} pass" if judged else ""
    return "; ".join(filter(None, (passing, _to_be_read(results))))


def _to_be_read(results: Sequence[Result]) -> str:
    """Return ``1 answer for the staff to read``, or '' if there is none."""
    waiting = sum(r.status == "waiting" and not r.by_hand for r in results)
    return f"{counted(waiting, 'answer')} for the staff to read" if waiting else ""


def by_hand_text(of: ByHand, status: str = "") -> str:
    """Return ``set by hand by Bob: the reason; the grader gave 0``, without the last part for a written answer."""
    text = f"set by hand by {clean(of.by, 100)}: {clean(of.reason, 1000)}"
    return text if status == "waiting" else f"{text}; the grader gave {tidy(of.graded)}"


def remarks(report: Report) -> list[str]:
    """Return the changes to the grader's verdicts: late penalties, and points that were set by hand."""
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
