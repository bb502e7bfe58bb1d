"""Facts about a whole class that tables and pages need before they show the first report."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from grader.common.result import Report
from grader.reports.answers import NumericAnswers
from grader.reports.people import NO_PEOPLE, UNKNOWN, People
from grader.reports.wording import class_percent_of


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
