"""The options of ``shardlings grade``, and the function that starts to grade.

This module imports no module that takes long to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from grader.cli.options import BackendChoice, begin_workers, from_wing, has_reports, solved_course_at
from grader.course.config import CourseError
from grader.sandbox.tiers import best_tier

if TYPE_CHECKING:
    from grader.batch.backends import Elsewhere

ElsewhereOption = Annotated[Any, from_wing("--cluster")]


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
        backend, processes: the values of ``--backend`` and ``--processes``.
        elsewhere: the value of ``--cluster``, to grade on other machines; None to grade on this machine.
        quiet: True to print only problems and the summary line.
        verbose: True to print a line for each graded submission.
    """

    paths: tuple[Path, ...]
    to: Path | None = None
    jobs: int | None = None
    only: tuple[str, ...] = ()
    isolation: str = "auto"
    dry_run: bool = False
    remember: bool = True
    roster: Path | None = None
    backend: str = "cpu"
    processes: int = 1
    elsewhere: Elsewhere | None = None
    course: Path | None = None
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False

    @property
    def beside(self) -> BackendChoice:
        return BackendChoice(self.backend, self.processes)

    def refuse_what_does_not_go_together(self) -> None:
        """Raise CourseError if the user gave two options that exclude each other."""
        if self.elsewhere:
            self.elsewhere.refuse(self.jobs, beside=self.beside != BackendChoice())
        if self.quiet and (self.verbose or self.as_json):
            raise CourseError(f"--quiet and {'--verbose' if self.verbose else '--json'} exclude each other; pass one")
        if self.to is None:
            raise CourseError("pass --out FOLDER, the folder to write the reports to")


def carry_out(options: GradeOptions) -> int:
    """Grade with these options, and return the exit code. Raises CourseError."""
    options.refuse_what_does_not_go_together()
    found = solved_course_at(options.course, options.paths)
    # A wrong name raises CourseError here, before submissions are read.
    found.select([*options.only])
    if options.to is not None and options.elsewhere is None and not has_reports(options.to):
        begin_workers(found, best_tier(options.isolation))
    from grader.cli.grading import grade_batch

    return grade_batch(found, options)
