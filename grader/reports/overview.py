"""Print a learner's progress on a terminal: a line per exercise or result, and the first failure in full.

A module or exercise is begun if the learner has written some code or an answer in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.common.result import ExerciseReport, Report
from grader.reports.paper import Paper
from grader.reports.points import counted
from grader.reports.terminal import mark_of, print_result
from grader.reports.wording import (
    first_failure,
    is_begun,
    is_unfinished,
    not_judged,
    passing_text,
    reason_text,
    seen_by,
)

NOTES = 10


def print_overview(report: Report, titles: Mapping[str, str], console: Console) -> None:
    """Print the modules in order. A module without any written code or answer takes one line.

    Args:
        titles: each module's title, by its id.
    """
    paper, shown = Paper(console), seen_by("student", report)
    for module, title in titles.items():
        exercises = [e for e in shown.exercises if e.module == module]
        if exercises:
            _print_module(paper, f"{module} {title}", exercises)
    for note in shown.notes[:NOTES]:  # a note may explain why an exercise is shown as not begun
        paper.line(paper.text(f"note: {note}", "italic"))
    begun = [e for e in shown.exercises if is_begun(e)]
    done = sum(first_failure(e) is None for e in begun)
    paper.line(paper.text(f"{done} done, {len(begun)} begun, of {counted(len(shown.exercises), 'exercise')}", "bold"))


def _print_module(paper: Paper, heading: str, exercises: list[ExerciseReport]) -> None:
    begun = [e for e in exercises if is_begun(e)]
    many = f"{len(begun)} of {len(exercises)} begun" if begun else f"not begun, {counted(len(exercises), 'exercise')}"
    paper.line(paper.text(heading, "bold" if begun else ""), Text(": "), paper.text(many, "bright_black"))
    rows = Table.grid(padding=(0, 1, 0, 0))
    rows.add_column()
    names = min(max(len(e.exercise) for e in exercises), paper.console.width - 8)
    rows.add_column(min_width=names, overflow="fold")
    rows.add_column(max_width=paper.console.width - names - 5, overflow="fold")  # a wider table would be cut off
    for exercise in exercises if begun else ():
        rows.add_row(*_row(paper, exercise))
    if begun:
        paper.console.print(Padding(rows, (0, 0, 0, 2), expand=False))


def _row(paper: Paper, exercise: ExerciseReport) -> tuple[Text, Text, Text]:
    if not is_begun(exercise):
        return Text(" "), paper.text(exercise.exercise, "bright_black"), paper.text("not begun", "bright_black")
    failing = first_failure(exercise) is not None
    mark = mark_of("failed" if failing else "passed", paper)
    bonus = "bonus; " if exercise.extension else ""
    return mark, paper.text(exercise.exercise), paper.text(bonus + passing_text(exercise.results))


def print_left(report: Report, titles: Mapping[str, str], console: Console) -> None:
    """Print a learner's progress, then each failure in the begun exercises, with its reason."""
    print_overview(report, titles, console)
    paper = Paper(console)
    for exercise in filter(is_begun, seen_by("student", report).exercises):
        failing = [r for r in exercise.results if r.status in ("failed", "broken") and not is_unfinished(r)]
        if failing:
            console.print()
            paper.line(paper.text(exercise.title, "bold", 200))
        for result in failing:
            paper.line(mark_of(result.status, paper), Text(" "), paper.text(result.label, limit=400), indent=2)
            paper.line(paper.text(reason_text(result), limit=400), indent=4)
    console.print()


def print_first_failure(report: Report, console: Console) -> ExerciseReport | None:
    """Print the first failure of the begun exercises in full. Return the failing exercise, or None if all pass."""
    paper = Paper(console)
    for exercise in filter(is_begun, seen_by("student", report).exercises):
        if failure := first_failure(exercise):
            paper.line(paper.text(exercise.title, "bold", 200))
            print_result(failure, console)
            return exercise
    return None


def print_watched(exercise: ExerciseReport, console: Console) -> None:
    paper, shown = Paper(console), seen_by("student", exercise)
    rows = Table.grid(padding=(0, 1, 0, 0))
    rows.add_column()
    rows.add_column(overflow="fold")
    for result in shown.results:
        style = "" if result.status in ("passed", "failed") else "bright_black"
        read = f" ({result.actual})" if not_judged([result]) and result.actual else ""
        rows.add_row(mark_of(result.status, paper), paper.text(f"{result.label}{read}", style, limit=400))
    console.print(Padding(rows, (0, 0, 0, 2), expand=False))
    for note in shown.notes[:5]:
        paper.line(paper.text(f"note: {note}", "italic"), indent=4)
    if failure := first_failure(shown):
        console.print()
        paper.line(Text("Start with "), paper.text(failure.task, "bold"), Text(":"))
        print_result(failure, console)
    console.print()
    paper.line(paper.text(passing_text(shown.results), "bold"))
