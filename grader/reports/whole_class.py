"""Facts about a whole class that its tables and pages need before they show the first report."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from grader.common.result import Report
from grader.reports.answers import NumericAnswers
from grader.reports.wording import percent_of


class WholeClass:
    """Facts about a class. Reports are added one at a time, in the order of the students, and are not kept.

    Attributes:
        students: all students with a report.
        courses: titles of the courses that the reports name, in their order.
        module_of: the module of each exercise, in the order of the reports.
        points: the most that any student could earn, without extensions.
        percents: percentage of the points, of each student who could earn any.
        late: whether any report has a submission time.
        answers: answers to the questions that ask for a number.
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
