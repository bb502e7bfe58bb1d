"""Print reports and the summary of a class on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.common.drawing import drawn, each_drawn
from grader.common.result import ExerciseReport, Report, Result
from grader.common.text import a_few
from grader.reports.paper import Paper
from grader.reports.people import NO_PEOPLE, People, with_name
from grader.reports.pictures import Picture, draw_grid, pictures
from grader.reports.points import counted, pending_text, short_score, show_percent
from grader.reports.programs import rings_of, rooflines_of, timelines_of
from grader.reports.roofline import roofline_text
from grader.reports.rounds import rounds_text
from grader.reports.summary import SEVERAL, Attention, Summary
from grader.reports.timeline_text import print_timeline
from grader.reports.wording import (
    NO_FILE,
    Audience,
    has_file,
    place_text,
    points_of,
    reason_text,
    seen_by,
    standing_of,
    unstated_pairs,
    worth_of,
)

MOST = 10  # a terminal shows at most this many checks and misconceptions; the class page shows all
_MARKS = {
    "passed": ("✓", "+"),
    "failed": ("✗", "x"),
    "blocked": ("–", "-"),
    "broken": ("!", "!"),
    "waiting": ("…", "?"),
}
_COLOURS = {"passed": "green", "failed": "red", "blocked": "bright_black", "broken": "yellow", "waiting": "cyan"}


def print_report(report: Report, console: Console, *, audience: Audience = "student") -> None:
    """Print the report: a heading for each exercise, its results with reasons, and the score last."""
    paper = Paper(console)
    report = seen_by(audience, report)
    for exercise in report.exercises:
        _print_exercise(paper, exercise, audience)
    for note in report.notes[:50]:
        paper.line(paper.text(f"note: {note}", "italic"))
    paper.line(paper.text(standing_of(report), "bold"))
    _print_pending(paper, report)


def print_exercise(exercise: ExerciseReport, console: Console) -> None:
    """Print one exercise's results and score, without parts that only staff may see."""
    paper, shown = Paper(console), seen_by("student", exercise)
    _print_exercise(paper, shown, "student")
    _print_pending(paper, shown)


def _print_pending(paper: Paper, graded: Report | ExerciseReport) -> None:
    if graded.pending > 0:
        paper.line(paper.text(pending_text(graded.pending, graded.unjudged), "yellow"))


def _print_exercise(paper: Paper, exercise: ExerciseReport, audience: Audience) -> None:
    worth = f"  {worth_of(exercise)}"
    paper.line(paper.text(exercise.title, "bold", 200), Text(worth, style="bold cyan"))
    if not has_file(exercise):
        paper.line(paper.text(f"{NO_FILE} for this exercise"), indent=2)
        return
    for result in exercise.results:
        _print_result(paper, result, audience)
    for note in exercise.notes[:50]:
        paper.line(paper.text(f"note: {note}", "italic"), indent=4)
    paper.console.print()


def print_result(result: Result, console: Console) -> None:
    """Print a result's label, reason of a failure, hint and pictures, without parts that only staff may see."""
    _print_result(Paper(console), result.for_student(), "student")


def _print_result(paper: Paper, result: Result, audience: Audience) -> None:
    colour = _COLOURS[result.status]
    row = Table.grid(padding=(0, 1, 0, 0))  # a grid keeps all lines of a long label beside the status symbol
    worth = Text(f"  {points_of(result, short_score)}", style="bright_black")
    row.add_row(mark_of(result.status, paper), paper.text(result.label, limit=400).append_text(worth))
    paper.console.print(Padding(row, (0, 0, 0, 2), expand=False))
    if result.status == "passed":
        return
    if audience == "staff" and not result.public:
        paper.line(paper.text("hidden check", "bright_black"), indent=4)
    if reason_text(result):
        paper.line(paper.text(reason_text(result), colour), indent=4)
    if result.hint:
        paper.line(paper.text(f"hint: {result.hint}", "cyan"), indent=4)
    if place_text(result):
        paper.line(paper.text(place_text(result), "bright_black", 200), indent=4)
    for name, data in unstated_pairs(result):
        paper.line(paper.text(f"{name + ':':<9} {data}"), indent=4)
    _print_drawings(paper, result)


def _print_drawings(paper: Paper, result: Result) -> None:
    _print_pictures(paper, pictures(result))
    for timeline in timelines_of(result):
        drawn(None, print_timeline, timeline, paper.console)
    for lines in each_drawn(roofline_text, rooflines_of(result)):
        for line in lines:
            paper.line(paper.text(line), indent=4)
    for caption, *rows in each_drawn(rounds_text, rings_of(result)):
        paper.line(paper.text(caption), indent=4)
        for row in rows:
            paper.line(Text(paper.fit(row)), indent=4)


def mark_of(status: str, paper: Paper) -> Text:
    """Return the symbol of a status, such as a tick or a cross."""
    return Text(_MARKS[status][paper.ascii], style=f"bold {_COLOURS[status]}")


def _print_pictures(paper: Paper, shown: list[Picture]) -> None:
    """Print pictures side by side if the console is wide enough, else one below the other."""
    room = paper.console.width - 4
    grids = each_drawn(lambda picture: draw_grid(picture, room), shown)
    wide = [max(map(len, lines)) for lines in grids]
    if grids and sum(wide) + 4 * (len(wide) - 1) <= room:
        rows = zip_longest(*grids, fillvalue="")
        grids = [["    ".join(part.ljust(w) for part, w in zip(row, wide, strict=True)).rstrip() for row in rows]]
    for lines in grids:
        for line in lines:
            paper.line(Text(paper.fit(line)), indent=4)


def print_summary(summary: Summary, console: Console, people: People = NO_PEOPLE) -> None:
    """Print the class's results, and the cases that need review. ``people``: names and sections of students."""
    paper = Paper(console)
    paper.line(paper.text(counted(summary.submissions, "submission"), "bold"))
    if summary.mean is not None:
        stats = {"mean": summary.mean, "median": summary.median, "min": summary.minimum, "max": summary.maximum}
        paper.line(paper.text("   ".join(f"{name} {show_percent(value)}" for name, value in stats.items())))
    parts = [
        [a.module, f"{a.handed_in} of {a.submissions}", show_percent(a.mean), str(a.full)] for a in summary.assignments
    ]
    paper.table("Assignments", ["assignment", "handed in", "mean of submissions", "full marks"], parts)
    rates = [[e.exercise, show_percent(e.mean), f"{e.full} of {e.submissions}"] for e in summary.exercises]
    paper.table("Exercises", ["exercise", "mean", "full marks"], rates)
    failed = [[c.exercise, c.label, f"{c.passed} of {c.passed + c.failed + c.blocked}"] for c in summary.hardest[:MOST]]
    paper.table("Most-failed checks", ["exercise", "check", "passed"], failed)
    wrong = [[str(m.students), m.exercise, m.hint] for m in summary.misconceptions[:MOST]]
    paper.table("Misconceptions", ["students", "exercise", "hint"], wrong)
    if left := len(summary.misconceptions) - len(wrong):
        paper.line(paper.text(f"and {counted(left, 'rarer misconception')}, on the class page", "bright_black"))
    print_attention(summary.attention, console, people)


def print_warnings(summary: Summary, console: Console) -> None:
    paper = Paper(console)
    for warning in summary.warnings:
        paper.line(paper.text(warning, "bold yellow"))


def print_attention(attention: Sequence[Attention], console: Console, people: People = NO_PEOPLE) -> None:
    """Print the cases that need review. Students with equal reasons share a line."""
    alike: dict[str, list[str]] = {}
    for one in attention:
        alike.setdefault(one.reason, []).append(with_name(one.student, people) if one.student else SEVERAL)
    rows = [[a_few(students), reason] for reason, students in alike.items()]
    Paper(console).table("Needs review", ["student", "reason"], rows)
