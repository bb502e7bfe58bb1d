"""Find the score changes of a regrade, with their reasons, and how far a run changes the scores of the whole class.

A *regrade* is a run that changes the scores of an earlier run. The *history* is the list of the changes of all
regrades. The database keeps the history. The files ``changes.csv`` (oldest regrade first) and ``changes.html`` (newest
regrade first) show the history.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from grader.batch.overrides import same_work, summed, with_sums
from grader.common.result import ExerciseReport, HandIn, Report, Result, sum_of_points
from grader.common.text import a_few
from grader.course.config import CourseError
from grader.reports.moved import Effect, left_to_a_person
from grader.reports.points import counted, tidy
from grader.reports.tables import csv_cell, csv_lines
from grader.reports.wording import by_hand_text

FILE = "changes.csv"
TOTAL = "score"
BONUS = "bonus"
SUMS = (TOTAL, BONUS)
COURSE = "the course changed (exercise, checks or course.yaml)"
SAID = {
    "submission": "the submission changed",
    "course": COURSE,
    "grader": "the grader changed",
    "isolation": "the isolation changed",
    "backend": "the devices changed",
}
MISSING = "this run's folders lack the file that an earlier run graded"
NOT_SAID = "no known cause: the report on file does not record the course and versions that graded it"
FAILED_BEFORE = "the grader itself failed in the earlier run"
FAILS_NOW = "the grader itself failed in this run"
NO_CAUSE = "no known cause: submission, course and versions are unchanged; review the check with shardlings appeal"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one student's points by a regrade.

    Attributes:
        what: "EXERCISE/CHECK", "EXERCISE", "late MODULE" (a late penalty), "bonus" or "score". "bonus" is the sum of
            the points of extension exercises (extra credit), and "score" is the sum of all other points.
        before, after: the points earned in the earlier run and in this run.
        of: the most points that can be earned in this run.
    """

    student: str
    what: str
    before: float
    after: float
    of: float
    why: str

    @property
    def by(self) -> float:
        return round(self.after - self.before, 6)

    @property
    def line(self) -> str:
        """The change as text, such as ``alice: c3/value 2 -> 0 of 2: the submission changed``."""
        return f"{self.student}: {self.what} {tidy(self.before)} -> {tidy(self.after)} of {tidy(self.of)}: {self.why}"


def changes_of(old: Report, new: Report) -> list[Change]:
    """Return the changes of a student's report: checks, exercises and penalties, then the bonus, then the score.

    If nothing changed, return []. Otherwise the last item is the score, even if it did not change. An exercise that is
    graded for the first time does not count as a change.
    """
    before = {e.exercise: e for e in old.exercises}
    after = {e.exercise: e for e in new.exercises}
    parts: list[Change] = []
    for name, exercise in after.items():
        if name in before:
            parts += _of_exercise(new.student, before[name], exercise)
    for name, exercise in before.items():
        if name not in after:
            parts.append(Change(new.student, name, exercise.earned, 0, 0, "the course no longer has this exercise"))
    parts += [*_of_bonuses(old, new), *_of_hand_ins(old, new)]
    was = as_it_stood(old, new)
    if not parts and abs(was.earned - new.earned) < 1e-6:
        return []
    reasons = "; ".join(dict.fromkeys(change.why for change in parts)) or NO_CAUSE
    if abs(was.bonus - new.bonus) > 1e-6:
        most = sum_of_points(e.points for e in new.exercises if e.extension)
        parts.append(Change(new.student, BONUS, was.bonus, new.bonus, most, reasons))
    before, after = (round(one.earned - one.bonus, 6) for one in (was, new))
    return [*parts, Change(new.student, TOTAL, before, after, new.points, reasons)]


def as_it_stood(old: Report, new: Report) -> Report:
    """Return the old report, plus the new report's exercises and late penalties that the old report lacks."""
    known, modules = {e.exercise for e in old.exercises}, {e.module for e in old.exercises}
    first = [e for e in new.exercises if e.exercise not in known]
    late = [one for one in new.hand_ins if one.module not in modules]
    earned = old.earned + sum(e.earned for e in first) - sum(one.penalty for one in late)
    stood = {"exercises": [*old.exercises, *first], "hand_ins": [*old.hand_ins, *late], "earned": round(earned, 6)}
    return old.model_copy(update=stood)


def _of_exercise(student: str, before: ExerciseReport, after: ExerciseReport) -> Iterator[Change]:
    why = ", ".join(causes_of(before, after))
    old = {r.name: r for r in before.results}
    new = {r.name: r for r in after.results}
    found = 0.0
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        if _differ(was, now):
            earned = (was.earned if was else 0.0, now.earned if now else 0.0)
            found += earned[1] - earned[0]
            yield Change(
                student, f"{after.exercise}/{name}", *earned, now.points if now else 0.0, _of_result(was, now, why)
            )
    rest = round(after.earned - before.earned - found, 6)
    if rest or before.by_hand != after.by_hand:
        text = _hand(before, after) or why
        yield Change(student, after.exercise, before.earned, after.earned, after.points, text)


def _of_bonuses(old: Report, new: Report) -> Iterator[Change]:
    """Yield a change for each exercise that became a bonus exercise, or that is no longer one."""
    before = {e.exercise: e.extension for e in old.exercises}
    for e in new.exercises:
        if before.get(e.exercise, e.extension) != e.extension:
            text = "an exercise is now a bonus" if e.extension else "an exercise is no longer a bonus"
            yield Change(new.student, e.exercise, e.earned, e.earned, e.points, text)


def _differ(was: Result | None, now: Result | None) -> bool:
    if was is None or now is None:
        return True
    return (was.status, was.earned, was.points, was.by_hand) != (now.status, now.earned, now.points, now.by_hand)


def _of_result(was: Result | None, now: Result | None, why: str) -> str:
    if was is None or now is None:
        return f"{'new' if was is None else 'removed'}; {why}"
    if hand := _hand(was, now):
        return hand
    if "broken" in (was.status, now.status):
        ours = FAILED_BEFORE if was.status == "broken" else FAILS_NOW
        why = ours if why == NO_CAUSE else f"{ours}; {why}"
    status = f"{was.status} -> {now.status}; " if was.status != now.status else ""
    worth = f"worth {tidy(was.points)} -> {tidy(now.points)}; " if was.points != now.points else ""
    kept = " (the points were set by hand and do not change)" if now.by_hand else ""
    return f"{status}{worth}{why}{kept}"


def _hand(was: Result | ExerciseReport, now: Result | ExerciseReport) -> str:
    """Return the reason if a person changed the points; '' if no person changed them."""
    before, after = was.by_hand, now.by_hand
    same = before is not None and after is not None and (before.by, before.reason) == (after.by, after.reason)
    # A person may change the points without changing the author and the reason.
    if was.earned == now.earned and (same or before == after):
        return ""
    if after is not None:
        return by_hand_text(after, now.status if isinstance(now, Result) else "")
    return f"no longer {by_hand_text(before).split(';')[0]}" if before else ""


def causes_of(before: ExerciseReport, after: ExerciseReport) -> list[str]:
    """Return the reasons for a changed verdict, such as a changed submission or course; NO_CAUSE if none is known."""
    if not before.basis or not after.basis:
        return [NOT_SAID]
    # ``basis`` names the backend only if the backend is not the CPU.
    parts = dict.fromkeys([*after.basis, "backend"])
    differ = [part for part in parts if before.basis.get(part) != after.basis.get(part)]
    said = [
        MISSING if part == "submission" and lacks_file(before, after) else SAID[part] for part in differ if part in SAID
    ]
    if "versions" in differ:
        said.append(f"versions changed ({before.basis.get('versions', 'unknown')} -> {after.basis['versions']})")
    return said or [NO_CAUSE]


def lacks_file(before: ExerciseReport, after: ExerciseReport) -> bool:
    """Return whether the submission no longer has a file for an exercise of an earlier report."""
    return bool(before.basis.get("submission")) and after.basis.get("submission") == ""


def _of_hand_ins(old: Report, new: Report) -> Iterator[Change]:
    """Yield a change for each late penalty that changed, except in modules that are graded for the first time."""
    before = {one.module: one for one in old.hand_ins}
    after = {one.module: one for one in new.hand_ins}
    graded = {e.module for e in old.exercises}
    for module in dict.fromkeys([*before, *after]):
        was, now = (table.get(module, HandIn(module=module, submitted="", source="")) for table in (before, after))
        if was.penalty != now.penalty and module in graded:
            text = f"{was.text or 'no penalty'} -> {now.text or 'no penalty'}"
            yield Change(new.student, f"late {module}", -was.penalty, -now.penalty, 0.0, text)


# -- the history -------------------------------------------------------------------------------

COLUMNS = ("regrade", "when", *(f.name for f in fields(Change)))


@dataclass(frozen=True)
class RecordedChange:
    """A change in the history, with the number (from 1) and the time (ISO 8601, UTC) of the regrade that made it."""

    regrade: int
    when: str
    change: Change

    @classmethod
    def of(cls, row: Sequence[Any]) -> RecordedChange:
        """Return the recorded change for a row of ``Database.history``."""
        regrade, when, *change = row
        return cls(regrade, when, Change(*change))


def read_history(folder: Path) -> list[RecordedChange]:
    """Return the history from the file ``changes.csv`` of an older version of the grader; [] if there is no file.

    Raises CourseError if the file was edited or cannot be read, or if ``folder`` is a file.
    """
    path = folder / FILE
    try:
        lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        if tuple(lines[0]) != COLUMNS:
            raise ValueError
        return [_recorded(line) for line in lines[1:]]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise CourseError(f"{folder} is a file, not a folder of reports") from None
    except OSError as error:
        raise CourseError(f"{path}, the history of changes, cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError, LookupError, csv.Error):
        raise CourseError(f"{path}, the history of changes, was edited; restore it or move it away") from None


def _recorded(line: list[str]) -> RecordedChange:
    regrade, when, student, what, before, after, of, why = line
    return RecordedChange(int(regrade), when, Change(student, what, float(before), float(after), float(of), why))


def _cells(change: Change) -> tuple[object, ...]:
    return tuple(csv_cell(value) for value in astuple(change))


def history_csv(history: Iterable[RecordedChange]) -> Iterator[str]:
    """Return the lines of ``changes.csv``.

    A text that a spreadsheet would read as a formula gets a leading apostrophe. Numbers never get an apostrophe.
    """
    return csv_lines(chain([COLUMNS], ((one.regrade, one.when, *_cells(one.change)) for one in history)))


def by_regrade(history: Iterable[RecordedChange]) -> Iterator[tuple[int, str, Iterator[Change]]]:
    """Yield each regrade's number, time and changes.

    The caller must read the changes before it takes the next regrade.
    """
    for regrade, rows in groupby(history, key=lambda one: one.regrade):
        first = next(rows)
        yield regrade, first.when, (one.change for one in chain([first], rows))


def by_student(changes: Iterable[Change]) -> Mapping[str, list[Change]]:
    """Return each student's changes, in the order of ``changes``."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.student, []).append(change)
    return found


# -- the whole class ---------------------------------------------------------------------------

BY_HAND = "points were set by hand"
LATE = "late penalties changed"


SINCE = "Since the last run, causes other than new submissions"


class ChangedRules:
    """The effect of everything that changed since the last run, except new submissions, on the scores of a class.

    Examples are a missing file, a changed check, weight, tolerance, late policy or extension, and a new version of the
    grader.
    """

    def __init__(self) -> None:
        self._effect = Effect()
        self._causes: Counter[str] = Counter()

    def add(self, old: Report | None, new: Report) -> None:
        """Add a student. ``old``: the student's report of the last run, if there is one."""
        before = with_new_work(old, new) if old else new
        self._effect.add(before, new)
        if (before.earned, before.points, before.handed_in) != (new.earned, new.points, new.handed_in):
            self._causes.update(list(dict.fromkeys(_causes(before, new))))

    def warnings(self) -> list[str]:
        """Return a line if the effect on the class is large (``Effect.is_large``); else []."""
        causes = [f"{cause} ({counted(n, 'student')})" for cause, n in self._causes.most_common()]
        return self._effect.warnings(SINCE, f"Causes: {a_few(causes)}.")


def with_new_work(old: Report, new: Report) -> Report:
    """Return the old report, updated only where the student's work is new or points waited for a person's decision.

    So new work causes no difference between the returned report and the new report. A missing file is no new work,
    because staff may have named only the folders of a later module.
    """
    stood = as_it_stood(old, new)
    before, now = ({e.exercise: e for e in report.exercises} for report in (old, new))
    there = [e for e in new.exercises if e.exercise not in before or not lacks_file(before[e.exercise], e)]
    same = same_work(new.model_copy(update={"exercises": there}), old)
    exercises = [_with_new_work(e, now.get(e.exercise, e)) for e in stood.exercises]
    hand_ins = [one for one in stood.hand_ins if same.get(one.module, True)]
    hand_ins += [one for one in new.hand_ins if not same.get(one.module, True)]
    points = sum_of_points(e.points for e in exercises if not e.extension)
    return with_sums(stood.model_copy(update={"exercises": exercises, "hand_ins": hand_ins, "points": points}))


def _with_new_work(old: ExerciseReport, new: ExerciseReport) -> ExerciseReport:
    if old.basis.get("submission", "unknown") != new.basis.get("submission") and not lacks_file(old, new):
        return new
    names = {r.name for r in old.results if left_to_a_person(r) and not r.by_hand}
    if not names:
        return old
    if old.by_hand or new.by_hand:
        return new
    now = {r.name: r for r in new.results if r.name in names}
    return summed(old, [now.get(r.name, r) for r in old.results])


def _causes(before: Report, after: Report) -> list[str]:
    was = {e.exercise: e for e in before.exercises}
    found = [COURSE] if was.keys() - {e.exercise for e in after.exercises} else []
    for new in after.exercises:
        old = was[new.exercise]
        # The class's mean leaves out students who handed in nothing, so a change of ``handed_in`` changes the mean.
        if _counts_differ(old, new):
            found += [BY_HAND] if _by_hand(old) != _by_hand(new) else causes_of(old, new)
    penalties = [{one.module: one.penalty for one in report.hand_ins if one.penalty} for report in (before, after)]
    return [*found, *([LATE] if penalties[0] != penalties[1] else [])]


def _counts_differ(old: ExerciseReport, new: ExerciseReport) -> bool:
    """Return True if the class page counts the two reports on one exercise differently."""
    return any(getattr(old, name) != getattr(new, name) for name in ("earned", "points", "extension", "handed_in"))


def _by_hand(exercise: ExerciseReport) -> dict[str, float]:
    own = {"": exercise.earned} if exercise.by_hand else {}
    return own | {r.name: r.earned for r in exercise.results if r.by_hand}
