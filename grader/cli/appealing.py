"""The command ``appeal``: judge one check of one submission again, and show the evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.batch import why as appeals
from grader.batch.confined import parsing
from grader.batch.folder import on_file
from grader.batch.grade import Grader
from grader.batch.overrides import read_overrides
from grader.cli.console import BROKEN, busy, print_json, say, tell
from grader.cli.options import (
    AsJson,
    BackendOption,
    CourseOption,
    Isolation,
    Processes,
    RosterOption,
    beside_at,
    roster_in,
    solved_course_at,
)
from grader.cli.regrading import make_in_class, rosters_of, spelling_on_file
from grader.common.files import write_atomic
from grader.common.text import a_few, composed
from grader.course.config import CourseError
from grader.intake.reading import read
from grader.intake.students import find_submissions
from grader.intake.submission import reasons_of
from grader.reports.appeal import render_appeal
from grader.reports.points import counted
from grader.reports.untrusted import clean
from grader.sandbox.tiers import best_tier


def appeal(
    student: Annotated[str, typer.Argument(help="the student, as grades.csv names the student")],
    check: Annotated[str, typer.Argument(help="a check or question, as the report names it")],
    paths: Annotated[list[Path], typer.Argument(help="folders with one folder per student, or students' files")],
    to: Annotated[Path | None, typer.Option("--out", help="the folder with the report to compare with")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="also write a page for the staff to this file")] = None,
    isolation: Isolation = "auto",
    roster: RosterOption = None,
    backend: BackendOption = "cpu",
    processes: Processes = 1,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Judge one check of one student again, and show the evidence. The command uses no cached results."""
    student = composed(student)
    found = solved_course_at(course, paths)
    if html is not None and not html.parent.is_dir():
        raise CourseError(f"there is no folder {html.parent} for {html.name}; make the folder first")
    rosters = rosters_of(to, roster_in(roster))
    login = rosters.named.login if rosters.named else str
    tier = best_tier(isolation)
    with parsing(tier) as parsers:
        names = spelling_on_file(to, login) if to else login
        in_class = make_in_class(to, rosters.named) if to else rosters.lists
        students, _, cases = find_submissions(paths, found.module_of, names, parsers, rosters.lists, in_class)
        if student not in (there := dict(students)):
            where = ", ".join(map(str, paths))
            missing = f"no student {student!r} in {where}; the students there are {a_few(sorted(there))}"
            raise CourseError(reasons_of(cases).get(student, missing))
        submission = read(there[student], student, found.module_of, found.handed_out, parsers)
    kept = on_file(to, student) if to else None

    def fresh() -> Grader:
        beside = beside_at(backend, processes, found, tier, remember=False)
        return Grader(found, tier, **beside._asdict())

    with busy(f"deciding {check} again from scratch, which takes some seconds for each function", quiet=as_json):
        decided = appeals.why(found, tier, submission, check, kept, fresh, read_overrides(to) if to else ())
    if as_json:
        print_json(
            {"result": decided.result.model_dump(mode="json"), "lines": decided.lines, "differs": decided.differs}
        )
    else:
        print_decision(decided, student)
    if html is not None:
        write_page(html, decided)
    if decided.differs:
        differences = counted(len(decided.differs), "difference")
        tell("shardlings", f"the verdict differs from the report on file: {differences}; grade {student} again")
    raise typer.Exit(BROKEN if decided.differs else 0)


def write_page(html: Path, decided: appeals.Why) -> None:
    """Write the appeal's page to ``html``. Raises CourseError if the file cannot be written."""
    try:
        write_atomic(html, render_appeal(decided.page))
    except OSError as error:
        raise CourseError(f"cannot write {html}: {error.strerror}") from None
    tell("note", f"wrote {html}; this page shows hidden data, so only the staff may see the page")


def print_decision(decided: appeals.Why, student: str) -> None:
    """Print the new verdict, its reasons, and how it differs from the stored report."""
    result = decided.result
    lines = [
        f"{result.name}: {result.status}, {result.earned:g} of {result.points:g}",
        result.reason,
        *decided.lines,
    ]
    on_file = ["the result is as in the report on file"] if decided.kept else [f"no report of {student} on file"]
    for line in filter(None, [*lines, *(decided.differs or on_file)]):
        indent = line[: len(line) - len(line.lstrip())]
        say(indent + clean(line))
