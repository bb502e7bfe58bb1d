"""What the class page shows, in the order in which a person reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader.common.result import Report
from grader.reports.answers import Answers, numeric_answers
from grader.reports.rates import CheckRate, ExerciseRate
from grader.reports.summary import Summary, in_order

SHOWN = 8
"""Misconceptions and checks that stand open; the others are folded."""
Detail = tuple[ExerciseRate, list[CheckRate], list[Answers]]


@dataclass(frozen=True)
class ClassPage:
    """What the template gets.

    Attributes:
        graded: students who have a page.
        kinds: student -> in which ways they need a person.
        hardest: the checks and questions that the most failed.
        modules: each module's exercises, with their checks and the answers to their questions.
    """

    summary: Summary
    reports: list[Report]
    graded: set[str]
    kinds: dict[str, str]
    hardest: list[CheckRate]
    modules: list[tuple[str, list[Detail]]]
    shown: int = SHOWN


def class_page(summary: Summary, reports: Iterable[Report]) -> ClassPage:
    ordered = in_order(reports)
    kinds: dict[str, dict[str, None]] = {}
    for item in summary.attention:
        kinds.setdefault(item.student, {})[item.kind] = None
    return ClassPage(
        summary=summary,
        reports=ordered,
        graded={r.student for r in ordered},
        kinds={student: ", ".join(of) for student, of in kinds.items()},
        hardest=summary.hardest[:SHOWN],
        modules=_modules(summary, ordered),
    )


def _modules(summary: Summary, reports: list[Report]) -> list[tuple[str, list[Detail]]]:
    module_of = {e.exercise: e.module for r in reports for e in r.exercises}
    answers = numeric_answers(reports)
    found: dict[str, list[Detail]] = {}
    for rate in summary.exercises:
        checks = [c for c in summary.checks if c.exercise == rate.exercise]
        given = [a for a in answers if a.exercise == rate.exercise]
        found.setdefault(module_of.get(rate.exercise, ""), []).append((rate, checks, given))
    return list(found.items())
