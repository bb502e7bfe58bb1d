"""The options of ``shardlings grade``, and the function that carries them out. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.cli.options import BackendChoice, begin_workers, has_reports, solved_course_at
from grader.course.config import CourseError
from grader.sandbox.tiers import best_tier


@dataclass(frozen=True)
class GradeOptions:
    """One ``grade`` command.

    Attributes:
        paths: the submissions; with ``nbgrader`` the name of one assignment.
        to: the folder that reports go to.
        jobs: submissions at a time; None for the default.
        only: exercises or modules; empty for all that are due or handed in.
        isolation: the sandbox, as on the command line.
        nbgrader: an nbgrader course folder.
        again: with ``nbgrader``, write unchanged submissions anew.
        why: a student and a check to decide again; empty strings for none.
        html: file for the page of that check.
        dry_run: report changes and write nothing.
        remember: read the cache and add to it.
        roster: file with the class.
        backend, processes: devices that judge beside the simulated ones.
        cluster: address of a scheduler whose workers grade.
        course: the course's file or folder.
        as_json: print JSON.
    """

    paths: tuple[Path, ...]
    to: Path | None = None
    jobs: int | None = None
    only: tuple[str, ...] = ()
    isolation: str = "auto"
    nbgrader: Path | None = None
    again: bool = False
    why: tuple[str, str] = ("", "")
    html: Path | None = None
    dry_run: bool = False
    remember: bool = True
    roster: Path | None = None
    backend: str = "cpu"
    processes: int = 1
    cluster: str = ""
    course: Path | None = None
    as_json: bool = False

    @property
    def beside(self) -> BackendChoice:
        return BackendChoice(self.backend, self.processes)

    @property
    def appeals(self) -> bool:
        return any(self.why)

    def refuse_what_does_not_go_together(self) -> None:
        """Raise CourseError for options that exclude each other."""
        beside = self.beside != BackendChoice()
        refused = {
            "--cluster goes with simulated devices alone: leave --backend and --processes out": self.cluster and beside,
            "--why decides one check on this machine: leave --cluster out": self.cluster and self.appeals,
            "with --cluster leave -j out: a worker grades as many at a time as dask worker --nthreads says": (
                self.cluster and self.jobs
            ),
            "--html goes with --why STUDENT CHECK: it is the page of one check": self.html and not self.appeals,
            "--dry-run goes with grading into a folder: grade SUBMISSIONS --out FOLDER --dry-run": (
                self.dry_run and (self.nbgrader or self.appeals)
            ),
            "--nbgrader grades on simulated devices alone, so that nbgrader autograde gives the same grades; for "
            f"another backend: grade {self.nbgrader}/submitted --out FOLDER --backend {self.backend}": self.nbgrader
            and beside,
            f"pass the student's folder, not --nbgrader: grade {self.nbgrader}/submitted/{self.why[0]} --why ...": (
                self.nbgrader and self.appeals
            ),
        }
        for text, is_so in refused.items():
            if is_so:
                raise CourseError(text)
        if self.to is None and not self.nbgrader and not self.appeals:
            raise CourseError("say where the reports go: --out FOLDER")


def carry_out(options: GradeOptions) -> int:
    """Grade as the options say and return the exit code. Raises CourseError."""
    options.refuse_what_does_not_go_together()
    if options.appeals or options.nbgrader:
        from grader.cli import grading

        return grading.decide_again(options) if options.appeals else grading.grade_nbgrader(options)
    found = solved_course_at(options.course, options.paths)
    found.select([*options.only])  # report a wrong name before reading submissions
    if options.to is not None and not options.cluster and not has_reports(options.to):
        begin_workers(found, best_tier(options.isolation))
    from grader.cli.grading import grade_batch

    return grade_batch(found, options)
