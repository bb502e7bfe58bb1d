"""``shardlings docs``: print pages of the documentation, which the package contains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from grader.cli.console import say
from grader.course.config import CourseError
from grader.course.loading import only_one

PACKAGE = Path(__file__).resolve().parents[1]
ROOT_PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


def docs(
    page: Annotated[
        str,
        typer.Argument(
            help="a page, such as own-course or checks/answers; default: the list of all pages",
            autocompletion=lambda: list(pages()),
        ),
    ] = "",
) -> None:
    """Print a page of the documentation, or the list of all pages."""
    known = pages()
    if page:
        say(known[_named(page, list(known))].read_text(encoding="utf-8"))
        return
    width = max(map(len, known), default=0)
    for name, path in known.items():
        say(f"{name:{width}}  {_title(path)}")


def pages() -> dict[str, Path]:
    """Return the pages' paths by name, such as ``checks/answers``. Raises CourseError if there are no pages."""
    installed, checkout = PACKAGE / "_docs", PACKAGE.parent
    folder, root = (installed, installed) if installed.is_dir() else (checkout / "docs", checkout)
    found = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}
    found |= {Path(name).stem: root / name for name in ROOT_PAGES if (root / name).is_file()}
    if not found:
        raise CourseError(f"there is no documentation in {folder}")
    return dict(sorted(found.items()))


def _named(page: str, known: list[str]) -> str:
    """Return a page's full name. ``page``: the path, the name without the folder, or a unique prefix of the name."""
    name = page.removeprefix("docs/").removesuffix(".md")
    last = {one.rpartition("/")[2]: one for one in known}
    return last[name] if name in last and name not in known else only_one(name, [*known], "page")


def _title(path: Path) -> str:
    """Return a page's title, or the section titles of a page without a title."""
    prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^# (.*)$", prose, re.MULTILINE)
    return titles[0] if titles else ", ".join(re.findall(r"^## (.*)$", prose, re.MULTILINE))
