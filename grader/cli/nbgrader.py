"""The commands for nbgrader: ``shardlings nbgrader init``, ``grade`` and ``scan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.console import FAILED, going_to, out, say
from grader.cli.grade_options import ElsewhereOption
from grader.cli.options import AsJson, CourseOption, Isolation, NoStore, course_at
from grader.course.config import CourseError
from grader.reports.untrusted import clean

# Each command imports its implementation when it runs.
nbgrader = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Make nbgrader's course folder, grade in it, and search it for leaks.",
    rich_markup_mode=None,
)


@nbgrader.command("init")
def nbgrader_init(
    folder: Annotated[Path, typer.Argument(help="the nbgrader course folder to make or to update")],
    course: CourseOption = None,
) -> None:
    """Make a course folder for nbgrader, with one assignment per module. Shardlings grades these assignments."""
    from grader.integrations.nbgrader import folder as folders
    from grader.reports.points import counted

    changed = folders.init(course_at(course), folder)
    for path in changed:
        say(f"{folder}/{path}")
    out.print(f"{counted(len(changed), 'file')} written" if changed else f"{folder} is current")
    if changed:
        out.print(f"next: {going_to(folder)}nbgrader generate_assignment MODULE", style="dim", soft_wrap=True)


@nbgrader.command("scan")
def nbgrader_scan(
    folder: Annotated[Path, typer.Argument(help="nbgrader's course folder")],
    course: CourseOption = None,
) -> None:
    """Search nbgrader's folders for content that students must not get.

    Without --course, the folder's nbgrader_config.py names the course.
    """
    from grader.batch.confined import parsing
    from grader.integrations.nbgrader import folder as folders
    from grader.integrations.nbgrader import scan
    from grader.reports.points import counted

    found = course_at(course or folders.course_of(folder), [folder])
    if not found.solved:
        raise CourseError(
            "the search for leaks needs the solutions, and this course has no solutions/ folder; "
            "go to the course's folder or pass --course"
        )
    if not any((folder / step).is_dir() for step in scan.STEPS):
        raise CourseError(f"{folder} is not an nbgrader course folder: it has no source/, release/ or submitted/")
    with parsing() as parsers:
        leaks = [f"{path}: {what}" for path, what in scan.scan(found, folder, parsers)]
    for line in leaks:
        say(clean(line, 400))
    out.print(counted(len(leaks), "leak") if leaks else "nothing leaks")
    raise typer.Exit(FAILED if leaks else 0)


@nbgrader.command("grade")
def nbgrader_grade(
    folder: Annotated[Path, typer.Argument(help="nbgrader's course folder")],
    assignment: Annotated[str, typer.Argument(help="one assignment: a module")],
    jobs: Annotated[
        int | None,
        typer.Option(
            "-j",
            "--jobs",
            min=1,
            max=64,
            help="submissions graded at a time; default: the number in nbgrader_config.py",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="also write the results of unchanged submissions to the gradebook")
    ] = False,
    isolation: Isolation = "auto",
    no_store: NoStore = False,
    elsewhere: ElsewhereOption = None,
    as_json: AsJson = False,
) -> None:
    """Grade an assignment into nbgrader's gradebook, faster than nbgrader autograde and with equal grades."""
    from grader.cli.grading_nbgrader import AssignmentOptions, grade_assignment

    options = AssignmentOptions(folder, assignment, jobs, again, isolation, not no_store, elsewhere, as_json)
    raise typer.Exit(grade_assignment(options))
