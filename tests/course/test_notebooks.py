"""Notebooks are valid, and their cells have fixed ids."""

from __future__ import annotations

import json
import math
from pathlib import Path

import nbformat
import pytest

from grader.course.loading import load_course
from grader.course.notebooks import by_hand, cell, notebook, setup
from grader.intake.facts import nothing_written
from grader.intake.submission import Chunk, Source
from tests.made_up import made_up


def test_a_notebook_is_valid_and_has_fixed_cell_ids(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    text = notebook(course, "01_gather")
    book = nbformat.reads(text, as_version=4)
    nbformat.validate(book)
    assert [c.id for c in book.cells] == [
        "01_gather-intro", "01_gather-setup", "01_gather-by-hand-text", "01_gather-by-hand", "x1_gather-statement", "x1_gather-given", "x1_gather-gather",
        "x1_gather-gather_time-text", "x1_gather-gather_time", "x1_gather-check",
    ]  # fmt: skip
    assert notebook(course, "01_gather") == text
    setup = book.cells[1].source
    assert setup.index("XLA_FLAGS") < setup.index("import jax")


def test_a_badge_opens_the_notebook_in_the_courses_repository(tmp_path: Path) -> None:
    assert "colab" not in notebook(made_up(tmp_path), "01_gather").lower()
    config = tmp_path / "course.yaml"
    config.write_text(config.read_text() + "repository: https://github.com/who/what/tree/main/exercises\n")
    intro = nbformat.reads(notebook(load_course(config), "01_gather"), as_version=4).cells[0].source
    there = "https://colab.research.google.com/github/who/what/blob/main/exercises/01_gather/01_gather.ipynb"
    assert f"]({there})" in intro


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8, 12])
def test_the_cell_for_experiments_has_a_mesh_of_all_devices(devices: int) -> None:
    text = by_hand(devices)
    axes = json.loads(text.split("axes = ", 1)[1].splitlines()[0])
    assert (math.prod(axes.values()) == devices and len(set(axes.values())) == len(axes)) or devices == 4
    compile(text, "cell", "exec")


def test_a_notebook_with_only_setup_cells_counts_as_unanswered(tmp_path: Path) -> None:
    """Setup cells, also those of older versions, define no task and answer no question."""
    config = made_up(tmp_path).root / "course.yaml"
    config.write_text(config.read_text() + "repository: https://github.com/who/what/tree/main/exercises\n")
    cells = [setup(load_course(config)), by_hand(8), "def gather(a, *, mesh):\n    raise NotImplementedError"]
    assert nothing_written(Source("notebook", tuple(Chunk(f"cell {i}", c) for i, c in enumerate(cells))))


def test_cell_ids_do_not_change_when_an_exercise_is_added(tmp_path: Path) -> None:
    """Answers from the old notebook must be found in the new one."""
    old = {c.id: c.source for c in nbformat.reads(notebook(made_up(tmp_path), "01_gather"), as_version=4).cells}
    folder = tmp_path / "solutions" / "01_gather"
    (folder / "x0_first.py").write_text((folder / "x1_gather.py").read_text())
    text = (tmp_path / "course.yaml").read_text().replace("[x1_gather]", "[x0_first, x1_gather]")
    (tmp_path / "course.yaml").write_text(text)
    new = {
        c.id: c.source
        for c in nbformat.reads(notebook(load_course(tmp_path / "course.yaml"), "01_gather"), as_version=4).cells
    }
    assert set(old) < set(new) and all(new[i] == text for i, text in old.items())


def test_long_exercise_names_give_different_cell_ids_of_valid_length() -> None:
    names = ["x1_" + "long_" * 12 + end for end in ("one", "two")]
    ids = {cell("code", f"{n}-given", "").id for n in names}
    assert len(ids) == 2 and all(len(i) <= 64 for i in ids)


def test_a_notebook_of_questions_only_does_not_mention_meshes(tmp_path: Path) -> None:
    made_up(tmp_path)
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    path.write_text(
        '"""# X1 Why\n\nThink.\n"""\n\nfrom grader.exercise import Exercise\n\nexercise = Exercise()\n\n\n'
        '@exercise.written(points=1, rubric="1: bytes")\ndef why_slow():\n    """Why does it wait?"""\n    return "Bytes."\n'
    )
    book = nbformat.reads(notebook(load_course(tmp_path / "course.yaml"), "01_gather"), as_version=4)
    assert [c.id for c in book.cells[:3]] == ["01_gather-intro", "01_gather-setup", "x1_gather-statement"]
    assert "Answer the questions in the cells marked `TODO`, run the check" in book.cells[0].source
    assert not any("mesh" in c.source for c in book.cells if c.cell_type == "markdown")
