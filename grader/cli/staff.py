"""The staff's commands: grade, export, doctor and drop. This module imports no module that takes long to import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader import wing
from grader.cli.console import FAILED, busy, only_problems, print_json, say, tell
from grader.cli.options import (
    SIMULATED,
    AsJson,
    BackendChoice,
    BackendOption,
    CourseOption,
    ElsewhereOption,
    Isolation,
    Jobs,
    NoStore,
    Only,
    Processes,
    Quiet,
    RosterOption,
    begin_workers,
    cores,
    course_at,
    has_reports,
    refuse_two_outputs,
    roster_in,
    solved_course_at,
)
from grader.common.text import a_few
from grader.course.config import CourseError
from grader.sandbox.tiers import best_tier

if TYPE_CHECKING:
    from grader.batch.backends import Elsewhere

# Each command imports its implementation when it runs.
ReportsTo = Annotated[
    Path | None, typer.Option("--out", help="the folder for reports; repeat the command to resume an interrupted run")
]


@dataclass(frozen=True)
class GradeOptions:
    """The options of one ``grade`` command.

    Attributes:
        to: the folder for reports.
        jobs: how many submissions to grade at a time; None for the default.
        only: exercises or modules to grade; if empty, all modules that are due or handed in.
        isolation: the value of ``--isolation``, which chooses the sandbox.
        dry_run: True to report changes and write nothing.
        remember: True to use the cache.
        roster: the file that lists the students of the class.
        beside: the values of ``--backend`` and ``--processes``.
        elsewhere: the value of ``--cluster``, to grade on other machines; None to grade on this machine.
        quiet: True to print only problems and the summary line.
        verbose: True to print a line for each graded submission.
    """

    paths: tuple[Path, ...]
    to: Path
    jobs: int | None = None
    only: tuple[str, ...] = ()
    isolation: str = "auto"
    dry_run: bool = False
    remember: bool = True
    roster: Path | None = None
    beside: BackendChoice = SIMULATED
    elsewhere: Elsewhere | None = None
    course: Path | None = None
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False

    def refuse_what_does_not_go_together(self) -> None:
        """Raise CourseError if the user gave two options that exclude each other."""
        if self.elsewhere:
            self.elsewhere.refuse(self.jobs, beside=self.beside != SIMULATED)
        refuse_two_outputs(quiet=self.quiet, as_json=self.as_json, verbose=self.verbose)


def grade(
    paths: Annotated[list[Path], typer.Argument(help="folders with one folder per student, or students' files")],
    to: ReportsTo = None,
    jobs: Jobs = None,
    only: Only = None,
    isolation: Isolation = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show which scores would change, by how much and why; write nothing")
    ] = False,
    no_store: NoStore = False,
    roster: RosterOption = None,
    backend: BackendOption = "cpu",
    processes: Processes = 1,
    elsewhere: ElsewhereOption = None,
    course: CourseOption = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="print a line for each graded submission")] = False,
) -> None:
    """Grade submissions with all checks, in a sandbox. Write a report for each student, grades.csv and a class page."""
    if to is None:
        raise CourseError("pass --out FOLDER, the folder to write the reports to")
    options = GradeOptions(
        paths=tuple(paths),
        to=to,
        jobs=jobs,
        only=tuple(only or ()),
        isolation=isolation,
        dry_run=dry_run,
        remember=not no_store,
        roster=roster,
        beside=BackendChoice(backend, processes),
        elsewhere=elsewhere,
        course=course,
        as_json=as_json,
        quiet=quiet,
        verbose=verbose,
    )
    with only_problems(quiet):
        raise typer.Exit(carry_out(options))


def carry_out(options: GradeOptions) -> int:
    """Grade with these options, and return the exit code. Raises CourseError."""
    options.refuse_what_does_not_go_together()
    found = solved_course_at(options.course, options.paths)
    # A wrong name raises CourseError here, before submissions are read.
    found.select([*options.only])
    if options.elsewhere is None and not has_reports(options.to):
        begin_workers(found, best_tier(options.isolation))
    from grader.cli.grading import grade_class

    return grade_class(found, options)


def doctor(
    attack: Annotated[
        bool, typer.Option("--attack", help="run the project's attacks on the grader and print what each gained")
    ] = False,
    isolation: Isolation = "auto",
    jobs: Jobs = None,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what works on this machine and what to install.

    With --attack, try to break out of the sandbox.
    """
    from grader.cli import machine

    if attack:
        raise typer.Exit(machine.attack(best_tier(isolation), jobs or cores()))
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
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="the format: csv, canvas or gradescope",
            autocompletion=lambda: ["csv", "canvas", *wing.named("exports")],
        ),
    ],
    file: Annotated[Path | None, typer.Option("--file", help="the file to write; default: a file in OUT")] = None,
    only: Only = None,
    isolation: Isolation = "auto",
    roster: RosterOption = None,
    course: CourseOption = None,
) -> None:
    """Export grades as csv or for Canvas, or write a Gradescope zip.

    The csv file has a line for each check. The zip for Gradescope is an autograder of the exercises that
    --only names.
    """
    from grader.integrations import export as exports

    if to == "csv":
        path = file or folder / "results.csv"
        exports.write_csv(exports.load(folder), path)
    elif to == "canvas":
        path, found = file or folder / "canvas.csv", course_at(course)
        extensions = frozenset(e for e in found.module_of if found.exercise(e).extension)
        known = roster_in(roster)
        if strangers := exports.write_canvas(exports.load(folder), path, extensions, known):
            tell("note", f"these students are not on the roster, so the file lacks them: {a_few(strangers)}")
    elif to in (others := wing.named("exports")):
        path = folder if folder.suffix == ".zip" else folder / "autograder.zip"
        found = course_at(course)
        say(wing.load(others[to])(found, path, found.select(only or []), isolation))
    else:
        raise CourseError(f"no export format {to!r}; the formats are {', '.join(['csv', 'canvas', *others])}")
    if to in ("csv", "canvas") and (left_out := exports.not_graded(folder)):
        tell("note", f"these submissions were not graded, see Needs review on the class page: {a_few(left_out)}")
    say(f"wrote {path}")


def drop(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="the folder of reports")],
    students: Annotated[
        list[str], typer.Argument(metavar="STUDENT...", help="the students to take out, as grades.csv names them")
    ],
) -> None:
    """Delete students' reports and pages from OUT. Grade the students again to bring the reports back."""
    from grader.batch.folder import drop as take_out

    take_out(folder, students)
    say(f"took {', '.join(students)} out of {folder}; the next run writes the class page and grades.csv without them")
