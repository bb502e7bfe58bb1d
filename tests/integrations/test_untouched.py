"""A released notebook in which the student wrote nothing does not count as handed in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.course.build import handed_out_texts
from grader.course.finding import find_course
from grader.course.loading import Course
from tests.commands import ROOT

pytest.importorskip("nbgrader")

from grader.integrations.nbgrader import folder
from grader.integrations.nbgrader.repair import ReleasedCell, repair


def marks(cell: Any) -> dict[str, Any]:
    return cell["metadata"].get("nbgrader", {})


@pytest.fixture(scope="module")
def course() -> Course:
    return find_course(ROOT / "course.yaml")


def is_untouched(course: Course, module: str, place: Path, change: Callable[[list[Any]], object]) -> bool:
    """Return whether a module's released notebook counts as untouched after ``change`` of its cells."""
    book = json.loads(folder.source_notebook(course, module))
    known = [
        ReleasedCell(
            m["grade_id"], c["cell_type"], "".join(c["source"]), None, m.get("points"), m["solution"], m["task"]
        )
        for c in book["cells"]
        if (m := marks(c))
    ]
    change(book["cells"])
    path = place / f"{module}.ipynb"
    path.write_text(json.dumps(book))
    cells = frozenset(text.strip() for text in handed_out_texts(course, module))
    names = course.module(module).exercises
    return repair(path, "ada", known, names, folder.texts_given(course), None, cells).is_blank


def solved(cells: list[Any]) -> None:
    cell = next(c for c in cells if marks(c).get("solution") and "".join(c["source"]).startswith("def "))
    cell["source"] = "".join(cell["source"]).replace("raise NotImplementedError", "return 1; raise NotImplementedError")


def emptied(cells: list[Any]) -> None:
    cells[:] = [cell for cell in cells if not marks(cell).get("solution")]


def executed(cells: list[Any]) -> None:
    for cell in cells:
        if cell["cell_type"] == "code":
            cell |= {"execution_count": 3, "outputs": [{"output_type": "stream", "name": "stdout", "text": "1"}]}


# 03_matmuls gives students no code; the notebooks of the other modules also have cells with complete functions.
@pytest.mark.parametrize("module", ["01_layout", "03_matmuls", "08_training"])
def test_a_released_notebook_without_the_students_code_is_untouched(
    module: str, course: Course, tmp_path: Path
) -> None:
    assert is_untouched(course, module, tmp_path, executed)
    assert is_untouched(course, module, tmp_path, emptied), "the cells to fill in are gone"
    own = {"cell_type": "code", "metadata": {}, "source": "def helper(x):\n    return x"}
    assert not is_untouched(course, module, tmp_path, lambda cells: cells.append(own))
    assert not is_untouched(course, module, tmp_path, solved)
