"""From what the grader gave to what counts: points given by hand, and what lateness costs.

The grader's verdicts stay in the report as they are; ``overrides.as_graded`` gives them back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.batch.late import Extension, Handed, later_of, penalised
from grader.batch.overrides import Override, overridden, unknown, with_sums
from grader.common.result import Report
from grader.course.config import Config
from grader.course.loading import Course


def none(student: str) -> Extension:
    """Nobody has one."""
    return {}


@dataclass
class Adjustments:
    """What is laid over the grader's verdicts.

    Attributes:
        config: the course's, for its late policy and deadlines; None: there is none.
        overrides: of all students.
        extension: a student's.
        times: by student and module, when work of this run was handed in.
        problems: (student, one line) for each override that needs a person; whole after ``end``.
    """

    config: Config | None = None
    overrides: Sequence[Override] = ()
    extension: Callable[[str], Extension] = none
    times: Mapping[str, Mapping[str, Handed]] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, graded: Report, old: Report | None) -> Report:
        """The report with what counts; the report itself where there is nothing to lay over it.

        Args:
            graded: as the grader gave it.
            old: what is on file of this student.
        """
        return self._adjusted(graded, old)[0]

    def settle(self, graded: Report, old: Report | None) -> Report:
        """The same, and ``problems`` has what a person must look at."""
        settled, problems = self._adjusted(graded, old)
        self.problems += [(graded.student, problem) for problem in problems]
        return settled

    def end(self, students: Sequence[str]) -> None:
        """All reports of a folder, of these students, are settled."""
        self.problems.sort(key=lambda problem: problem[0])
        self.problems[:0] = unknown(self.overrides, students)

    def _adjusted(self, graded: Report, old: Report | None) -> tuple[Report, list[str]]:
        own = [one for one in self.overrides if one.student == graded.student]
        whole, problems = overridden(graded, old, own)
        now = self.times.get(graded.student, {})
        if self.config is not None and (now or (old and old.hand_ins)):
            times = later_of(now, old.hand_ins if old else [], _same_work(graded, old))
            earned = {m.id: sum(e.earned for e in whole.exercises if e.module == m.id) for m in self.config.modules}
            extension = self.extension(graded.student)
            hand_ins = penalised(self.config.late, self.config.modules, earned, times, extension)
            whole = whole.model_copy(update={"hand_ins": hand_ins})
        changed = bool(whole.hand_ins) or whole.exercises != graded.exercises
        return (with_sums(whole) if changed else graded), problems


def as_extensions_are(report: Report, course: Course | None) -> Report:
    """What is a bonus is for the course to say, not for the day of grading; older reports do not say it at all."""
    if course is None:
        return report
    extension = {
        e.exercise: course.exercise(e.exercise).extension if e.exercise in course.module_of else e.extension
        for e in report.exercises
    }
    if all(extension[e.exercise] == e.extension for e in report.exercises):
        return report
    marked = [e.model_copy(update={"extension": extension[e.exercise]}) for e in report.exercises]
    points = round(sum(e.points for e in marked if not e.extension), 6)
    return report.model_copy(update={"exercises": marked, "points": points})


def _same_work(graded: Report, old: Report | None) -> dict[str, bool]:
    """By module, whether its work is what the report on file was made of."""
    if old is None:
        return {}
    before = {e.exercise: e.basis.get("submission") for e in old.exercises}
    same: dict[str, bool] = {}
    for exercise in graded.exercises:
        known = exercise.basis.get("submission") is not None
        equal = known and before.get(exercise.exercise) == exercise.basis.get("submission")
        same[exercise.module] = same.get(exercise.module, True) and equal
    return same
