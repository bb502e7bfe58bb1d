"""Find the course: the course that the user names, or a trusted course in the working directory or a folder above."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from grader.course.config import CourseError
from grader.course.loading import Course, load_course

PACKAGED = Path(__file__).parents[1] / "_course"


def find_course(start: Path | None = None, *, handed_in: Sequence[Path] = (), packaged: bool = False) -> Course:
    """Return the course at ``start`` or, without ``start``, the working directory's course.

    Loading a course executes its files, and students can put a ``course.yaml`` beside their files. So a course that the
    user did not name is refused in these cases:

    - The course is inside one of the paths ``handed_in``.
    - The course is in a folder in which nbgrader keeps submissions.
    - The course is inside the folder of another course, where submissions may be.
    - The owner of course.yaml is not this user, root or the owner of the working directory.

    Raises CourseError if there is no course, or if it is refused.

    Args:
        start: a course.yaml or its folder, which the user named.
        handed_in: the submissions to be graded or checked.
        packaged: whether to fall back on the course that is installed with the package. The caller must then report
            this to the user.
    """
    if start is not None:
        named = [start] if start.is_file() else [p for p in _course_files(start) if p.is_file()]
        if not named:
            raise CourseError(f"no course.yaml in {start}; go to the course's folder or pass --course")
        return load_course(named[0])
    here = Path.cwd()
    if found := courses_above(here):
        if reason := _distrust(found, here, handed_in):
            raise CourseError(
                f"{found[0]} {reason}. The grader runs a course's code, "
                "so pass the course that you trust: --course FOLDER"
            )
        return load_course(found[0])
    if packaged and (PACKAGED / "course.yaml").is_file():
        return load_course(PACKAGED / "course.yaml")
    raise CourseError(
        f"no course.yaml in {here} or above; go to the course's folder, pass --course, "
        "or start a course: shardlings new course FOLDER"
    )


def course_around() -> Course:
    """Return the working directory's course, for functions that a notebook calls.

    The course is trusted, because the notebook in its folder already runs as this user.
    """
    found = courses_above(Path.cwd())
    return load_course(found[0]) if found else find_course(packaged=True)


def courses_above(here: Path) -> list[Path]:
    """Return the course.yaml files of this folder, of its parents, and of their ``exercises/``; innermost first."""
    return [p for folder in (here, *here.parents) for p in _course_files(folder) if p.is_file()]


def _course_files(folder: Path) -> tuple[Path, Path]:
    return folder / "course.yaml", folder / "exercises" / "course.yaml"


def _distrust(found: Sequence[Path], here: Path, handed_in: Sequence[Path]) -> str:
    """Return the reason why the innermost course in ``found`` is not trusted; '' if it is trusted."""
    inner = found[0].parent.resolve()
    for path in handed_in:
        if inner.is_relative_to(path.resolve()):
            return f"is inside a submission ({path})"
    if any(_holds_submissions(folder, inner) for folder in inner.parents):
        return "is in a folder where nbgrader keeps submissions"
    for folder in (p.parent.resolve() for p in found[1:]):
        if folder not in (inner, inner / "exercises") and inner != folder / "exercises":
            return f"is inside another course, {folder}"
    users = {os.stat(here).st_uid, 0, os.getuid()} if hasattr(os, "getuid") else set()
    if users and found[0].stat().st_uid not in users:
        return "belongs to another user"
    return ""


def _holds_submissions(folder: Path, inner: Path) -> bool:
    """Return whether ``folder`` is an nbgrader course, and the path ``inner`` is among its students' files."""
    kept = inner.relative_to(folder).parts[0] in ("submitted", "autograded", "feedback", "downloaded")
    return kept and any((folder / name).exists() for name in ("nbgrader_config.py", "gradebook.db"))
