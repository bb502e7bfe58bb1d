"""``start``: copy the packaged course into a folder to work in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader import __version__
from grader.cli.console import going_to, say
from grader.cli.options import need_jax
from grader.course.config import CourseError
from grader.course.finding import PACKAGED
from grader.course.folders import write_folder
from grader.course.loading import load_course
from grader.integrations.package import files_below


def start(
    folder: Annotated[Path, typer.Argument(help="a folder that is new or empty")],
) -> None:
    """Copy the exercises of the installed course into a folder to work in."""
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
