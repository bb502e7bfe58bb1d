"""The submissions of a batch, as the commands of the staff read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.batch import store
from grader.cli.handed_in import handed_in
from grader.intake.parsers import Parsers
from tests.handed_in import write
from tests.made_up import made_up


def test_a_submission_that_is_read_again_belongs_to_the_same_student(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grader keeps few submissions in memory, so it reads each submission again before it grades the submission."""
    monkeypatch.setattr(store, "MOST_HELD", 0)
    course = made_up(tmp_path / "course")
    write(tmp_path / "class" / "ada" / "bob_x1_gather.py", b"x = 1\n")
    write(tmp_path / "class" / "bob" / "x1_gather.py", b"x = 2\n")
    work = handed_in(course, [tmp_path / "class"], str, Parsers())
    assert [work.submissions[student].student for student in ("ada", "bob")] == ["ada", "bob"]
    (case,) = work.cases
    assert (case.student, case.graded) == ("ada", True)
    assert case.reason == "check whose submission this is: bob_x1_gather.py names bob"


def test_files_that_name_a_student_without_a_graded_submission_need_review(tmp_path: Path) -> None:
    """Earlier, the grader reported a file with another student's name only if it graded this student in the same run."""
    course, folder = made_up(tmp_path / "course"), tmp_path / "class"
    for file in ("ada/bob_x1_gather.py", "bob/x1_gather.py", "cy/eve_x1_gather.py", "dan/nobody_x1_gather.py"):
        write(folder / file, b"x = 1\n")
    write(folder / "bob.zip", b"")
    work = handed_in(course, [folder], str, Parsers(), {"eve"}.__contains__)
    assert {case.student: case.reason for case in work.cases if case.graded} == {
        "ada": "check whose submission this is: bob_x1_gather.py names bob",
        "cy": "check whose submission this is: eve_x1_gather.py names eve",
    }


@pytest.mark.parametrize("work", ["bob/x1_gather.py", "bob_x1_gather.py"])
def test_a_folder_with_one_submission_may_be_a_students_folder(tmp_path: Path, work: str) -> None:
    """Earlier, `grade class/ada class/bob` exchanged the points of two students in silence."""
    course, ada = made_up(tmp_path / "course"), tmp_path / "class" / "ada"
    write(ada / work, b"x = 1\n")
    found = handed_in(course, [ada], str, Parsers())
    (case,) = found.cases
    assert (case.student, case.graded, case.paths, found.folders) == ("bob", True, (ada,), [])
    assert case.reason == (
        f"check whose submission this is: {ada} may be a student's folder; "
        f"to settle this, pass --roster, or grade the folder that holds {ada}"
    )
    listed = handed_in(course, [ada], str, Parsers(), on_roster={"bob"}.__contains__)
    assert (listed.cases, listed.folders) == ([], [ada])


@pytest.mark.parametrize("work", ["bob/x1_gather.py", "bob_x1_gather.py"])
def test_a_folder_with_the_name_of_a_student_who_has_a_report_is_this_students(tmp_path: Path, work: str) -> None:
    """Earlier, `grade class/ada` replaced bob's report by the file that ada had named after bob."""
    course, ada = made_up(tmp_path / "course"), tmp_path / "class" / "ada"
    write(ada / work, b"x = 1\n")
    in_class = {"ada", "bob"}.__contains__
    found = handed_in(course, [ada], str, Parsers(), in_class)
    (case,) = found.cases
    assert [*found.places] == ["ada"] and found.folders == []
    assert (case.student, case.reason) == ("ada", f"check whose submission this is: {work.split('/')[0]} names bob")
    write(ada / "cy" / "x1_gather.py", b"x = 1\n")
    found = handed_in(course, [ada], str, Parsers(), in_class)
    assert [*found.places] == ["bob", "cy"] and found.folders == []
    assert all(" may be a student's folder; " in case.reason for case in found.cases)
    listed = handed_in(course, [ada], str, Parsers(), in_class, {"cy"}.__contains__)
    assert [*listed.places] == ["bob", "cy"] and listed.folders == [ada]
