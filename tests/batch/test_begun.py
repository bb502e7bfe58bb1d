"""Untouched exercises are not graded, and are reported as missing."""

from __future__ import annotations

from pathlib import Path

from grader.batch.begun import graded_if_begun, is_untouched
from grader.batch.grade import Grader
from grader.intake.reading import read
from tests.made_up import made_up

STUB = 'def gather(a, *, mesh):\n    raise NotImplementedError("gather")\n\n\ngather_time = None\n'


def test_only_exercises_that_a_student_began_are_graded(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    file = work / "x1_gather.py"
    with Grader(course, "none") as grader:
        for text, begun in ((STUB, False), ("gather_time = 3\n", True)):
            file.write_text(text)
            submission = read(work, "me", course.module_of, course.handed_out)
            assert is_untouched(course, submission.sources["x1_gather"]) is not begun
            report = graded_if_begun(grader, submission, ["x1_gather"], public=False)
            (only,) = report.exercises
            assert (only.handed_in, bool(only.results), only.title) == (begun, begun, "X1 Gather")
    assert is_untouched(course, None)
