"""Find the exercise from the name of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.intake.reading import read
from tests.handed_in import LOOKED_FOR, code, names, notebook, read_, write


@pytest.mark.parametrize(
    "name",
    [
        "03_matmuls (2).ipynb",
        "03_matmuls-alice.ipynb",
        "alice_03_matmuls.ipynb",
        "03_matmuls-Copy1.ipynb",
        "03_Matmuls.IPYNB",
        "liddellalice_123_456_03_matmuls-1.ipynb",
    ],
)
def test_a_file_name_may_contain_the_exercises_id(tmp_path: Path, name: str):
    write(tmp_path / name, notebook(code("b = 2")))
    assert names(read_(tmp_path)) == {"c1_local": name, "c3_contracting": name} == names(read_(tmp_path / name))


def test_the_longer_of_two_ids_in_a_file_name_counts(tmp_path: Path):
    write(tmp_path / "alice_e1_ring_gather_both.py")
    assert names(read_(tmp_path)) == {"e1_ring_gather_both": "alice_e1_ring_gather_both.py"}


def test_a_typo_is_accepted_with_a_note(tmp_path: Path):
    write(tmp_path / "c3_contracing.py")
    write(tmp_path / "05_ring.ipynb", notebook(code("b = 2")))
    found = read_(tmp_path)
    assert names(found)["c3_contracting"] == "c3_contracing.py"
    assert found.notes == (
        "c3_contracing.py is graded as c3_contracting.py",
        "05_ring.ipynb is graded as 05_rings.ipynb",
    )
    assert names(read_(tmp_path / "c3_contracing.py")) == {"c3_contracting": "c3_contracing.py"}


def test_a_typo_does_not_beat_the_exact_name(tmp_path: Path):
    write(tmp_path / "c3_contracing.py")
    write(tmp_path / "deep/c3_contracting.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "deep/c3_contracting.py"}
    assert found.notes == ("c3_contracing.py is not graded for c3_contracting: used deep/c3_contracting.py",)


def test_a_name_with_a_wrong_digit_does_not_match(tmp_path: Path):
    write(tmp_path / "c2_contracting.py")
    found = read_(tmp_path)
    assert not found.sources
    assert found.notes == (
        "these files are not named after an exercise, so they are not graded: c2_contracting.py",
        f"nothing to grade: {LOOKED_FOR}",
    )


def test_an_ambiguous_typo_is_not_graded(tmp_path: Path):
    write(tmp_path / "c3_gather_z.py")
    found = read(tmp_path, "alice", {"c3_gather_x": "m", "c3_gather_y": "m"})
    assert not found.sources
    assert found.notes[0] == "c3_gather_z.py could be c3_gather_x or c3_gather_y and is not graded; rename it"


def test_a_file_name_may_be_the_first_words_of_one_id(tmp_path: Path):
    """``shardlings check c3`` follows this rule too."""
    write(tmp_path / "c3.py", "a = 1")
    write(tmp_path / "05.ipynb", notebook(code("b = 2")))
    write(tmp_path / "e1.py")  # this name could mean e1_ring_gather or e1_ring_gather_both
    write(tmp_path / "c.py")
    found = read_(tmp_path)
    assert names(found) == {"c3_contracting": "c3.py", "e1_ring_gather": "05.ipynb", "e1_ring_gather_both": "05.ipynb"}
    assert found.notes == (
        "these files are not named after an exercise, so they are not graded: c.py, e1.py",
        "c3.py is graded as c3_contracting.py",
        "05.ipynb is graded as 05_rings.ipynb",
    )
    write(tmp_path / "c3_contracting.py", "a = 3")
    assert names(read_(tmp_path))["c3_contracting"] == "c3_contracting.py"
