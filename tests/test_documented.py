"""``shardlings verify`` proves each example of the documentation, in a course with only this example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from grader import expect
from grader.authoring import verify
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.course.build import build
from grader.course.loading import Course, load_course
from grader.exercise import Exercise
from tests.proved import problems_of

DOCS = Path(__file__).parents[1] / "docs"
FENCED = re.compile(r"^```python\n# an exercise\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [(f"{page.stem}_{i}", text) for page in sorted(DOCS.rglob("*.md")) for i, text in enumerate(FENCED.findall(page.read_text()))]  # fmt: skip
OPENING = re.compile(r"^# an exercise$", re.MULTILINE)
LINK = re.compile(r"\]\((checks/\w+\.md)(?:#([\w]+))?\)")
ASKS = ("timing", "cases", "number", "spec", "choice", "table")
PER_STUDENT = "variants: {mode: per_student, seed: s}\n"


def course_of(folder: Path, name: str, text: str, more: str = "") -> Course:
    """Write a course that has only the exercise ``text``."""
    place = folder / "solutions" / "01_shown"
    place.mkdir(parents=True)
    (place / f"{name}.py").write_text(text)
    (folder / "course.yaml").write_text(
        f"name: shown\nseed: a-secret-seed\n{more}modules:\n  - {{id: 01_shown, title: Shown, exercises: [{name}]}}\n"
    )
    return load_course(folder / "course.yaml")


ASKING = [(name, text) for name, text in EXAMPLES if any(f"@exercise.{word}(" in text for word in ASKS[2:])]


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        *(pytest.param(*one, "", id=one[0]) for one in EXAMPLES),
        *(pytest.param(*one, PER_STUDENT, id=f"{one[0]}-per_student", marks=pytest.mark.slow) for one in ASKING),
    ],
)
def test_an_example_is_proved(workers: Workers, tmp_path: Path, name: str, text: str, more: str) -> None:
    """For examples with questions, ``more`` gives each student different numbers."""
    course = course_of(tmp_path, name, text, more)
    build(course)
    grader = Grader(course, "none", here=cast(Any, workers))
    assert problems_of(grader, name) == []
    assert list(verify.course_problems(course)) == []


def test_every_example_is_found() -> None:
    assert len(EXAMPLES) == sum(len(OPENING.findall(page.read_text())) for page in DOCS.rglob("*.md"))


def test_the_table_names_every_word_and_each_link_has_its_section() -> None:
    table = (DOCS / "checks.md").read_text().split("\n## The words of every exercise")[0]
    assert [word for word in dir(expect) if word.startswith("expect_") and f"`{word}(" not in table] == []
    assert [word for word in dir(Exercise) if word in ASKS and f"`exercise.{word}`" not in table] == []
    links = LINK.findall(table)
    assert {page for page, _ in links} == {f"checks/{page.name}" for page in (DOCS / "checks").glob("*.md")}
    for page, section in links:
        titles = re.findall("^## (.*)$", (DOCS / page).read_text(), re.MULTILINE)
        assert section in {"", *(title.replace(".", "") for title in titles)}, (page, section)
