"""The staff's record of submission times replaces other times. The grader reads none from a student's folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.batch.handing_in import class_folders, read_stated, stated_in, times_of, unread_records
from grader.batch.late import EVERY, Handed
from grader.batch.overrides import Adjustments
from grader.batch.reporting import Basis
from grader.common.result import ExerciseReport, HandIn, Report
from grader.course.config import CourseError
from grader.course.loading import Course, load_course
from grader.intake.reading import read
from grader.intake.submission import Chunk, Place, ReviewCase, Source, Submission, source_digest
from grader.intake.times import STATED
from tests.batch.test_grade import NAME, RIGHT
from tests.handed_in import write
from tests.made_up import made_up
from tests.reports.example_reports import exercise, make_report, result

MODULE = "01_gather"
DEADLINE = datetime(2026, 11, 1, tzinfo=UTC)
STUB = 'def gather(a, *, mesh):\n    """As given.\n    """\n    raise NotImplementedError("gather")\n\n\ngather_time = None\n'


@pytest.fixture
def course(tmp_path: Path) -> Course:
    made = made_up(tmp_path / "course")
    path = made.root / "course.yaml"
    path.write_text(f"{path.read_text()}late: {{percent_per_day: 10}}\n")
    return load_course(path)


def handed(folder: Path, student: str = "ada") -> Path:
    place = folder / student
    place.mkdir(parents=True)
    (place / f"{NAME}.py").write_text(RIGHT)
    return place


def test_submitted_csv_overrides_file_dates_and_its_latest_line_counts(course: Course, tmp_path: Path) -> None:
    place = handed(tmp_path / "work")
    (tmp_path / "work" / STATED).write_text(
        "student,time,module\nada,2026-11-02T10:00+00:00,\nada,2026-11-02 12:00+02:00,\nbo,2026-11-03T00:00Z,01_gather\n"
    )
    stated = stated_in([tmp_path / "work"], [MODULE], str)
    work = {"ada": read(place, "ada", course.module_of)}
    times, notes = times_of(course, {"ada": place}, work, stated, [MODULE])
    assert times == {"ada": {MODULE: Handed(datetime(2026, 11, 2, 10, tzinfo=UTC), STATED)}}
    assert notes == [f"{STATED} names students without a graded submission: bo"]
    # This run does not grade module 01_gather.
    assert times_of(course, {"ada": place}, work, stated, ["02_more"])[0] == {"ada": {}}
    times, (weak,) = times_of(course, {"ada": place}, work, {}, [MODULE])
    assert times["ada"][MODULE].source == "the file's date"
    assert weak == (
        "submitted.csv gives no time for some submissions, so the grader uses the file's date (1 case). Students can set these "
        "times, and copying files changes them. In this course, a submission that is late according to one of these times loses no points. "
        "To use your own record of times, write submitted.csv, with the columns student and time, into the folder of submissions"
    )


@pytest.mark.parametrize(
    "text",
    [
        STUB,
        STUB + "if True:\n    def gather(a, *, mesh): return a\n",
        STUB.replace("given.", 'given.\n    # """; return a; """'),
    ],
    ids=["handout", "definition in an if", "code in a docstring"],
)
def test_files_that_look_unchanged_have_a_time_that_counts_only_if_they_earn_points(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """The search for changes misses code in some places. Such code may earn points, and then has a late penalty."""
    place = tmp_path / "ada"
    place.mkdir()
    (place / f"{NAME}.py").write_text(text)
    monkeypatch.setattr(Course, "handed_out", frozenset({source_digest(Source("", (Chunk("", STUB),)))}))
    work = {"ada": read(place, "ada", course.module_of, course.handed_out)}
    late = Handed(DEADLINE + timedelta(days=20), STATED)
    times, _ = times_of(course, {"ada": place}, work, {("ada", EVERY): late}, [MODULE])
    config = course.config.model_copy(
        update={"modules": [m.model_copy(update={"deadline": DEADLINE}) for m in course.config.modules]}
    )
    for status, penalties in (("failed", []), ("passed", [2.0])):
        part = exercise([result("v", status, points=2)], module=MODULE, handed_in=status == "passed")
        graded = make_report(part, student="ada")
        assert [h.penalty for h in Adjustments(config, times=times).settle(graded, None).hand_ins] == penalties


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ('"""As given.\n"""\n', False),
        ('"""As given.\n# """; answer = 1; """\n"""\n', True),
        ('"""As given.\n"""\n# answer = 1\n', True),
        ('"""As given.  \n"""\n', True),
    ],
    ids=["equal", "code in a docstring", "comment", "blanks in a string"],
)
def test_only_equal_files_keep_their_earlier_time(course: Course, tmp_path: Path, text: str, late: bool) -> None:
    """Code can read its own comments, so other comments may give other points."""
    basis = Basis(course, {}, "none", "cpu")
    times = {"ada": {MODULE: Handed(DEADLINE + timedelta(days=2), STATED, for_all=True)}}
    config = course.config.model_copy(
        update={"modules": [m.model_copy(update={"deadline": DEADLINE}) for m in course.config.modules]}
    )

    def graded(text: str) -> Report:
        source = Source(f"{NAME}.py", (Chunk(f"{NAME}.py", text),))
        of = basis.of(Submission("ada", {NAME: source}, (), ""), NAME)
        passed = [result("v", "passed", points=10)]
        return make_report(exercise(passed, exercise=NAME, module=MODULE, basis=of), student="ada")

    in_time = HandIn(module=MODULE, submitted=DEADLINE.isoformat(), source=STATED)
    old = graded('"""As given.\n"""\n').model_copy(update={"hand_ins": [in_time]})
    (found,) = Adjustments(config, times=times).settle(graded(text), old).hand_ins
    assert found.penalty == (2.0 if late else 0.0)


@pytest.mark.parametrize(
    ("file", "late"), [(None, False), ("as before", False), ("other", True)], ids=["no file", "same file", "new file"]
)
def test_a_new_exercise_of_a_module_keeps_the_earlier_time(course: Course, file: str | None, late: bool) -> None:
    """Otherwise a new exercise changes the module for all students, and the whole class is late."""
    basis = Basis(course, {}, "none", "cpu")
    config = course.config.model_copy(
        update={"modules": [m.model_copy(update={"deadline": DEADLINE}) for m in course.config.modules]}
    )
    times = {"ada": {MODULE: Handed(DEADLINE + timedelta(days=2), STATED, for_all=True)}}

    def part(name: str, text: str | None) -> ExerciseReport:
        sources = {} if text is None else {NAME: Source("m.ipynb", (Chunk("m.ipynb", text),))}
        of = basis.of(Submission("ada", sources, (), ""), NAME)
        return exercise([result("v", "passed", points=10)], exercise=name, module=MODULE, basis=of)

    in_time = HandIn(module=MODULE, submitted=DEADLINE.isoformat(), source=STATED)
    old = make_report(part(NAME, "as before"), student="ada").model_copy(update={"hand_ins": [in_time]})
    new = make_report(part(NAME, "as before"), part("x2_new", file), student="ada")
    (found,) = Adjustments(config, times=times).settle(new, old).hand_ins
    assert (found.penalty > 0) == late


def folders_in(
    *paths: Path, places: Mapping[str, Place], known: str = "", roster: str = ""
) -> tuple[list[Path], dict[Path, list[str]]]:
    in_class, on_roster = (set(names.split()).__contains__ for names in (known, roster))
    return class_folders(paths, places, [], in_class, on_roster)


def test_submitted_csv_in_a_students_folder_is_ignored(course: Course, tmp_path: Path) -> None:
    place = handed(tmp_path / "work")
    (place / STATED).write_text("student,time\nada,2026-01-01T00:00Z\n")
    assert folders_in(place, places={"ada": place}) == ([], {})
    (tmp_path / "work" / STATED).symlink_to(place / STATED)
    assert stated_in([tmp_path / "work"], [MODULE], str) == {}


def test_a_folder_that_may_be_a_students_is_no_folder_of_submissions(tmp_path: Path) -> None:
    """Earlier, `grade class/ann` read times from a file of ann, if ann had put her exercises into a folder."""
    ann = tmp_path / "ann"
    one, two = ({name: write(ann / name / "x1_gather.py").parent for name in names} for names in ("x", "xy"))
    assert folders_in(ann, places=one) == ([], {ann: ["x"]})
    assert folders_in(ann, places=one, roster="x") == ([ann], {})
    assert folders_in(ann, places=two) == ([ann], {})
    assert folders_in(ann, places=two, known="ann") == ([], {ann: ["x", "y"]})
    assert folders_in(ann, places=two, known="ann", roster="y") == ([ann], {})
    (tmp_path / "link").symlink_to(ann)
    assert folders_in(tmp_path / "link", ann, places=two) == ([ann], {}), "one folder in two forms"
    assert folders_in(ann, tmp_path / "link", places=two) == ([tmp_path / "link"], {})
    aside = [ReviewCase("y", "", (ann / "y", ann / "y.zip"))]
    assert class_folders([ann], one, aside, lambda _: False, lambda _: False) == ([ann], {})
    (ann / STATED).touch()
    (case,) = unread_records([ann], [], [ann])
    assert case.reason == f"{ann}/submitted.csv was not read, because its folder may be a student's folder"


def test_times_that_are_not_read_need_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier, no message said that ``grade hw/*`` or ``grade hw/ada`` does not read submitted.csv."""
    monkeypatch.chdir(tmp_path)
    place, hw = handed(Path("hw")), Path("hw")

    def unread(*paths: Path) -> str:
        found = unread_records(paths, *folders_in(*paths, places={"ada": place}, roster="ada"))
        assert all(os.path.lexists(path) for case in found for path in case.paths)
        return "; ".join(case.reason for case in found).replace(f"{tmp_path}/", "")

    assert unread(hw) == unread(place) == ""
    (hw / STATED).write_text("student,time\n")
    assert unread(hw) == unread(hw, place) == ""
    reason = "hw/submitted.csv was not read; put it into a folder of submissions, and grade this folder as a whole"
    assert unread(place) == unread(place, hw / STATED) == unread(place / f"{NAME}.py", place) == reason
    (hw / STATED).rename(hw / "Submitted (1).CSV")
    assert unread(hw) == "hw/Submitted (1).CSV was not read; to use its times, rename it to submitted.csv"
    (hw / STATED).symlink_to("times.csv")
    assert unread(hw) == "hw/submitted.csv is a link and was not followed; put the file itself there"
    (hw / STATED).unlink()
    os.mkfifo(hw / STATED)
    assert unread(hw) == "hw/submitted.csv is not a plain file, so it was not read"
    (place / "submitted.csv.csv").touch()
    assert (
        unread(place)
        == "hw/submitted.csv was not read; put it into a folder of submissions, and grade this folder as a whole"
    ), "the student's file"


def test_without_a_late_policy_no_submission_time_is_read(course: Course, tmp_path: Path) -> None:
    place = handed(tmp_path / "work")
    plain = made_up(tmp_path / "plain")
    assert times_of(plain, {"ada": place}, {"ada": read(place, "ada", plain.module_of)}, {}, [MODULE]) == ({}, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "who,when\n",
            r"submitted\.csv:1: no columns student and time; write the header student,time or student,time,module",
        ),
        ("", r":1: no columns student and time"),
        (
            'student,time,note\nada,2026-11-02,"open\nbob,2026-11-09,\n',
            r":2: the line is not CSV \(unexpected end of data",
        ),
        ('student;time;note\nada;2026-11-02;"open\nbob;2026-11-09;x"\n', ":2: a cell in quotes continues until line 3"),
        (
            "student,time\n".encode("utf-16").decode("latin-1"),
            ":1: the file is not UTF-8 text; save it as CSV in UTF-8",
        ),
        ("student,time,time\nada,2026-11-02,2026-11-09\n", ":1: two columns time; keep one"),
        (
            "student,time\nada,monday\n",
            r":2: 'monday' is not a time; write 2026-11-02T23:59 or 2026-11-02 23:59\+01:00",
        ),
        ("student,time\nada\n", r":2: '' is not a time"),
        ("student,time\nada,2026-11-02 23.59\n", r":2: '2026-11-02 23.59' is not a time"),  # Python: 23:00:00.59
        ("student,time\nada,20261102\n", r":2: '20261102' is not a time"),
        ("student,time\nada,0226-11-02\n", r":2: '0226-11-02' is not a time"),
        ("student,time\nada,9999-12-31 23:59\n", r":2: '9999-12-31 23:59' is not a time"),
        ("time,student\n2026-11-02\n", r":2: no student"),
        ("student,time\n,2026-11-02\n", r":2: no student"),
        (f"student,time,assignment\nada,2026-11-02,{MODULE}\n", ":1: the column assignment names modules; rename it"),
        ("student,time,module\nada,2026-11-02,09_x\n", r":2: no module '09_x' in the course"),
    ],
)
def test_an_unreadable_submitted_csv_gives_an_error_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / STATED).write_bytes(text.encode("latin-1"))
    with pytest.raises(CourseError, match=said):
        read_stated(tmp_path / STATED, [MODULE])


def test_submitted_csv_matches_a_name_in_another_unicode_form(tmp_path: Path) -> None:
    (tmp_path / STATED).write_text("student,time\nZoe\u0308,2026-11-02T10:00+00:00\n", encoding="utf-8")
    assert list(read_stated(tmp_path / STATED, [])) == [("Zo\u00eb", "*")]


def test_a_line_without_a_module_applies_to_all_modules(tmp_path: Path) -> None:
    lines = f"student,time,module,note\nada,2026-11-02T10:00Z,,{MODULE}\nada,2026-11-03T10:00Z,{MODULE},\n"
    (tmp_path / STATED).write_text(lines)
    found = read_stated(tmp_path / STATED, [MODULE])
    assert [found["ada", module].for_all for module in ("*", MODULE)] == [True, False]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_of_two_files_the_latest_time_counts(tmp_path: Path, order: tuple[str, str]) -> None:
    """Earlier, the file in the folder that the command named last decided."""
    for folder, day in (("a", 2), ("b", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / STATED).write_text(f"student,time\nada,2026-11-0{day}T10:00Z\n")
    found = stated_in([tmp_path / folder for folder in order], [MODULE], str)
    assert found["ada", EVERY].time.day == 3
