"""Measure how much a run changes the scores of a class by causes other than new submissions."""

from __future__ import annotations

from collections import Counter

from grader.batch.changes import COURSE, as_it_stood, causes_of, lacks_file
from grader.batch.overrides import same_work, summed, with_sums
from grader.common.result import ExerciseReport, Report
from grader.common.text import a_few
from grader.reports.moved import Effect, left_to_a_person
from grader.reports.points import counted

BY_HAND = "points were set by hand"
LATE = "late penalties changed"


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
        what = "Since the last run, causes other than new submissions"
        return self._effect.warnings(what, f"Causes: {a_few(causes)}.")


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
    points = round(sum(e.points for e in exercises if not e.extension), 6)
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
        if _differ(old, new):
            found += [BY_HAND] if _by_hand(old) != _by_hand(new) else causes_of(old, new)
    penalties = [{one.module: one.penalty for one in report.hand_ins if one.penalty} for report in (before, after)]
    return [*found, *([LATE] if penalties[0] != penalties[1] else [])]


def _differ(old: ExerciseReport, new: ExerciseReport) -> bool:
    """Return True if the class page counts the two reports on one exercise differently."""
    return any(getattr(old, name) != getattr(new, name) for name in ("earned", "points", "extension", "handed_in"))


def _by_hand(exercise: ExerciseReport) -> dict[str, float]:
    own = {"": exercise.earned} if exercise.by_hand else {}
    return own | {r.name: r.earned for r in exercise.results if r.by_hand}
