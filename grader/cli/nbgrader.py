"""The commands for nbgrader: ``shardlings nbgrader init``, ``grade`` and ``scan``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.cli.console import BROKEN, FAILED, going_to, out, print_json, progress, say, tell, tell_slow
from grader.cli.options import (
    AsJson,
    CourseOption,
    ElsewhereOption,
    Isolation,
    NoStore,
    Quiet,
    course_at,
    need_jax,
    refuse_two_outputs,
)
from grader.common.text import a_few
from grader.course.config import CourseError
from grader.reports.untrusted import clean

if TYPE_CHECKING:
    from grader.integrations.nbgrader.class_page import BatchOutcome

# Each command imports its implementation when it runs.
nbgrader = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Make nbgrader's course folder, grade in it, and find leaks.",
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
    quiet: Quiet = False,
) -> None:
    """Grade an assignment into nbgrader's gradebook.

    This command is faster than nbgrader autograde, and gives equal grades.
    """
    refuse_two_outputs(quiet=quiet, as_json=as_json)
    need_jax()
    try:
        from grader.integrations.nbgrader import batch
    except ModuleNotFoundError as missing:
        raise CourseError(f"{missing.name} is not installed; run: pip install 'nbgrader>=0.9.5,<0.10'") from None
    done = batch.grade(
        folder, assignment, lambda total, what: progress(total, what, quiet=as_json or quiet), jobs=jobs or 0,
        isolation="" if isolation == "auto" else isolation, again=again, remember=not no_store, elsewhere=elsewhere,
        slow=None if as_json or quiet else tell_slow,
    )  # fmt: skip
    if as_json:
        print_json(vars(done) | {"late": {student: one.model_dump() for student, one in done.late.items()}})
    else:
        _print_outcome(done, folder, assignment, quiet=quiet)
    for student in done.pending:
        tell("shardlings", f"{student} needs review: the grader itself failed")
    for student, error in done.failures.items():
        tell("shardlings", f"{student} was not graded: {error}")
    raise typer.Exit(BROKEN if done.failures or done.pending else 0)


def _print_outcome(done: BatchOutcome, folder: Path, assignment: str, *, quiet: bool) -> None:
    from grader.reports.people import Person
    from grader.reports.summary import Attention
    from grader.reports.terminal import print_attention

    for warning in done.warnings:
        say(warning, "bold yellow")
    out.print(f"{len(done.graded)} graded, {len(done.kept)} unchanged  (isolation: {done.tier})", highlight=False)
    if not quiet:
        out.print(f"class page, for the staff: {done.page}", highlight=False, soft_wrap=True)
        out.print(f"next: {going_to(folder)}nbgrader generate_feedback {assignment}", style="dim", soft_wrap=True)
    if done.no_secret:
        outside = f"these students did not submit through nbgrader's exchange: {a_few(done.no_secret)}"
        tell(
            "note",
            f"{outside}; release_feedback cannot reach these students: "
            f"send them feedback/STUDENT/{assignment}/ yourself",
        )
    needed = [Attention(student=s, reason="; ".join(why)) for s, why in done.attention.items()]
    print_attention(needed, out, {student: Person(name) for student, name in done.names.items()})
