"""Untouched exercises are not graded, and are reported as missing."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.batch.begun import graded_if_begun
from grader.batch.grade import Grader
from grader.batch.handing_in import hand_ins
from grader.batch.late import Handed
from grader.batch.overrides import Adjustments
from grader.batch.workers import Workers
from grader.cli.regrading import Rosters, StaffNotes
from grader.course.loading import Course
from grader.intake.facts import is_untouched
from grader.intake.reading import read
from grader.intake.submission import Chunk, Source, source_digest
from grader.intake.times import STATED
from grader.reports.summary import summarise
from grader.reports.tables import NOTHING, write_grades_csv
from grader.reports.whole_class import WholeClass
from tests.made_up import made_up

STUB = 'def gather(a, *, mesh):\n    raise NotImplementedError("gather")\n\n\ngather_time = None\n'


def test_only_exercises_that_a_student_began_are_graded(workers: Workers, tmp_path: Path) -> None:
    course = made_up(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    file = work / "x1_gather.py"
    grader = Grader(course, "none", here=workers)
    for text, begun in ((STUB, False), ("gather_time = 3\n", True)):
        file.write_text(text)
        submission = read(work, "me", course.module_of, course.handed_out)
        assert is_untouched(submission.sources["x1_gather"], course.handed_out) is not begun
        report = graded_if_begun(grader, submission, ["x1_gather"], public=False)
        (only,) = report.exercises
        assert (only.handed_in, bool(only.results), only.title) == (begun, begun, "X1 Gather")
    assert is_untouched(None, course.handed_out)


def test_a_file_in_which_a_student_wrote_nothing_counts_everywhere_as_not_handed_in(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class page, the staff's notes, the late penalties and grades.csv must agree."""
    course = made_up(tmp_path)
    given = "gather_time = 1.0\n"  # this handout includes an answer, so an unchanged file is not empty
    monkeypatch.setattr(Course, "handed_out", frozenset({source_digest(Source("", (Chunk("", given),)))}))
    reports, works = [], []
    grader = Grader(course, "none", here=workers)
    for student, text in {"ada": STUB, "bob": given, "cat": "gather_time = 3.0\n", "dan": None}.items():
        (tmp_path / student).mkdir()
        if text:
            (tmp_path / student / "x1_gather.py").write_text(text)
        works.append(read(tmp_path / student, student, course.module_of, course.handed_out))
        reports.append(grader.grade(works[-1], ["x1_gather"]))
    assert [r.exercises[0].handed_in for r in reports] == [False, False, True, False]
    before = grader.fingerprint(works[1], ["x1_gather"])
    assert hand_ins(course, works) == {"01_gather": 1}
    notes = StaffNotes(course, Rosters(None, None))
    for report in reports:
        notes.add(report)
    assert list(notes.attention([])) == [("", "3 of 4 students have not handed in 01_gather: ada, bob, dan")]
    summary = summarise(reports, absent=1)
    assert (summary.submissions, summary.absent, summary.mean) == (1, 4, 0.0)
    assert [(a.handed_in, a.submissions) for a in summary.assignments] == [(1, 4)]
    assert [c.failed + c.blocked for c in summary.checks] == [1, 1, 1]
    late = datetime(2030, 1, 1, tzinfo=UTC)
    times = {r.student: {"01_gather": Handed(late, STATED)} for r in reports}
    settled = [Adjustments(course.config, times=times).settle(report, None) for report in reports]
    assert [len(report.hand_ins) for report in settled] == [0, 0, 1, 0]
    write_grades_csv(WholeClass(reports), reports, tmp_path / "grades.csv")
    with open(tmp_path / "grades.csv", encoding="utf-8", newline="") as file:
        remarks = [row["remarks"] for row in csv.DictReader(file)]
    assert remarks == [NOTHING, NOTHING, "", NOTHING], "dan's folder is empty"
    for unread_notes in (
        ["x1_gather.tar is an archive", *reports[3].unread],
        ["nothing to grade: the grader looked for x"],
    ):
        unread = reports[3].model_copy(update={"unread": unread_notes})
        write_grades_csv(WholeClass([unread]), [unread], tmp_path / "grades.csv")
        assert NOTHING not in (tmp_path / "grades.csv").read_text(), "an unread file may be the submission"
    monkeypatch.setattr(Course, "handed_out", frozenset())
    grader = Grader(course, "none", here=workers)
    assert grader.fingerprint(works[1], ["x1_gather"]) != before, "a new handout decides again what was handed in"
