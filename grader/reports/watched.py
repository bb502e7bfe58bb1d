"""Print one exercise on the screen of ``watch``: a line for each result, and the first failure in full."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.common.result import ExerciseReport
from grader.reports.paper import Paper
from grader.reports.terminal import mark_of, print_result
from grader.reports.wording import first_failure, not_judged, passing_text, seen_by


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
