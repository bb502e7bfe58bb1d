"""The output folder of a batch: reports are whole, kept while valid, and one grader writes at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import CourseError
from grader.result import ExerciseReport, Report, Result
from grader.store import Folder


def a_report(student: str, fingerprint: str = "f") -> Report:
    return Report(
        student=student, course="c", versions={}, isolation="none", backend="cpu", fingerprint=fingerprint,
        points=0, earned=0, pending=0, exercises=[],
    )  # fmt: skip


def test_a_report_is_kept_while_its_fingerprint_fits(tmp_path: Path) -> None:
    with Folder(tmp_path / "out") as folder:
        folder.keep(a_report("ada"))
        assert folder.kept("ada", "f", ["e"]) == a_report("ada")
        assert folder.kept("ada", "another", ["e"]) is None
        assert folder.kept("bo", "f", ["e"]) is None


def test_half_a_surrogate_pair_in_a_learners_text_is_kept_as_a_question_mark(tmp_path: Path) -> None:
    odd = a_report("ada").model_copy(update={"notes": ["x\ud800y", "\U0001f600\udc00"]})
    assert Report.loads(odd.dumps()).notes == ["x?y", "\U0001f600?"]
    with Folder(tmp_path) as folder:
        folder.keep(odd)
        assert folder.kept("ada", "f", ["e"]) == Report.loads(odd.dumps())


def test_a_report_that_waits_for_better_luck_is_made_anew(tmp_path: Path) -> None:
    lost = Result(
        kind="check", name="c", label="c", task="t", status="broken", points=0, earned=0, public=True
    )  # fmt: skip
    part = ExerciseReport(exercise="e", module="m", title="t", points=0, earned=0, pending=0, results=[lost])
    with Folder(tmp_path) as folder:
        folder.keep(a_report("ada").model_copy(update={"exercises": [part]}))
        assert folder.kept("ada", "f", ["e"]) is None


@pytest.mark.parametrize("damage", ["", "{", '{"schema_version": 2}', "null"])
def test_a_damaged_report_is_made_anew(tmp_path: Path, damage: str) -> None:
    with Folder(tmp_path) as folder:
        folder.keep(a_report("ada"))
        (tmp_path / "reports" / "ada.json").write_text(damage)
        assert folder.kept("ada", "f", ["e"]) is None


def test_pages_for_students_and_staff_are_written(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        folder.keep(a_report("ada"))
    assert (tmp_path / "ada.html").is_file() and (tmp_path / "students" / "ada.html").is_file()


def test_a_second_grader_on_one_folder_is_refused(tmp_path: Path) -> None:
    with Folder(tmp_path), pytest.raises(CourseError, match="another grader is writing to"), Folder(tmp_path):
        pass
