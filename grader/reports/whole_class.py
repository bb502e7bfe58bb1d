"""What the tables and pages of a class need to know of all its reports before they show each of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from grader.common.result import Report
from grader.reports.answers import NumericAnswers
from grader.reports.wording import percent_of


class WholeClass:
    """A class, of which reports are added one at a time, in the order of the students. No report is kept.

    Attributes:
        students: everybody who has a report.
        courses: titles of the courses that the reports name, in their order.
        module_of: the module of each exercise, in the order of the reports.
        points: the most that any student could earn, without extensions.
        percents: of the points of each student who could earn any.
        late: whether any report says when work was handed in.
        answers: to the questions that ask for a number.
    """

    def __init__(self, reports: Iterable[Report] = ()) -> None:
        self.students: set[str] = set()
        self.courses: dict[str, None] = {}
        self.module_of: dict[str, str] = {}
        self.points = 0.0
        self.percents = array("d")
        self.late = False
        self.answers = NumericAnswers()
        for report in reports:
            self.add(report)

    def add(self, report: Report) -> None:
        self.students.add(report.student)
        self.courses[report.course] = None
        self.module_of |= {e.exercise: e.module for e in report.exercises}
        self.points = max(self.points, report.points)
        if (percent := percent_of(report)) is not None:
            self.percents.append(percent)
        self.late = self.late or bool(report.hand_ins)
        self.answers.add(report)
