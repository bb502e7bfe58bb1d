"""The output folder of a batch: reports are complete and kept while valid, and one grader writes at a time."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import gettempdir

import pytest

from grader.batch import handing_in
from grader.batch.database import FILE
from grader.batch.folder import Folder
from grader.batch.handing_in import Submissions, counts_now, hand_ins
from grader.common.result import ExerciseReport, Report, Result
from grader.course.config import CourseError, Module
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.intake.submission import Chunk, Source, Submission
from grader.reports.summary import summarise
from tests.made_up import made_up
from tests.reports.example_reports import a_class, exercise, make_report, number


def a_report(student: str, fingerprint: str = "f") -> Report:
    return Report(
        student=student, course="c", versions={}, isolation="none", backend="cpu", fingerprint=fingerprint,
        points=0, earned=0, pending=0, exercises=[],
    )  # fmt: skip


def counted(folder: Folder, *graded: Report) -> list[Report]:
    """Store these reports as a run does, and return all reports that count after the run."""
    for report in graded:
        folder.keep(report)
    folder.settle()
    folder.finish(summarise(folder.database.reports()))
    return list(folder.database.reports())


def test_a_stored_report_is_reused_while_its_fingerprint_matches(tmp_path: Path) -> None:
    with Folder(tmp_path / "out") as folder:
        folder.keep(a_report("ada"))
        assert folder.current_report("ada", "f", ["e"]) == a_report("ada")
        assert folder.current_report("ada", "another", ["e"]) is None
        assert folder.current_report("bo", "f", ["e"]) is None


def test_half_a_surrogate_pair_in_a_learners_text_is_kept_as_a_question_mark(tmp_path: Path) -> None:
    odd = a_report("ada").model_copy(update={"notes": ["x\ud800y", "\U0001f600\udc00"]})
    assert Report.loads(odd.dumps()).notes == ["x?y", "\U0001f600?"]
    with Folder(tmp_path) as folder:
        folder.keep(odd)
        assert folder.current_report("ada", "f", ["e"]) == Report.loads(odd.dumps())


def test_a_report_with_a_broken_check_is_graded_again(tmp_path: Path) -> None:
    lost = Result(
        kind="check", name="c", label="c", task="t", status="broken", points=0, earned=0, public=True
    )  # fmt: skip
    part = ExerciseReport(exercise="e", module="m", title="t", points=0, earned=0, pending=0, results=[lost])
    with Folder(tmp_path) as folder:
        folder.keep(a_report("ada").model_copy(update={"exercises": [part]}))
        assert folder.current_report("ada", "f", ["e"]) is None


@pytest.mark.parametrize("damage", ["", "{", '{"schema_version": 2}', "null"])
def test_a_damaged_report_of_an_older_version_is_graded_again(tmp_path: Path, damage: str) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "ada.json").write_text(damage)
    with Folder(tmp_path) as folder:
        assert folder.current_report("ada", "f", ["e"]) is None
        folder.settle()
        assert folder.uncounted == ["ada.json"]


def test_pages_for_students_and_staff_are_written(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        counted(folder, a_report("ada"))
    assert (tmp_path / "ada.html").is_file() and (tmp_path / "students" / "ada.html").is_file()


def test_a_second_grader_on_one_folder_is_refused(tmp_path: Path) -> None:
    with Folder(tmp_path), pytest.raises(CourseError, match="another grader is writing to"), Folder(tmp_path):
        pass


def test_the_folder_of_another_course_is_refused_before_anything_is_graded(tmp_path: Path) -> None:
    course = made_up(tmp_path / "course")
    with Folder(tmp_path / "out", course) as folder:
        counted(folder, part_of("ada", course, "x1_gather").model_copy(update={"course": "older"}))
        refused = re.escape(
            f"{tmp_path / 'out'} holds the grades of 'older', not of 'small'; choose another --out, or write "
            f"'name: older' in {course.root / 'course.yaml'}"
        )
        with pytest.raises(CourseError, match=f"^{refused}$"):
            folder.current_report("ada", "f", [])
        with pytest.raises(CourseError, match=f"^{refused}$"):
            folder.keep(part_of("ada", course))
        folder.keep(part_of("ada", course, "x1_gather"))  # replaces all exercises of the earlier report


def part_of(student: str, course: Course, *names: str, fingerprint: str = "f", earned: float = 1) -> Report:
    parts = [
        ExerciseReport(exercise=n, module=course.module_of[n], title=n, points=2, earned=earned, pending=0, results=[])
        for n in names
    ]
    return a_report(student, fingerprint).model_copy(
        update={
            "course": course.config.name, "exercises": parts, "points": 2.0 * len(parts), "earned": earned * len(parts)
        }
    )  # fmt: skip


@pytest.fixture
def two(tmp_path: Path) -> Course:
    """Return a course of two modules with one exercise each."""
    course = made_up(tmp_path / "course")
    text = (course.root / "course.yaml").read_text()
    (course.root / "course.yaml").write_text(f"{text}  - {{id: 02_more, title: More, exercises: [y1_more]}}\n")
    (course.root / "solutions" / "02_more").mkdir()
    shutil.copy(course.path_of("x1_gather"), course.root / "solutions" / "02_more" / "y1_more.py")
    return find_course(course.root)


def test_reports_of_two_modules_add_up_in_one_folder(tmp_path: Path, two: Course) -> None:
    with Folder(tmp_path / "out", two) as folder:
        of_02 = [part_of(student, two, "y1_more", fingerprint="of 02") for student in ("ada", "bob")]
        counted(folder, *of_02)
    with Folder(tmp_path / "out", two) as folder:
        whole = folder.keep(part_of("ada", two, "x1_gather", fingerprint="of 01"))
        assert [e.exercise for e in whole.exercises] == ["x1_gather", "y1_more"]
        assert (whole.points, whole.earned) == (4, 2)
        assert counted(folder) == [whole, of_02[1]]  # bob has no submission in this run, so his old report stays
    with Folder(tmp_path / "out", two) as folder:
        assert (
            folder.current_report("ada", "of 01", ["x1_gather"]) == whole
        )  # a resumed run does not grade this submission again
        assert folder.current_report("ada", "of 02", ["x1_gather"]) is None
        better = folder.keep(part_of("ada", two, "x1_gather", fingerprint="of 01, again", earned=2))
        assert (better.points, better.earned) == (4, 3)
        counted(folder)
        assert folder.current_report("ada", "of 01", ["x1_gather"]) is None


def with_a_bonus(two: Course) -> Course:
    """Return a course with an extension as its second module."""
    path = two.path_of("y1_more")
    path.write_text(path.read_text().replace("exercise = Exercise(", "exercise = Exercise(extension=True, "))
    return find_course(two.root)


def test_bonus_points_follow_the_current_course(tmp_path: Path, two: Course) -> None:
    """The run changes the totals of old reports, also of bob, who is not graded in this run."""
    course = with_a_bonus(two)
    for student in ("ada", "bob"):
        with Folder(tmp_path) as folder:
            counted(folder, part_of(student, course, "y1_more"))
    with Folder(tmp_path, course) as folder:
        counted(folder, part_of("ada", course, "x1_gather", fingerprint="of 01"))
        assert {change.why for change in folder.changes} == {"an exercise is now a bonus"}
        settled = {r.student: r for r in folder.database.reports()}
        totals = {s: (r.points, r.earned, r.bonus) for s, r in settled.items()}
        assert totals == {"ada": (2, 2, 1), "bob": (0, 1, 1)}
        assert folder.current_report("ada", "of 01", ["x1_gather"]) == settled["ada"]


def test_submissions_are_read_from_a_file_in_any_thread() -> None:
    made = {s: Submission(s, {"x1": Source("x1.py", (Chunk("x1.py", s * 9999),))}, (), s) for s in ("ada", "bob", "cy")}
    with Submissions() as works, ThreadPoolExecutor(4) as threads:
        for one in made.values():
            works.add(one)
        assert dict(works) == made and len(works) == 3
        found = threads.map(works.__getitem__, list(made) * 50)
        assert all(one == made[one.student] for one in found)
        with pytest.raises(KeyError):
            works["gone"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_temporary_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_in, "TemporaryFile", partial(open, "/dev/full", "wb"))
    large = Submission("ada", {"x1": Source("x1.py", (Chunk("x1.py", "x" * 99_999),))}, (), "d")
    with Submissions() as works, pytest.raises(CourseError, match=f"^cannot write to {gettempdir()}: No space left"):
        works.add(large)


def test_each_report_keeps_the_exercise_titles_of_its_grading(tmp_path: Path, two: Course) -> None:
    with Folder(tmp_path) as folder:
        for student in ("ada", "bob"):
            part = part_of(student, two, "x1_gather").exercises[0].model_copy(update={"title": f"as {student} had it"})
            folder.keep(a_report(student).model_copy(update={"exercises": [part]}))
        counted(folder)
        assert [e.title for r in folder.database.reports() for e in r.exercises] == ["as ada had it", "as bob had it"]


def test_files_do_not_depend_on_the_order_of_the_reports(tmp_path: Path) -> None:
    graded = [
        *a_class(),
        *(make_report(exercise([number()]), student=s, course=s) for s in ("ä", "Zed", "z\U0001f600")),
    ]
    for name, reports in (("forward", graded), ("backward", graded[::-1])):
        with Folder(tmp_path / name) as folder:
            assert [r.student for r in counted(folder, *reports)] == sorted(r.student for r in graded)
    forward, backward = (
        {str(p.relative_to(tmp_path / name)): p.read_bytes() for p in (tmp_path / name).rglob("*.*") if p.name != FILE}
        for name in ("forward", "backward")
    )
    assert forward == backward and len(forward) > 3 * len(graded)
    rows = (tmp_path / "forward" / "grades.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == sorted(r.student for r in graded)


def test_a_dry_run_reads_the_stored_reports(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        counted(folder, a_report("ada"))
    with Folder(tmp_path, dry=True) as folder:
        assert list(folder.database.reports()) == [a_report("ada")]
        assert [r.student for r in folder.database.reports()] == ["ada"]


def run_of(course: Course, name: str, version: str, notes: Sequence[str] = (), unread: Sequence[str] = ()) -> Report:
    """Return the report of a run that graded only the exercise ``name``, with this version of JAX."""
    report = part_of("ada", course, name)
    part = report.exercises[0].model_copy(update={"basis": {"versions": f"jax {version}"}})
    update = {"exercises": [part], "versions": {"jax": version}, "notes": [*notes], "unread": [*unread]}
    return report.model_copy(update=update)


def test_notes_of_an_earlier_run_are_kept(tmp_path: Path, two: Course) -> None:
    with Folder(tmp_path / "out", two) as folder:
        counted(folder, run_of(two, "y1_more", "0.1", unread=["y.rar"]))
        whole = folder.keep(run_of(two, "x1_gather", "0.2"))
    assert whole.unread == ["y.rar"]
    assert whole.notes == ["02_more: an earlier run graded these exercises, with jax 0.1"]


def test_a_later_run_drops_the_notes_of_an_exercise_that_it_grades_again(tmp_path: Path, two: Course) -> None:
    with Folder(tmp_path / "out", two) as folder:
        counted(folder, run_of(two, "y1_more", "0.1", ["y.py is not graded"], ["y.rar"]))
        counted(folder, run_of(two, "x1_gather", "0.2", ["x.py is not graded"]))
        (merged,) = folder.database.reports()
        again = folder.keep(run_of(two, "y1_more", "0.3"))
        counted(folder, again)
        (stored,) = folder.database.reports()
    assert merged.notes[:2] == ["x.py is not graded", "y.py is not graded"] and merged.unread == ["y.rar"]
    assert again.notes == ["x.py is not graded", "01_gather: an earlier run graded these exercises, with jax 0.2"]
    assert again.unread == [] and stored.notes == again.notes


def test_students_who_handed_in_a_module_are_counted(two: Course) -> None:
    def handed_in(*names: str) -> Submission:
        return Submission("ada", {n: Source(n, (Chunk(n, "x = 1"),)) for n in names}, (), "")

    assert hand_ins(two, [handed_in("y1_more"), handed_in()]) == {"01_gather": 0, "02_more": 1}


@pytest.mark.parametrize(
    ("deadline", "handed_in", "counts"),
    [(None, 0, False), (None, 1, True), (-1, 0, True), (-1, 1, True), (1, 0, False), (1, 1, False)],
)
def test_a_module_counts_after_its_deadline_or_if_it_has_none_when_handed_in(
    deadline: int | None, handed_in: int, counts: bool
) -> None:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    due = None if deadline is None else now + timedelta(days=deadline)
    assert counts_now(Module(id="01_gather", title="Gather", deadline=due), handed_in, now) == counts


def test_locking_a_folder_clears_files_of_killed_runs(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        left = [tmp_path / place / (".tmp-" + "0" * 16) for place in ("", "reports", "students")]
        for path in left:
            path.write_text("half")
            os.utime(path, (0, 0))
        with pytest.raises(CourseError, match="another grader"), Folder(tmp_path):
            pass
        assert all(path.exists() for path in left), "they are those of the run that holds it"
        folder.keep(a_report("ada"))
    with Folder(tmp_path) as folder:
        assert not any(path.exists() for path in left) and folder.current_report("ada", "f", ["e"])
