"""Submissions and files that need review stay in the database until a run reads them again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.batch.database import FILE, Database
from grader.batch.folder import Folder, drop
from grader.batch.opening import reading
from grader.batch.review import keep_cases, note_set_aside
from grader.common.text import SET_ASIDE
from grader.intake.submission import ReviewCase, reasons_of
from grader.reports.summary import summarise
from grader.reports.tables import ASIDE
from tests.handed_in import write
from tests.reports.example_reports import make_report


def review(
    out: Path, found: list[ReviewCase], *read: Path, graded: tuple[str, ...] = (), login: Callable[[str], str] = str
) -> dict[str, str]:
    """Store the cases that a run found in the paths that it read. Return for each stored student the reason for a review."""
    database = Database(out / FILE)
    try:
        return reasons_of(keep_cases(database, out, found, read, graded, login))
    finally:
        database.close()


@pytest.fixture
def term(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in ("week1/bob/a.zip", "week1/bob.zip", "week1/eve.tar.gz", "week2/ada/c3.py"):
        write(tmp_path / file)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    twice = ReviewCase("bob", "bob is in several places", (Path("week1/bob"), Path("week1/bob.zip")))
    archive = ReviewCase("eve.tar.gz", "eve.tar.gz is no folder", (Path("week1/eve.tar.gz"),))
    assert list(review(Path("out"), [twice, archive], Path("week1"))) == ["bob", "eve.tar.gz"]
    return tmp_path


def test_a_case_stays_until_a_run_reads_its_files(term: Path) -> None:
    for _ in range(2):
        assert list(review(Path("out"), [], Path("week2"))) == ["bob", "eve.tar.gz"]
    again = ReviewCase("bob", "bob is in several places", (Path("week2/bob"), Path("week1/bob")))
    both = review(term / "out", [again], Path("week2"), term / "week1" / "eve.tar.gz")
    assert both == {"bob": "bob is in several places"}, "equal reasons are one"
    assert list(review(Path("out"), [], Path("week2"), Path("week1/bob"))) == ["bob"], "bob.zip was not read"
    assert review(Path("out"), [], Path("week1")) == {}


def test_a_case_outlives_its_files_until_their_folder_or_its_student_is_read_again(term: Path) -> None:
    (term / "week1" / "eve.tar.gz").unlink()
    shutil.copytree(term / "out", term / "elsewhere" / "out")
    assert list(review(Path("out"), [], Path("week1"))) == []
    shutil.move(term / "week1", term / "week3")
    assert list(review(Path("elsewhere/out"), [], Path("week2"))) == ["bob", "eve.tar.gz"], "no path leads to week3"
    assert list(review(Path("elsewhere/out"), [], Path("week3"), graded=("bob",))) == ["eve.tar.gz"]
    again = ReviewCase("eve.tar.gz", "eve.tar.gz is still no folder", (Path("week3/eve.tar.gz"),))
    assert review(Path("elsewhere/out"), [again], Path("week3")) == {"eve.tar.gz": "eve.tar.gz is still no folder"}


@pytest.mark.parametrize("name", ["eve", "EVE.tar.gz", "eve@uni.edu"])
def test_a_case_ends_with_its_files_when_its_student_is_graded_under_any_name(tmp_path: Path, name: str) -> None:
    """The case has the name of a student, a file or an address. It must end when a run grades the student eve."""

    def login(student: str) -> str:
        return student.removesuffix("@uni.edu")

    case = ReviewCase(name, f"{name} is no folder", (tmp_path / "week1" / name,))
    converted = ReviewCase(name, f"{name} was no folder", ())
    for stored in (case, converted):
        assert review(tmp_path, [stored], tmp_path / "week2", graded=("ada",)) == {name: stored.reason}
        assert review(tmp_path, [], tmp_path / "week2", graded=("ada",)) == {name: stored.reason}
        assert review(tmp_path, [case], tmp_path / "week2", login=login) == {name: case.reason}, "one case, not two"
        assert review(tmp_path, [], tmp_path / "week2", graded=("eve",), login=login) == {}


def test_a_case_ends_with_its_files_if_an_earlier_run_graded_the_student_from_another_file(tmp_path: Path) -> None:
    """Otherwise the case and its remark in grades.csv stay until a run grades the student once more."""
    archive = write(tmp_path / "week1" / "eve.tar.gz")
    case = ReviewCase("eve", "eve.tar.gz is no folder", (archive,))
    assert "eve" in review(tmp_path, [case], archive.parent)
    assert "eve" in review(tmp_path, [], tmp_path / "late", graded=("eve",)), "the file is there"
    archive.unlink()
    assert review(tmp_path, [], tmp_path / "week2", graded=("ada",)) == {}


def test_a_students_name_with_a_dot_is_no_files_name(tmp_path: Path) -> None:
    review(
        tmp_path, [ReviewCase("ann.lee", "ann.lee is there twice", (tmp_path / "week1" / "gone",))], tmp_path / "week1"
    )
    assert list(review(tmp_path, [], tmp_path / "week2", graded=("ann",))) == ["ann.lee"]


def test_a_case_of_a_file_that_names_no_student_ends_with_the_file(term: Path) -> None:
    write(term / "week1" / "c3.py")
    stray = ReviewCase("", "c3.py names no student", (Path("week1/c3.py"),))
    assert "" in review(Path("out"), [stray], Path("week1"))
    assert "" in review(Path("out"), [], Path("week2"))
    (term / "week1" / "c3.py").unlink()
    assert review(Path("out"), [], Path("week2")) == {}


def test_a_converted_case_that_is_named_after_a_file_is_replaced_when_the_file_is_found_again(tmp_path: Path) -> None:
    review(tmp_path, [ReviewCase("c3.py", "c3.py has no student", ())], tmp_path / "week1")
    stray = ReviewCase("", "c3.py names no student", (write(tmp_path / "week1" / "c3.py"),))
    assert review(tmp_path, [stray], tmp_path / "week1") == {"": stray.reason}


def test_the_folder_of_reports_and_the_submissions_can_move_together(
    term: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (term / "moved").mkdir()
    for name in ("out", "week1", "week2"):
        shutil.move(term / name, term / "moved" / name)
    monkeypatch.chdir(term / "moved" / "week2")
    assert list(review(Path("../out"), [], Path("."))) == ["bob", "eve.tar.gz"]
    assert review(Path("../out"), [], Path("../week1")) == {}


@pytest.mark.parametrize("move", [shutil.move, shutil.copytree])
def test_a_case_stays_if_only_the_folder_of_reports_moves(term: Path, move: Callable[[Path, Path], object]) -> None:
    """From the new folder, the stored paths lead to no files. This must not end a case before a run reads its files."""
    stray = ReviewCase("", "c3.py names no student", (write(term / "week1" / "c3.py"),))
    assert "" in review(Path("out"), [stray], Path("week2"))
    assert len(review(Path("out"), [], Path("week2"), graded=("bob",))) == 3
    (term / "deep").mkdir()
    moved = term / "deep" / "graded"
    move(term / "out", moved)
    assert list(review(moved, [], Path("week2"), graded=("bob",))) == ["", "bob", "eve.tar.gz"]
    shutil.move(term / "week1", term / "deep" / "week1")
    assert list(review(moved, [], Path("week2"))) == ["eve.tar.gz"], "the files are gone"
    for name in ("graded", "week1"):
        shutil.move(term / "deep" / name, term / name)
    assert list(review(term / "graded", [], Path("week2"))) == ["eve.tar.gz"]
    assert review(term / "graded", [], term / "week1") == {}


def test_a_case_that_moved_twice_is_found_again(term: Path) -> None:
    shutil.move(term / "out", term / "week1" / "graded")
    assert list(review(term / "week1" / "graded", [], Path("week2"), graded=("bob",))) == ["bob", "eve.tar.gz"]
    shutil.move(term / "week1", term / "week3")
    assert list(review(term / "week3" / "graded", [], Path("week2"))) == ["bob", "eve.tar.gz"]
    assert review(term / "week3" / "graded", [], Path("week3")) == {}


def test_a_name_that_no_database_can_hold_is_kept_as_pages_show_it(term: Path) -> None:
    odd = ReviewCase("a\udcff\nb", "no name", (Path("week2/a\udcff"),))
    for name in review(Path("out"), [odd], Path("week2")):
        assert name.isprintable()
    write(term / "week2" / "a\udcff")
    assert len(review(Path("out"), [odd], Path("week2"))) == 3
    assert len(review(Path("out"), [], Path("week1/x"))) == 3


def test_drop_removes_a_case(term: Path) -> None:
    drop(Path("out"), ["eve.tar.gz"])
    assert list(review(Path("out"), [], Path("week2"))) == ["bob"]


def test_a_dry_run_keeps_no_case(term: Path) -> None:
    with Folder(Path("out"), dry=True) as folder:
        assert len(keep_cases(folder.database, folder.path, [], [Path("week2")])) == 2
        assert keep_cases(folder.database, folder.path, [], [Path("week1")]) == []
    assert list(review(Path("out"), [], Path("week2"))) == ["bob", "eve.tar.gz"]


def test_a_student_reads_that_another_submission_is_set_aside(tmp_path: Path) -> None:
    """The note is on the student's page, but not in the report as graded."""

    def page(*aside: str, left: str = "") -> str:
        with Folder(tmp_path) as folder:
            if not folder.database.students():
                folder.keep(make_report(student="ada", notes=["a note"]))
            folder.settle()
            note_set_aside(folder.database, dict.fromkeys(aside, ASIDE))
            folder.finish(summarise(folder.database.reports()))
            stored = folder.database.stored("ada")
        assert stored is not None and stored.graded.notes == ["a note"] and folder.changes == []
        (tmp_path / left).unlink() if left else None
        return (tmp_path / "students" / "ada.html").read_text()

    assert SET_ASIDE not in page()
    for _ in range(2):
        assert page("ada", "bob").count(SET_ASIDE) == 1
    page("ada", left=FILE)
    with reading(tmp_path) as database:
        stored = database.stored("ada")
    assert stored is not None and stored.graded.notes == ["a note"] and stored.counts.notes == ["a note", SET_ASIDE]
    assert SET_ASIDE not in page()
