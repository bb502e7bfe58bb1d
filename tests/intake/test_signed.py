"""Files in one student's submission with the name of another student of the class."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.intake.names import Signatures
from grader.intake.parsers import Parsers
from grader.intake.signed import others_named
from tests.handed_in import write, zipped

EXERCISES = {"c1_one": "03_matmuls", "c2_two": "03_matmuls"}
CLASS = {"ada": "ada", "bob": "bob", "bob@x.edu": "bob"}


def stamp(student: object) -> str:
    return json.dumps({"student": student})


def others(place: Path, *sources: str, student: str = "ada") -> list[tuple[str, str]]:
    return others_named(student, place, sources, Signatures(EXERCISES), lambda name: CLASS.get(name, ""), Parsers())


def test_a_zip_or_file_named_after_another_student_is_found(tmp_path: Path) -> None:
    assert others(tmp_path, "bob_03_matmuls.zip/c1_one.py") == [("bob_03_matmuls.zip", "bob")]
    assert others(tmp_path, "old/bob_c1_one (2).py", "c2_two.py") == [("old/bob_c1_one (2).py", "bob")]
    assert others(tmp_path, "ada_03_matmuls.zip/c1_one.py", "zoe_c1_one.py", "final_c2_two.py", "c1_one.py") == []


def test_a_folder_or_zip_with_only_another_students_name_is_found(tmp_path: Path) -> None:
    """Earlier, a section's folder with a student's name gave this student the submissions of the section."""
    assert others(tmp_path, "bob/c1_one.py", "bob.zip/c2_two.py") == [("bob", "bob"), ("bob.zip", "bob")]
    assert others(tmp_path, "bob.x/c1_one.py", "03_matmuls/c1_one.py", "ada/c2_two.py") == []


@pytest.mark.parametrize("manifest", [stamp("bob"), stamp("bob@x.edu")])
def test_a_manifest_that_names_another_student_is_found_anywhere(tmp_path: Path, manifest: str) -> None:
    alone = tmp_path / "ada_03_matmuls.zip"
    alone.write_bytes(zipped({"manifest.json": manifest, "c1_one.py": "x = 1\n"}))
    assert others(alone, "c1_one.py") == [("ada_03_matmuls.zip", "bob")]
    (tmp_path / "ada").mkdir()
    alone.rename(tmp_path / "ada" / "w.zip")
    assert others(tmp_path / "ada", "w.zip/c1_one.py") == [("w.zip", "bob")]
    write(tmp_path / "ada" / "manifest.json", manifest)
    assert others(tmp_path / "ada", "c1_one.py") == [("manifest.json", "bob")]


@pytest.mark.parametrize(
    "manifest", ["{", "[]", stamp(None), stamp(["bob"]), stamp("ada"), stamp("x" * 10**5), "[" * 9999]
)
def test_a_manifest_that_names_no_other_student_is_ignored(tmp_path: Path, manifest: str) -> None:
    write(tmp_path / "ada" / "manifest.json", manifest)
    (tmp_path / "z.zip").write_bytes(zipped({"manifest.json": manifest, "c1_one.py": "x = 1\n"}))
    assert others(tmp_path / "ada", "c1_one.py") == others(tmp_path / "z.zip", "c1_one.py") == []
    assert others(write(tmp_path / "broken.zip", b"PK"), "c1_one.py") == []
