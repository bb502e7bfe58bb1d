"""The staff's commands: grade, export, doctor, drop, and those for nbgrader."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader import wing
from grader.cli.console import FAILED, busy, going_to, out, print_json, say, tell
from grader.cli.grade_options import GradeOptions, carry_out
from grader.cli.options import (
    AsJson,
    BackendOption,
    CourseOption,
    Isolation,
    Jobs,
    NoStore,
    Processes,
    RosterOption,
    course_at,
    roster_in,
)
from grader.common.text import a_few
from grader.course.config import CourseError
from grader.reports.untrusted import clean
from grader.sandbox.tiers import best_tier

# Each command imports its implementation when it runs.
nbgrader = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Course folders for nbgrader.", rich_markup_mode=None
)

ReportsTo = Annotated[
    Path | None, typer.Option("--out", help="the folder for reports; repeat the command to resume an interrupted run")
]
AtATime = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, max=64, help="submissions graded at a time [default: 1]")
]
NbgraderFolder = Annotated[
    Path | None, typer.Option("--nbgrader", help="an nbgrader course folder; PATHS is then one assignment")
]
Appeal = Annotated[
    tuple[str, str],
    typer.Option("--why", metavar="STUDENT CHECK", help="decide one check again from scratch, and show the evidence"),
]


def grade(
    paths: Annotated[list[Path], typer.Argument(help="folders with one folder per student, or students' files")],
    to: ReportsTo = None,
    jobs: AtATime = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="grade only these exercises or modules")] = None,
    isolation: Isolation = "auto",
    nbgrader: NbgraderFolder = None,
    again: Annotated[bool, typer.Option("--again", help="with --nbgrader: write unchanged submissions anew")] = False,
    why: Appeal = ("", ""),
    html: Annotated[
        Path | None, typer.Option("--html", help="with --why: also write a page for the staff to this file")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show which scores would change, by how much and why; write nothing")
    ] = False,
    no_store: NoStore = False,
    roster: RosterOption = None,
    backend: BackendOption = "cpu",
    processes: Processes = 1,
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster", metavar="ADDRESS", help="grade on the workers of this Dask scheduler (docs/wings/cluster.md)"
        ),
    ] = "",
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Grade submissions with all checks, in a sandbox. Write a report for each student, grades.csv and a class page."""
    options = GradeOptions(
        paths=tuple(paths),
        to=to,
        jobs=jobs,
        only=tuple(only or ()),
        isolation=isolation,
        nbgrader=nbgrader,
        again=again,
        why=why,
        html=html,
        dry_run=dry_run,
        remember=not no_store,
        roster=roster,
        backend=backend,
        processes=processes,
        cluster=cluster,
        course=course,
        as_json=as_json,
    )
    raise typer.Exit(carry_out(options))


def doctor(
    attack: Annotated[
        bool, typer.Option("--attack", help="run the attack corpus and print what each attack gained")
    ] = False,
    isolation: Isolation = "auto",
    jobs: Jobs = 2,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what works on this machine and what to install; with --attack, try to break out of the sandbox."""
    from grader.cli import machine

    if attack:
        raise typer.Exit(machine.attack(best_tier(isolation), jobs))
    try:
        found = course_at(course)
    except CourseError:
        found = None
    with busy("testing this machine and grading some solutions, about half a minute", quiet=as_json):
        lines = machine.examine(found.config.devices if found else 8, found, isolation)
    if found and found.seed_problem:
        lines.append(machine.MachineCheck("seed", False, found.seed_problem))
    if as_json:
        print_json([vars(line) for line in lines])
    else:
        for line in lines:
            say(f"{'✓' if line.ok else '✗'} {line.name}: {line.detail}")
    raise typer.Exit(FAILED if any(line.needed and not line.ok for line in lines) else 0)


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="OUT", help="the folder of reports; for gradescope: the zip to write")
    ],
    to: Annotated[str, typer.Option("--to", help="csv, canvas or gradescope")],
    file: Annotated[Path | None, typer.Option("--file", help="where to write; default: in OUT")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="gradescope: these exercises or modules")] = None,
    isolation: Isolation = "auto",
    roster: RosterOption = None,
    course: CourseOption = None,
) -> None:
    """Export grades as csv (a line per check) or for Canvas, or make a Gradescope autograder."""
    from grader.integrations import export as exports

    if to == "csv":
        path = file or folder / "results.csv"
        exports.write_csv(exports.load(folder), path)
    elif to == "canvas":
        path, found = file or folder / "canvas.csv", course_at(course)
        extensions = frozenset(e for e in found.module_of if found.exercise(e).extension)
        known = roster_in(roster)
        if strangers := exports.write_canvas(exports.load(folder), path, extensions, known):
            tell("note", f"not on the roster, so left out of the file: {a_few(strangers)}")
    elif to in (others := wing.exports()):
        path = folder if folder.suffix == ".zip" else folder / "autograder.zip"
        found = course_at(course)
        say(wing.load(others[to])(found, path, found.select(only or []), isolation))
    else:
        raise CourseError(f"no format {to!r}; there are {', '.join(['csv', 'canvas', *others])}")
    say(f"wrote {path}")


def drop(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="the folder of reports")],
    students: Annotated[list[str], typer.Argument(metavar="STUDENT...", help="as grades.csv names them")],
) -> None:
    """Take students out of OUT: their reports and pages. Grade them again to have them back."""
    from grader.batch.dropping import drop as take_out

    take_out(folder, students)
    say(f"took {', '.join(students)} out of {folder}; the next run writes the class page and grades.csv without them")


@nbgrader.command("init")
def nbgrader_init(
    folder: Annotated[Path, typer.Argument(help="the course folder to make or refresh")],
    course: CourseOption = None,
) -> None:
    """Make a course folder for nbgrader: one assignment per module, and the grader plugged in."""
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
    """Search all that nbgrader made or collected for content that students must not get.

    Without --course: the course that the folder's nbgrader_config.py names.
    """
    from grader.batch.confined import parsing
    from grader.integrations.nbgrader import folder as folders
    from grader.integrations.nbgrader import scan

    found = course_at(course or folders.course_of(folder), [folder])
    if not found.solved:
        raise CourseError("there is no solutions/ here to look for; go to the course's folder or pass --course")
    if not any((folder / step).is_dir() for step in scan.STEPS):
        raise CourseError(f"{folder} is not an nbgrader course folder: it has no source/, release/ or submitted/")
    with parsing() as parsers:
        leaks = [f"{path}: {what}" for path, what in scan.scan(found, folder, parsers)]
    for line in leaks:
        say(clean(line, 400))
    out.print(f"{len(leaks)} leaks" if leaks else "nothing leaks")
    raise typer.Exit(FAILED if leaks else 0)
