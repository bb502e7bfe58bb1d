"""Answers in words, graded in nbgrader's formgrader: what the class page says of them before and after."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grader.course.build import build
from grader.integrations.nbgrader import folder
from tests import classroom, commands
from tests.reports.example_reports import Nesting
from tests.test_documented import course_of
from tests.test_written_answers import NAME, TEXT

pytest.importorskip("nbgrader")
MODULE = "01_shown"
CELL = folder.cell_name(NAME, "why_it_waits")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Ada and Bob answered in words, Cy did not."""
    course = course_of(tmp_path / "course", NAME, TEXT)
    build(course)
    root = tmp_path / "c"
    folder.init(course, root)
    commands.nbgrader("generate_assignment", MODULE, cwd=root)
    book = json.loads((root / "release" / MODULE / f"{MODULE}.ipynb").read_text())
    for who in ("ada", "bob", "cy"):
        answered = json.loads(json.dumps(book))
        for cell in answered["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == CELL and who != "cy":
                cell["source"] = f"why_it_waits = 'It waits for all rows, says {who}.'"
        classroom.hand_in(root, who, MODULE, answered)
    return root


@contextmanager
def gradebook_of(root: Path) -> Iterator[Any]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        yield gradebook
        gradebook.db.commit()


def give(root: Path, who: str, points: float | None, comment: str | None = None) -> None:
    """As the formgrader does when somebody types a score and a comment."""
    with gradebook_of(root) as gradebook:
        grade = gradebook.find_grade(CELL, MODULE, MODULE, who)
        grade.manual_score, grade.needs_manual_grade = points, points is None
        gradebook.find_comment(CELL, MODULE, MODULE, who).manual_comment = comment


def graded(root: Path) -> tuple[str, dict[str, str]]:
    """The class page's text, and those of the students."""
    done = commands.shardlings("grade", "--nbgrader", str(root), MODULE, "--jobs", "1", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = root / ".shardlings" / "pages" / MODULE
    own = {who: Nesting((pages / f"{who}.html").read_text()).text for who in ("ada", "bob", "cy")}
    return " ".join(Nesting((pages / "index.html").read_text()).text.split()), own


@pytest.mark.slow
def test_points_given_in_the_formgrader_settle_what_is_pending_and_the_others_are_named(root: Path) -> None:
    page, own = graded(root)
    assert page.count(f"by hand, in the formgrader: {NAME}/why_it_waits") == 2, (
        "ada and bob; there is nothing to read of cy"
    )
    assert "a person reads this answer" in own["ada"] and "not answered yet" in own["cy"]

    give(root, "ada", 1.5, "no word of <b>waiting</b>")
    page, own = graded(root)
    assert page.count("by hand, in the formgrader") == 1
    assert "1.5" in own["ada"] and "set by hand by the staff, in nbgrader: no word of <b>waiting</b>" in own["ada"]
    assert "a person reads this answer" not in own["ada"] and "a person reads this answer" in own["bob"]
    export = commands.nbgrader("export", cwd=root)
    assert export.returncode == 0, export.stderr
    with open(root / "grades.csv", newline="") as file:
        exported = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert exported == {"ada": 1.5, "bob": 0, "cy": 0}

    give(root, "ada", None)
    page, own = graded(root)
    assert page.count("by hand, in the formgrader") == 2 and "set by hand" not in own["ada"], "taken back"

    give(root, "ada", 2)
    path = root / "submitted" / "ada" / MODULE / f"{MODULE}.ipynb"
    path.write_text(path.read_text().replace("for all rows", "for each row"))
    page, own = graded(root)  # who hands in again keeps the points, and is named
    assert f"graded anew over a manual score of {NAME}/why_it_waits: look again" in page
    assert "for each row" in own["ada"] and "set by hand by the staff, in nbgrader: no comment" in own["ada"]
