"""The submissions of a batch, as the commands of the staff read them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.batch.handing_in import Submissions
from grader.cli.class_reading import others_named, read_class
from grader.intake.names import Signatures
from grader.intake.parsers import Parsers
from grader.intake.submission import Place, Unreadable
from tests.handed_in import write, zipped
from tests.made_up import made_up


@pytest.fixture
def submissions() -> Iterator[Submissions]:
    with Submissions() as made:
        yield made


def test_each_submission_is_read_once_for_its_student(tmp_path: Path, submissions: Submissions) -> None:
    """Earlier, the grader read the submissions of large classes several times, and a file could change meanwhile."""
    course = made_up(tmp_path / "course")
    write(tmp_path / "class" / "ada" / "bob_x1_gather.py", b"x = 1\n")
    write(tmp_path / "class" / "bob" / "x1_gather.py", b"x = 2\n")
    work = read_class(course, [tmp_path / "class"], str, Parsers(), submissions)
    shutil.rmtree(tmp_path / "class")
    assert [(student, one.student) for student, one in work.submissions.items()] == [("ada", "ada"), ("bob", "bob")]
    (case,) = work.cases
    assert (case.student, case.graded) == ("ada", True)
    assert case.reason == "check whose submission this is: bob_x1_gather.py names bob"


def test_a_submission_that_cannot_be_read_needs_review_and_the_others_are_read(
    tmp_path: Path, submissions: Submissions
) -> None:
    course = made_up(tmp_path / "course")
    for student in ("ada", "bob"):
        write(tmp_path / "class" / student / "x1_gather.py", b"x = 1\n")

    class Broken(Parsers):
        def for_submission(self, place: Place) -> Parsers:
            if "ada" in str(place):
                raise Unreadable("the disk is gone")
            return Parsers()

    work = read_class(course, [tmp_path / "class"], str, Broken(), submissions)
    assert list(work.submissions) == ["bob"]
    assert [(case.student, case.reason, case.graded) for case in work.cases] == [("ada", "the disk is gone", False)]


def test_files_that_name_a_student_without_a_graded_submission_need_review(
    tmp_path: Path, submissions: Submissions
) -> None:
    """Earlier, the grader reported a file with another student's name only if it graded this student in the same run."""
    course, folder = made_up(tmp_path / "course"), tmp_path / "class"
    for file in ("ada/bob_x1_gather.py", "bob/x1_gather.py", "cy/eve_x1_gather.py", "dan/nobody_x1_gather.py"):
        write(folder / file, b"x = 1\n")
    write(folder / "bob.zip", b"")
    work = read_class(course, [folder], str, Parsers(), submissions, {"eve"}.__contains__)
    assert {case.student: case.reason for case in work.cases if case.graded} == {
        "ada": "check whose submission this is: bob_x1_gather.py names bob",
        "cy": "check whose submission this is: eve_x1_gather.py names eve",
    }


@pytest.mark.parametrize("work", ["bob/x1_gather.py", "bob_x1_gather.py"])
def test_a_folder_with_one_submission_may_be_a_students_folder(
    tmp_path: Path, work: str, submissions: Submissions
) -> None:
    """Earlier, `grade class/ada class/bob` exchanged the points of two students in silence."""
    course, ada = made_up(tmp_path / "course"), tmp_path / "class" / "ada"
    write(ada / work, b"x = 1\n")
    found = read_class(course, [ada], str, Parsers(), submissions)
    (case,) = found.cases
    assert (case.student, case.graded, case.paths, found.folders) == ("bob", True, (ada,), [])
    assert case.reason == (
        f"check whose submission this is: {ada} may be a student's folder; "
        f"to settle this, pass --roster, or grade the folder that holds {ada}"
    )
    listed = read_class(course, [ada], str, Parsers(), submissions, on_roster={"bob"}.__contains__)
    assert (listed.cases, listed.folders) == ([], [ada])


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


@pytest.mark.parametrize("work", ["bob/x1_gather.py", "bob_x1_gather.py"])
def test_a_folder_with_the_name_of_a_student_who_has_a_report_is_this_students(
    tmp_path: Path, work: str, submissions: Submissions
) -> None:
    """Earlier, `grade class/ada` replaced bob's report by the file that ada had named after bob."""
    course, ada = made_up(tmp_path / "course"), tmp_path / "class" / "ada"
    write(ada / work, b"x = 1\n")
    in_class = {"ada", "bob"}.__contains__
    found = read_class(course, [ada], str, Parsers(), submissions, in_class)
    (case,) = found.cases
    assert [*found.places] == ["ada"] and found.folders == []
    assert (case.student, case.reason) == ("ada", f"check whose submission this is: {work.split('/')[0]} names bob")
    write(ada / "cy" / "x1_gather.py", b"x = 1\n")
    found = read_class(course, [ada], str, Parsers(), submissions, in_class)
    assert [*found.places] == ["bob", "cy"] and found.folders == []
    assert all(" may be a student's folder; " in case.reason for case in found.cases)
    listed = read_class(course, [ada], str, Parsers(), submissions, in_class, {"cy"}.__contains__)
    assert [*listed.places] == ["bob", "cy"] and listed.folders == [ada]
