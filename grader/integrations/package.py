"""The files and dependencies of the installed package ``grader``, for other systems that run the grader."""

from __future__ import annotations

import importlib.metadata
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

from grader import __version__
from grader.course.config import CourseError

PACKAGE = Path(__file__).resolve().parents[1]
TOOL = """\
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"

[project]
name = "shardlings"
version = {version}
description = "The commands of the course: list, show, check, submit"
requires-python = {python}
dependencies = {dependencies}

[project.scripts]
shardlings = "grader.__main__:main"

[tool.hatch.build.targets.wheel]
packages = ["grader"]
"""


def package_files() -> dict[str, Path]:
    """Return the files of the package ``grader`` without its course, by paths such as "grader/intake/names.py"."""
    return {
        f"grader/{path.relative_to(PACKAGE).as_posix()}": path
        for path in files_below(PACKAGE)
        if path.relative_to(PACKAGE).parts[0] != "_course"
    }


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder, without hidden files and caches."""
    for path in folder.rglob("*"):
        if path.is_file() and not any(p.startswith((".", "__pycache__")) for p in path.relative_to(folder).parts):
            yield path


def dependencies() -> list[str]:
    """Return the dependencies of shardlings, from pyproject.toml or the installed metadata. Raises CourseError."""
    if (project := PACKAGE.parent / "pyproject.toml").is_file():
        return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    try:
        listed = importlib.metadata.requires("shardlings") or []
    except importlib.metadata.PackageNotFoundError:
        raise CourseError("cannot find out what shardlings depends on; install shardlings with pip") from None
    return [line for line in listed if "extra ==" not in line]


def project_file() -> str:
    """Return the text of a pyproject.toml for a folder with the ``package_files``, so that pip can install the folder.

    Raises CourseError if shardlings was not installed with pip.
    """
    try:
        python = importlib.metadata.metadata("shardlings")["Requires-Python"]
    except importlib.metadata.PackageNotFoundError:
        raise CourseError(
            "shardlings is not installed as a package, so its required Python is unknown; install shardlings with pip"
        ) from None
    return TOOL.format(
        version=json.dumps(__version__),
        python=json.dumps(python or ">=3.11"),
        dependencies=json.dumps(dependencies(), indent=2),
    )
