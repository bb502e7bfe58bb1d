"""Find wrong answers that would be right with another student's numbers, and so may be copied from that student.

In some courses, questions have different numbers for each student. Only the staff sees the suspicious answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from grader.common.result import Report
from grader.course.loading import Course
from grader.judging.answers import OfAClass

Suspicion = dict[str, Any]
"""A wrong answer. Keys: ``student``, ``question``, and ``fits``, the other students whose numbers fit the answer."""


class Suspicions:
    """Collects wrong answers, one report at a time. If all students get equal numbers, this object collects nothing."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._drawn = course.config.variants.mode == "per_student"
        # (exercise, question) -> (position among all wrong answers, student, answer) of each wrong answer.
        self._wrong: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
        self._count = 0

    def add(self, report: Report) -> None:
        known = self._course.module_of if self._drawn else ()
        for part in report.exercises:
            questions = self._course.exercise(part.exercise).questions if part.exercise in known else ()
            for result in part.results:
                failed = result.kind != "check" and result.status == "failed" and result.actual
                if failed and result.name in questions:
                    answer = str(result.actual).removeprefix("read as ")
                    own = self._wrong.setdefault((part.exercise, result.name), [])
                    own.append((self._count, report.student, answer))
                    self._count += 1

    def found(self, students: Sequence[str]) -> list[Suspicion]:
        """Return the wrong answers that would be right with another student's numbers, in the order of the reports."""
        numbered = (one for exercise, name in self._wrong for one in self._fitting(exercise, name, students))
        return [suspicion for _, suspicion in sorted(numbered, key=lambda one: one[0])]

    def _fitting(self, exercise: str, name: str, students: Sequence[str]) -> Iterator[tuple[int, Suspicion]]:
        """Yield (position among the wrong answers to all questions, suspicious answer) for one question."""
        question = self._course.exercise(exercise).questions[name]
        drawn = OfAClass(question, {s: self._course.params(question, s) for s in students})
        for number, student, answer in self._wrong[exercise, name]:
            if others := drawn.fits_others(student, answer):
                yield number, {"student": student, "question": name, "fits": others}
