"""Cells of valid and damaged notebooks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.intake.notebooks import without_outputs
from grader.intake.submission import Refused
from grader.wire import limits
from tests.handed_in import code, notebook, read_, read_cells, texts, write, zipped


def test_code_cells_are_counted_over_all_cells(tmp_path: Path):
    found = read_cells(
        tmp_path,
        {"cell_type": "markdown", "source": "# title"},
        code(["a = 1\n", "b = 2"]),
        {"cell_type": "raw", "source": "r"},
        {"cell_type": "code", "source": "c = 3"},  # this cell has no metadata and no outputs
    )
    chunks = found.sources["c3_contracting"].chunks
    assert [(c.name, c.text) for c in chunks] == [("cell 2", "a = 1\nb = 2"), ("cell 4", "c = 3")]
    assert found.notes == ()


def test_nbgraders_test_cells_are_left_out(tmp_path: Path):
    found = read_cells(
        tmp_path,
        code("given", nbgrader={"grade": False, "solution": False, "locked": True}),
        code("solution", nbgrader={"grade": False, "solution": True}),
        code("answer", nbgrader={"grade": True, "solution": True}),
        code("test", nbgrader={"grade": True, "solution": False, "locked": True}),
        code("odd", nbgrader=["grade"]),
    )
    assert texts(found) == ["given", "solution", "answer", "odd"]


def test_a_notebook_of_version_3_is_read(tmp_path: Path):
    cells = [{"cell_type": "heading", "source": "h"}, {"cell_type": "code", "input": ["a = 1\n", "b = 2"]}]
    document = {"nbformat": 3, "worksheets": [{"cells": cells}, {"cells": [{"cell_type": "code", "input": "c = 3"}]}]}
    found = read_(write(tmp_path / "03_matmuls.ipynb", json.dumps(document)))
    assert [c.name for c in found.sources["c1_local"].chunks] == ["cell 2", "cell 3"]
    assert texts(found) == ["a = 1\nb = 2", "c = 3"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("hello", "line 1 is not JSON"),
        ('{"cells": [\n<<<<<<< HEAD\n', "line 2 is not JSON"),
        (notebook(code("a"))[:-9], "line 1 is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"cells": ' * 100_000, "it is nested too deeply"),
        ("[]", "it has no list of cells"),
        ('{"cells": {}}', "it has no list of cells"),
        ('{"worksheets": 3}', "it has no list of cells"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused_in_one_line(tmp_path: Path, content: str, reason: str):
    found = read_(write(tmp_path / "03_matmuls.ipynb", content))
    assert not found.sources
    assert found.notes == (f"03_matmuls.ipynb is not a notebook: {reason}; export it again from Jupyter",)


def test_damaged_cells_are_left_out_and_the_rest_is_kept(tmp_path: Path):
    bad = [
        7,
        None,
        {},
        {"cell_type": []},
        {"cell_type": "quantum", "source": "a"},
        {"cell_type": "code"},
        code([1]),
        code("a\0"),
        code("'\ud800'"),
    ]
    found = read_cells(tmp_path, code("ok = 1"), *bad, {"cell_type": "code", "source": "ok = 2", "metadata": 3})
    assert [c.name for c in found.sources["c3_contracting"].chunks] == ["cell 1", "cell 11"]
    assert found.notes == ("damaged cells of 03_matmuls.ipynb were left out: 2, 3, 4, 5, 6 and 4 more",)


def test_huge_numbers_and_outputs_are_ignored(tmp_path: Path):
    cell = '{"cell_type": "code", "source": "a = 1", "execution_count": HUGE, "outputs": [{"x": 1e999999}]}'
    document = '{"nbformat": NaN, "cells": [CELL]}'.replace("CELL", cell).replace("HUGE", "9" * 9999)
    found = read_(write(tmp_path / "03_matmuls.ipynb", document))
    assert texts(found) == ["a = 1"]
    assert found.notes == ()


def test_ipython_syntax_is_noted_by_cell(tmp_path: Path):
    found = read_cells(tmp_path, code("%matplotlib inline\n!pip install x\njnp.sum?\na = 1"), code("%%bash\nls"))
    assert texts(found)[1] == ""
    assert found.notes == (
        "cell 1 of 03_matmuls.ipynb: left out %matplotlib inline, !pip install x and 1 more",
        "cell 2 of 03_matmuls.ipynb: left out %%bash",
    )


def test_an_ignored_notebook_gives_no_notes_about_its_cells(tmp_path: Path):
    write(tmp_path / "03_matmuls.ipynb", notebook(code("%x")))
    write(tmp_path / "c1_local.py")
    write(tmp_path / "c3_contracting.py")
    assert read_(tmp_path).notes == (
        "03_matmuls.ipynb is not graded for c1_local, c3_contracting: used c1_local.py, c3_contracting.py",
    )


def test_a_notebook_with_plots_is_read_without_its_outputs(tmp_path: Path):
    plot = {"output_type": "display_data", "data": {"image/png": 'A\\"[{' * 1_500_000, "x": [[{}], "outputs"]}}
    cells = [code('a = "outputs"\nb = {"outputs": [1]}') | {"outputs": [plot]}, code("c = 3")]
    cells[1]["outputs"], cells[1]["metadata"] = [plot], {"outputs": "a word"}
    text = json.dumps({"metadata": {"widgets": {"x": [plot]}}, "cells": cells})
    assert len(text) > 3 * limits.MAX_FILE
    found = read_(write(tmp_path / "03_matmuls.ipynb", text))
    assert texts(found) == ['a = "outputs"\nb = {"outputs": [1]}', "c = 3"]
    found = read_(write(tmp_path / "a.zip", zipped({"03_matmuls.ipynb": text})))
    assert texts(found) == ['a = "outputs"\nb = {"outputs": [1]}', "c = 3"]


def test_without_outputs_changes_nothing_but_outputs_and_attachments(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MAX_FILE", 0)
    cell = code(["a\n", '"outputs": ["]'], tags=["outputs"]) | {"attachments": {"a": [1]}, "outputs": [[{}], "]"]}
    text = json.dumps({"cells": [cell], "metadata": {"outputs": "x"}}, indent=1)
    assert json.loads(without_outputs(text)) == {
        "cells": [cell | {"attachments": {}, "outputs": []}],
        "metadata": {"outputs": "x"},
    }
    assert without_outputs('{"outputs": [[') == '{"outputs": [['
    monkeypatch.setattr(limits, "MAX_BRACKETS", 100)
    with pytest.raises(Refused, match="outputs that take too long to read; clear its outputs"):
        without_outputs('{"outputs": [' + "[" * 1000)


def test_too_much_code_in_a_notebook_is_refused(tmp_path: Path):
    cells = [code("#" * 2**20) for _ in range(6)]
    found = read_(write(tmp_path / "03_matmuls.ipynb", notebook(*cells)))
    assert found.notes[0] == "03_matmuls.ipynb holds more than 5 MiB of code and was not read; hand in only your work"


def test_the_check_cells_of_a_notebook_mark_the_ends_of_its_exercises(tmp_path: Path):
    cells = [
        code("a = 1"),
        code('check("c1_local")', nbgrader={"grade": True, "solution": False}),
        {"cell_type": "markdown", "source": 'check("c3")'},
        code("b = 2\ncheck('c3')"),
        code('# check("e1")\nprint("check(\'c1\')")'),
        code('check("e1")\ncheck("nothing")'),
    ]
    source = read_cells(tmp_path, *cells).sources["c3_contracting"]
    assert source.ends == (("c1_local", "cell 1"), ("c3_contracting", "cell 4"))
