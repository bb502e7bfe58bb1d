"""The command ``publish``: write the students' release to a branch or a folder, and the solutions to a branch."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from grader.cli.console import out, say, tell
from grader.cli.options import CourseOption, course_at
from grader.course.config import CourseError
from grader.course.folders import require_empty, write_folder
from grader.course.loading import Course
from grader.reports.points import counted
from grader.wings.publish.branch import Repository

NEXT = "next: git push URL {branch}; URL must not be the course's repository, which holds hidden checks and the seed"


class Branch(StrEnum):
    """A branch that ``publish`` makes, named after its content."""

    student = "student"
    solutions = "solutions"


def publish(
    branches: Annotated[
        list[Branch] | None,
        typer.Option("--branch", help="write to this branch of the repository; give --branch twice to write both"),
    ] = None,
    students: Annotated[
        Path | None, typer.Option("--students", metavar="DIR", help="write the students' version to this new folder")
    ] = None,
    course: CourseOption = None,
) -> None:
    """Write the students' version or the solutions to a branch.

    The solutions on the branch are pages to read. With --students, the students' version goes into a folder. The
    content comes from the files in this checkout. Working tree, index and HEAD stay as they are. Nothing is pushed.
    """
    if not branches and students is None:
        raise CourseError("name a target: --branch student, --branch solutions, or --students DIR")
    if students is not None:
        require_empty(students)  # check this first, because making the files takes a minute
    found = course_at(course)
    if not found.solved:
        raise CourseError("publishing needs the solutions; this is the learners' release")
    if found.seed_problem:
        tell("warning", found.seed_problem)
    repository = Repository(found.root) if branches else None
    if repository is not None:
        tell_uncommitted(repository)
    for branch in dict.fromkeys(branches or ()):
        assert repository is not None
        files = files_of(found, branch)
        with out.status(f"writing {len(files)} files to the branch {branch.value}"):
            done = repository.publish(branch.value, files)
        if done.new:
            say(f"{done.branch}: {counted(done.changed, 'file')} changed, commit {done.commit[:12]}")
            out.print(NEXT.format(branch=done.branch), style="dim", soft_wrap=True)
        else:
            say(f"{done.branch} is current, commit {done.commit[:12]}")
    if students is not None:
        files = files_of(found, Branch.student)
        write_folder(students, files)
        say(f"wrote {len(files)} files to {students}")


def files_of(course: Course, branch: Branch) -> dict[str, str]:
    from grader.wings.publish.student import solution_files, student_files

    with out.status(f"reading {counted(len(course.module_of), 'exercise')}"):
        return student_files(course) if branch is Branch.student else solution_files(course)


def tell_uncommitted(repository: Repository) -> None:
    """Print a note if files that ``publish`` reads have uncommitted changes, which are then published too."""
    from grader.integrations.package import PACKAGE
    from grader.wings.publish.student import LICENCES

    tool = [str(PACKAGE)] if PACKAGE.is_relative_to(repository.root) else []
    if changed := repository.uncommitted("course.yaml", "solutions", *LICENCES, *tool):
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        tell("note", f"published with uncommitted changes: {changed[0]}{more}")
