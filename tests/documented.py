"""The exercises that the documents show, each put into a course of its own."""

from __future__ import annotations

import re
from pathlib import Path

from grader.course.loading import Course, load_course

PAGES = Path(__file__).resolve().parents[1] / "docs" / "checks"
COURSE = "name: shown\nseed: a-seed-of-its-own\nmodules:\n  - {id: 01_shown, title: Shown, exercises: [x1_shown]}\n"
NAME = "x1_shown"


def examples(page: str) -> list[str]:
    """The complete exercises of a page."""
    return re.findall(r"```python\n(# an exercise\n.*?)```", (PAGES / f"{page}.md").read_text(), re.S)


def course_of(folder: Path, text: str) -> Course:
    """A course that holds one exercise of this text."""
    place = folder / "solutions" / "01_shown"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{NAME}.py").write_text(text)
    (folder / "course.yaml").write_text(COURSE)
    return load_course(folder / "course.yaml")
