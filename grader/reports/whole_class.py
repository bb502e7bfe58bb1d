"""Facts about a whole class that tables and pages need before they show the first report."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from grader.common.result import Report
from grader.reports.answers import Answers, NumericAnswers
from grader.reports.people import NO_PEOPLE, UNKNOWN, People
from grader.reports.rates import CheckRate, ExerciseRate
from grader.reports.summary import Summary
from grader.reports.wording import class_percent_of

Detail = tuple[ExerciseRate, list[CheckRate], list[Answers]]


@dataclass(frozen=True)
class SectionRate:
    """A section's results: the number of students who could earn points, and the mean percentage of these students."""

    section: str
    students: int
    mean: float


class WholeClass:
    """Facts about a class, collected from one report at a time, in the order of the students.

    Attributes:
        students: all students with a report.
        courses: titles of the courses that the reports name, in the order of the reports.
        module_of: the module of each exercise, in the order of the reports.
        points: the largest number of points that any student could earn, without extensions (exercises for extra
            credit).
        percents: each student's percentage of the points, without students who could earn no points or handed in
            nothing.
        sections: the ``percents`` of each section's students. The key "" is for students without a section. Empty if
            the roster has no sections.
        late: whether any report has a submission time.
        answers: answers to the questions that ask for a number.

    Args:
        people: names and sections of students, including students without a report.
    """

    def __init__(self, reports: Iterable[Report] = (), people: People = NO_PEOPLE) -> None:
        self.people = people
        self.students: set[str] = set()
        self.courses: dict[str, None] = {}
        self.module_of: dict[str, str] = {}
        self.points = 0.0
        self.percents = array("d")
        self.sections: dict[str, array[float]] = {}
        self._has_sections = any(person.section for person in people.values())
        self.late = False
        self.answers = NumericAnswers()
        for report in reports:
            self.add(report)

    def add(self, report: Report) -> None:
        self.students.add(report.student)
        self.courses[report.course] = None
        self.module_of |= {e.exercise: e.module for e in report.exercises}
        self.points = max(self.points, report.points)
        if (percent := class_percent_of(report)) is not None:
            self.percents.append(percent)
            if self._has_sections:
                section = self.people.get(report.student, UNKNOWN).section
                self.sections.setdefault(section, array("d")).append(percent)
        self.late = self.late or bool(report.hand_ins)
        self.answers.add(report)

    def section_rates(self) -> list[SectionRate]:
        """Return the results of each section; [] if the roster has no sections."""
        return [
            SectionRate(section, len(percents), round(statistics.fmean(percents), 2))
            for section, percents in sorted(self.sections.items())
        ]

    def section_ids(self) -> dict[str, int]:
        """Return a number for each section, and for students without a section; {} if no section is known."""
        if not self.sections:
            return {}
        return {name: number for number, name in enumerate(sorted({"", *(p.section for p in self.people.values())}))}

    def modules(self, summary: Summary) -> list[tuple[str, list[Detail]]]:
        """Return the exercises of each module, with their checks and the answers to their questions."""
        answers = self.answers.answers()
        found: dict[str, list[Detail]] = {}
        for rate in summary.exercises:
            checks = [c for c in summary.checks if c.exercise == rate.exercise]
            given = [a for a in answers if a.exercise == rate.exercise]
            found.setdefault(self.module_of.get(rate.exercise, ""), []).append((rate, checks, given))
        return list(found.items())
