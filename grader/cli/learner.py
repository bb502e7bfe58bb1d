"""The learner's commands: start, list, show, check and submit. A command imports its implementation when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader import __version__
from grader.cli.completion import modules, modules_and_exercises
from grader.cli.console import going_to, say
from grader.cli.options import (
    AsJson,
    BackendChoice,
    BackendOption,
    CourseOption,
    Isolation,
    Names,
    Processes,
    Student,
    Work,
    begin_workers,
    course_at,
    need_jax,
    refuse_course_beside,
    student_name,
    work_in,
)
from grader.course.config import CourseError
from grader.course.finding import PACKAGED
from grader.course.folders import write_folder
from grader.course.loading import load_course
from grader.integrations.package import files_below
from grader.sandbox.tiers import best_tier


def start(
    folder: Annotated[Path, typer.Argument(help="a folder that is new or empty")],
) -> None:
    """Copy the exercises of the installed course into a new folder."""
    need_jax()
    if not (PACKAGED / "course.yaml").is_file():
        raise CourseError(
            "this installation of shardlings has no course to copy: go to the folder that you were given, or to your "
            "clone of the course, and begin there with: shardlings list"
        )
    packaged = load_course(PACKAGED / "course.yaml")
    files = {
        f"exercises/{path.relative_to(PACKAGED).as_posix()}": path.read_text(encoding="utf-8")
        for path in sorted(files_below(PACKAGED))
    }
    write_folder(folder, files)
    first = packaged.asked([])[0]
    say(f"wrote the packaged course, {packaged.config.name} {__version__}, to {folder}/exercises")
    say(f"next: {going_to(folder)}shardlings show {first}, and write exercises/{packaged.module_of[first]}/{first}.py")


def list_(course: CourseOption = None, as_json: AsJson = False) -> None:
    """List modules and exercises."""
    from grader.cli.listing import list_all

    raise typer.Exit(list_all(course_at(course, packaged=True), as_json=as_json))


def show(
    name: Annotated[
        str, typer.Argument(help="an exercise, a question or a module", autocompletion=modules_and_exercises)
    ],
    hint: Annotated[int, typer.Option("--hint", min=0, help="show the first N hints, and nothing else")] = 0,
    more: Annotated[bool, typer.Option("--more", help="show only the text below 'Going further'")] = False,
    course: CourseOption = None,
    student: Student = "",
    as_json: AsJson = False,
) -> None:
    """Show an exercise: its statement, checks and questions.

    The questions have my numbers. For a module, show the notes for all exercises of the module, and the list of
    exercises.
    """
    from grader.cli.listing import show_one

    found = course_at(course, packaged=True)
    show_one(found, name, student_name(found, student), hint=hint, more=more, as_json=as_json)


def check(
    names: Names = None,
    work: Work = None,
    isolation: Isolation = "none",
    backend: BackendOption = "cpu",
    processes: Processes = 1,
    course: CourseOption = None,
    student: Student = "",
    as_json: AsJson = False,
) -> None:
    """Check my own work with the public checks. If the solutions are here, use all checks and judge my answers.

    Without names, check shows which exercises are begun, and the first failure. By default there is no isolation,
    because your own code runs on your own machine.
    """
    found = course_at(course, [work] if work else [], packaged=True)
    chosen = found.asked(names or [])
    place, tier = work_in(found, work), best_tier(isolation)
    if tier != "none" and course is None:
        refuse_course_beside(found, place)
    who, asked = student_name(found, student), BackendChoice(backend, processes)
    begin_workers(found, tier)
    from grader.cli.checking import check_work

    unconfined = tier == "none" and work is not None
    raise typer.Exit(
        check_work(found, chosen, names or [], place, tier, who, asked, unconfined=unconfined, as_json=as_json)
    )


def submit(
    module: Annotated[str, typer.Argument(help="the module to hand in", autocompletion=modules)],
    work: Work = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="write a zip to this path, even if nbgrader could take the submission")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="print every result, as check does")] = False,
    course: CourseOption = None,
    student: Student = "",
) -> None:
    """Hand in a module, to nbgrader or as a zip.

    Before this, submit runs the public checks and lists what is missing.
    """
    found = course_at(course, [work] if work else [], packaged=True)
    listed = found.module_begun(module)
    place, who = work_in(found, work), student_name(found, student)
    begin_workers(found, "none")
    from grader.cli.checking import submit_module

    submit_module(found, listed, place, who, to, student, full=full)
