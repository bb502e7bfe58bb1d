"""The choice of the graded file, the digest of a submission, and files of arbitrary bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from grader.intake.submission import Unreadable
from grader.wire import limits
from tests.handed_in import PIECES, code, fingerprints, names, notebook, read_, read_cells, write, zipped


def test_a_folder_is_searched_by_name(tmp_path: Path):
    write(tmp_path / "hw/03_matmuls/c3_contracting.py", "a = 1\n")
    write(tmp_path / "05_rings.ipynb", notebook(code("b = 2")))
    found = read_(tmp_path)
    assert found.student == "alice"
    assert names(found) == {
        "c3_contracting": "hw/03_matmuls/c3_contracting.py",
        "e1_ring_gather": "05_rings.ipynb",
        "e1_ring_gather_both": "05_rings.ipynb",
    }
    chunk = found.sources["c3_contracting"].chunks[0]
    assert (chunk.name, chunk.text) == ("c3_contracting.py", "a = 1\n")
    assert found.sources["e1_ring_gather"] is found.sources["e1_ring_gather_both"]
    assert found.notes == ()


def test_a_py_file_takes_precedence_over_its_modules_notebook(tmp_path: Path):
    write(tmp_path / "a/b/c3_contracting.py")
    write(tmp_path / "03_matmuls.ipynb", notebook(code("b = 2")))
    found = read_(tmp_path)
    assert names(found) == {"c1_local": "03_matmuls.ipynb", "c3_contracting": "a/b/c3_contracting.py"}
    assert found.notes == ("03_matmuls.ipynb is not graded for c3_contracting: used a/b/c3_contracting.py",)


def test_a_changed_file_takes_precedence_over_an_unchanged_stub(tmp_path: Path):
    given_out = tmp_path / "exercises"
    write(given_out / "03_matmuls/c3_contracting.py", "TODO = 1\n")
    write(given_out / "03_matmuls/c1_local.py", "TODO = 2\n")
    write(given_out / "03_matmuls/03_matmuls.ipynb", notebook(code("TODO = 1")))
    stubs = fingerprints(given_out)
    assert len(stubs) == 2  # the notebook and c3_contracting.py have equal code

    work = tmp_path / "work"
    write(work / "c3_contracting.py", "TODO = 1  \r\n\r\n")
    write(work / "c1_local.py", "solved = 2\n")
    write(work / "03_matmuls.ipynb", notebook(code("solved = 1")))
    assert names(read_(work))["c3_contracting"] == "c3_contracting.py"
    found = read_(work, handed_out=stubs)
    assert names(found) == {"c1_local": "c1_local.py", "c3_contracting": "03_matmuls.ipynb"}
    assert found.notes == ("03_matmuls.ipynb is not graded for c1_local: used c1_local.py",)


def test_an_unchanged_file_is_graded_if_it_is_the_only_one(tmp_path: Path):
    write(tmp_path / "c3_contracting.py", "TODO = 1\n")
    found = read_(tmp_path, handed_out=fingerprints(tmp_path))
    assert names(found) == {"c3_contracting": "c3_contracting.py"}


def test_the_copy_with_the_exact_name_and_shortest_path_is_graded(tmp_path: Path):
    write(tmp_path / "c3_contracting (1).py")
    write(tmp_path / "old/c3_contracting.py")
    write(tmp_path / "older/still/c3_contracting.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "old/c3_contracting.py"}
    assert found.notes == (
        "older/still/c3_contracting.py is not graded for c3_contracting: used old/c3_contracting.py",
        "c3_contracting (1).py is not graded for c3_contracting: used old/c3_contracting.py",
    )


def test_a_notebook_may_be_one_exercise_and_a_py_file_a_module(tmp_path: Path):
    write(tmp_path / "c3_contracting.ipynb", notebook(code("b = 2")))
    write(tmp_path / "05_rings.py")
    assert names(read_(tmp_path)) == {
        "c3_contracting": "c3_contracting.ipynb",
        "e1_ring_gather": "05_rings.py",
        "e1_ring_gather_both": "05_rings.py",
    }


def test_the_total_is_limited_and_exact_names_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "MAX_TOTAL", 2**20)
    write(tmp_path / "a c3_contracting.py", b"#" * 2**20)
    write(tmp_path / "c3_contracting.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "c3_contracting.py"}
    assert found.notes == ("more than 1 MiB were submitted: a c3_contracting.py and later files were not read",)


def test_the_bytes_of_all_files_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The limit also counts bytes of a notebook that are no code, such as outputs."""
    monkeypatch.setattr(limits, "MAX_READ", 2**20)
    write(tmp_path / "c3_contracting.py")
    write(tmp_path / "05_rings.ipynb", notebook(code("b = 2")) + " " * 2**20)
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "c3_contracting.py"}
    assert found.notes == ("more than 1 MiB were submitted: 05_rings.ipynb and later files were not read",)


def test_the_number_of_notes_is_limited(tmp_path: Path):
    found = read_cells(tmp_path, *[code("%x")] * 150)
    assert len(found.notes) == 101
    assert found.notes[-1] == "and 50 more notes"


def test_a_readable_file_takes_precedence_over_an_unreadable_one(tmp_path: Path):
    write(tmp_path / "c3_contracting.py", b"\xff\xff")
    write(tmp_path / "03_matmuls.ipynb", notebook(code("b = 2")))
    found = read_(tmp_path)
    assert names(found)["c3_contracting"] == "03_matmuls.ipynb"
    assert found.notes == ("c3_contracting.py is not UTF-8 text (line 1); save it as UTF-8",)


def test_notes_on_files_that_are_not_graded_are_kept_apart(tmp_path: Path):
    """``unread`` has only notes on files that may contain an exercise and were not read. ``notes`` has all notes."""
    write(tmp_path / "c3.py")
    write(tmp_path / "older/still/c3_contracting.ipynb", notebook(code("%x")))
    write(tmp_path / "c1_local.ipynb", "no json")
    write(tmp_path / "mine.py")
    found = read_(tmp_path)
    assert found.unread == (
        "these files are not named after an exercise, so they are not graded: mine.py",
        "c1_local.ipynb is not a notebook: line 1 is not JSON; export it again from Jupyter",
    )
    assert found.notes[:2] == found.unread and len(found.notes) == 4


def test_the_digest_covers_names_bytes_and_notes(tmp_path: Path):
    write(tmp_path / "a/c3_contracting.py", "a = 1")
    write(tmp_path / "b/c3_contracting.py", "a = 1")
    write(tmp_path / "b/irrelevant.txt")
    write(tmp_path / "c/c3_contracting.py", "a = 2")
    write(tmp_path / "d/c1_local.py", "a = 1")
    write(tmp_path / "e.zip", zipped({"c3_contracting.py": "a = 1"}))
    a, b, c, d, e = (read_(tmp_path / name).digest for name in ("a", "b", "c", "d", "e.zip"))
    assert a == b == e
    assert len({a, c, d}) == 3
    assert read_(tmp_path / "a/c3_contracting.py").digest == a
    write(tmp_path / "a/c1_local.py", b"#" * (limits.MAX_FILE + 1))
    assert read_(tmp_path / "a").digest != a  # the submission now has a note about the large file


def test_the_digest_changes_with_the_chosen_file(tmp_path: Path):
    write(tmp_path / "c3_contracting.py", "TODO = 1")
    stubs = fingerprints(tmp_path)
    write(tmp_path / "03_matmuls.ipynb", notebook(code("solved = 1")))
    assert read_(tmp_path).digest != read_(tmp_path, handed_out=stubs).digest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
CELL = JSON | st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "widget"]) | JSON,
        "source": PIECES | st.lists(PIECES, max_size=3) | JSON,
        "input": PIECES | JSON,
        "metadata": JSON | st.fixed_dictionaries({"nbgrader": JSON}),
    },
)
DOCUMENT = st.one_of(
    JSON,
    st.fixed_dictionaries({"cells": st.lists(CELL, max_size=5) | JSON}),
    st.fixed_dictionaries({"worksheets": JSON | st.lists(st.fixed_dictionaries({"cells": JSON | st.lists(CELL)}))}),
)
GOOD_ZIP = zipped({"c3_contracting.py": "a = 1\n" * 20, "hw/05_rings.ipynb": notebook(code("b"))})


@st.composite
def damaged_zip(draw: st.DrawFn) -> bytes:
    data = bytearray(GOOD_ZIP)
    for _ in range(draw(st.integers(1, 8))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


ANYTHING = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(lambda t: t.encode("utf-8", "surrogatepass")),
    DOCUMENT.map(lambda d: json.dumps(d).encode()),
    damaged_zip(),
)


@hypothesis_settings(max_examples=400)
@given(name=st.sampled_from(["c3_contracting.py", "03_matmuls.ipynb", "c3_contracting.zip"]), content=ANYTHING)
def test_any_bytes_are_read_or_noted(name: str, content: bytes, tmp_path_factory: pytest.TempPathFactory):
    path = write(tmp_path_factory.getbasetemp() / "any" / name, content)
    found = read_(path)
    assert found.sources or found.notes
    assert all("\n" not in note and note.isprintable() for note in found.notes)
    for source in found.sources.values():
        for chunk in source.chunks:
            assert "\0" not in chunk.text and "\r" not in chunk.text
            chunk.text.encode()
    assert read_(path) == found


def test_a_path_called_final_takes_precedence_over_one_called_old(tmp_path: Path):
    write(tmp_path / "code/old/c3_contracting.py", "a = 1")
    write(tmp_path / "code/final/c3_contracting.py", "a = 2")
    write(tmp_path / "code/c1_local_backup.py", "a = 1")
    write(tmp_path / "code/c1_local_mine_and_only_mine.py", "a = 2")
    found = read_(tmp_path)
    assert names(found)["c3_contracting"] == "code/final/c3_contracting.py"
    assert names(found)["c1_local"] == "code/c1_local_mine_and_only_mine.py"
    assert (
        "code/old/c3_contracting.py is not graded for c3_contracting: used code/final/c3_contracting.py" in found.notes
    )


@pytest.mark.parametrize(
    ("one", "two", "used"),
    [
        ("ada_03_matmuls.zip", "ada_03_matmuls-1.zip", ""),
        ("a.zip", "later/b.zip", ""),
        ("final.zip", "a.zip", "final.zip"),
        ("a.zip", "old.zip", "a.zip"),
    ],
)
def test_the_name_of_a_zip_does_not_decide_which_of_two_answers_counts(tmp_path: Path, one: str, two: str, used: str):
    for name, text in ((one, "a = 1\n"), (two, "a = 2\n")):
        write(tmp_path / name, zipped({"c3_contracting.py": text}))
    if used:
        assert names(read_(tmp_path)) == {"c3_contracting": f"{used}/c3_contracting.py"}
    else:
        with pytest.raises(Unreadable, match=f"{one} and {two} have different answers to c3_contracting"):
            read_(tmp_path)


def test_two_zips_with_equal_or_different_exercises_are_graded(tmp_path: Path):
    write(tmp_path / "a.zip", zipped({"c3_contracting.py": "a = 1\n"}))
    write(tmp_path / "a-1.zip", zipped({"c3_contracting.py": "a = 1\n", "c1_local.py": "b = 1\n"}))
    assert names(read_(tmp_path)) == {"c3_contracting": "a.zip/c3_contracting.py", "c1_local": "a-1.zip/c1_local.py"}
    write(tmp_path / "a-2.zip", zipped({"c3_contracting.py": "a = 2\n"}))
    write(tmp_path / "c3_contracting.py", "a = 3\n")
    assert names(read_(tmp_path))["c3_contracting"] == "c3_contracting.py"
