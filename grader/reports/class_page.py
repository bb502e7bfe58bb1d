"""The contents of the class page, in reading order."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.common.result import Report
from grader.reports.answers import Answers
from grader.reports.people import People
from grader.reports.rates import CheckRate, ExerciseRate
from grader.reports.summary import Summary
from grader.reports.whole_class import WholeClass

SHOWN = 8
"""The number of misconceptions and checks that the class page shows unfolded."""
Detail = tuple[ExerciseRate, list[CheckRate], list[Answers]]


@dataclass(frozen=True)
class SectionRate:
    """A section's results: the number of students who could earn points, and the mean percentage of these students."""

    section: str
    students: int
    mean: float


@dataclass(frozen=True)
class ClassPage:
    """The data for the class page's template.

    Attributes:
        reports: one report for each row of the table, in the order of the students. The iterator is read only once.
        graded: students who have a page.
        courses: titles of the courses that the reports name.
        late: True if at least one report has a submission time.
        kinds: student -> the kinds of review that the student's case needs.
        sections: each section's results; empty if the roster has no sections.
        section_ids: each section's number, by which the page filters students.
        modules: each module's exercises, with checks and the answers to questions.
    """

    summary: Summary
    reports: Iterable[Report]
    graded: set[str]
    courses: list[str]
    percents: Sequence[float]
    late: bool
    kinds: dict[str, str]
    people: People
    sections: list[SectionRate]
    section_ids: dict[str, int]
    hardest: list[CheckRate]
    modules: list[tuple[str, list[Detail]]]
    shown: int = SHOWN


def class_page(summary: Summary, whole: WholeClass, reports: Iterable[Report]) -> ClassPage:
    kinds: dict[str, dict[str, None]] = {}
    for item in summary.attention:  # ``student`` is "" in an item about several students
        kinds.setdefault(item.student, {})[item.kind] = None
    return ClassPage(
        summary=summary,
        reports=reports,
        graded=whole.students,
        courses=list(whole.courses),
        percents=whole.percents,
        late=whole.late,
        kinds={student: ", ".join(of) for student, of in kinds.items()},
        people=whole.people,
        sections=_sections(whole),
        section_ids=_section_ids(whole),
        hardest=summary.hardest[:SHOWN],
        modules=_modules(summary, whole),
    )


def _sections(whole: WholeClass) -> list[SectionRate]:
    return [
        SectionRate(section, len(percents), round(statistics.fmean(percents), 2))
        for section, percents in sorted(whole.sections.items())
    ]


def _section_ids(whole: WholeClass) -> dict[str, int]:
    """Return a number for each section, and a number for students without a section; {} if no section is known."""
    if not whole.sections:
        return {}
    return {name: number for number, name in enumerate(sorted({"", *(p.section for p in whole.people.values())}))}


def _modules(summary: Summary, whole: WholeClass) -> list[tuple[str, list[Detail]]]:
    answers = whole.answers.answers()
    found: dict[str, list[Detail]] = {}
    for rate in summary.exercises:
        checks = [c for c in summary.checks if c.exercise == rate.exercise]
        given = [a for a in answers if a.exercise == rate.exercise]
        found.setdefault(whole.module_of.get(rate.exercise, ""), []).append((rate, checks, given))
    return list(found.items())
