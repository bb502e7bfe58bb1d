"""The database of a folder of reports: killed runs, damage, full disks, and newer and older versions."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import sqlite3
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.batch import database, written
from grader.batch import folder as folder_module
from grader.batch.database import FILE, CannotWrite, Database
from grader.batch.folder import Folder, drop, on_file
from grader.batch.opening import reading, students_with_files
from grader.batch.overrides import Adjustments, Override
from grader.common.result import Report
from grader.course.config import CourseError
from grader.integrations.export import load, write_csv
from grader.reports.people import Person
from grader.reports.summary import summarise
from grader.reports.tables import NOTHING
from tests.batch.test_folder import counted
from tests.reports.example_reports import a_class, exercise, make_report, result

BY_HAND = [Override(student="ann", check="c3_contracting/v", points=1, by="Bo", reason="asked")]
# The submissions are equal before and after, so the class page warns that another cause changed the points.
BASIS = {"submission": "s"}
BEFORE = [
    make_report(exercise([result("v", points=2)], basis=BASIS), student=student, fingerprint="1") for student in "abcd"
]
AFTER = [
    make_report(exercise([result("v", "failed", points=2)], basis=BASIS), student=student, fingerprint="2")
    for student in ("ann", "b", "c", "e")
]


def grade(out: Path, reports: list[Report] | None = None, step: Callable[[], object] = lambda: None) -> None:
    """Write these reports into a folder as a grading run does. Keep stored reports that are still valid."""
    with Folder(out, adjust=Adjustments(overrides=BY_HAND), when="2026") as folder:
        for report in AFTER if reports is None else reports:
            step()
            if folder.current_report(report.student, report.fingerprint, ["c3_contracting"]) is None:
                folder.keep(report)
        folder.settle()
        step()
        people = {student: Person("old" if reports is BEFORE else "new") for student in ("ann", "b", "zoe")}
        folder.finish(summarise(folder.database.reports(), warnings=folder.warnings()), {"zoe": NOTHING}, people)


def tree(out: Path) -> dict[str, bytes]:
    found = (p for p in out.rglob("*") if p.is_file() and p.name not in (".lock", FILE))
    return {str(p.relative_to(out)): p.read_bytes() for p in found if not p.name.startswith(".tmp-")}


def rows(out: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(out / FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return list(connection.iterdump())


def in_a_child(work: Callable[[], None]) -> int:
    """Start a process that does the work, and return its id."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)
    return child


def killed_at(number: int, out: Path) -> bool:
    """Grade in a child that SIGKILL ends before its ``number``-th statement or file. Return whether it was killed."""

    def work() -> None:
        left = iter(range(number))

        def counting(function):
            def counted(*args, **more):
                if next(left, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **more)

            return counted

        for name in ("_do", "_one", "_all"):
            setattr(Database, name, counting(getattr(Database, name)))
        os.replace = counting(os.replace)
        grade(out)

    status = os.waitpid(in_a_child(work), 0)[1]
    assert status in (0, signal.SIGKILL)
    return status != 0


@pytest.fixture
def wanted(tmp_path: Path) -> Path:
    """Return a folder after two undisturbed runs."""
    grade(tmp_path / "wanted", BEFORE)
    grade(tmp_path / "wanted")
    return tmp_path / "wanted"


@pytest.mark.slow
def test_a_run_killed_between_any_two_statements_loses_no_report(tmp_path: Path, wanted: Path) -> None:
    files, content = tree(wanted), rows(wanted)
    assert b"causes other than new submissions change the points of 2 of 6 students" in files["summary.json"]
    old = {r.student: r for r in BEFORE}
    number = 0
    while True:
        out = tmp_path / f"out{number}"
        grade(out, BEFORE)
        killed = killed_at(number, out)
        with reading(out) as database:
            there = {report.student: report for report in database.reports()}
        assert there == old or len(there) == 6, "the reports that count are all old, or all new"
        if killed:  # a further run after a finished run would not repeat the warning
            grade(out)
        assert tree(out) == files and rows(out) == content
        if not killed:
            break
        number += 1
    assert number > 60


@pytest.mark.slow
def test_pages_of_a_killed_run_do_not_stay_if_the_change_is_taken_back(tmp_path: Path) -> None:
    """Earlier, a page stayed wrong if the old report was still there, because its report seemed to be up to date."""
    back = [report.model_copy(update={"fingerprint": "3"}) for report in BEFORE]

    def pages(out: Path) -> dict[str, bytes]:
        grade(out, back)
        return {name: data for name, data in tree(out).items() if name.split("/")[-1] in ("b.html", "c.html")}

    for report in (BEFORE, AFTER):
        grade(tmp_path / "control", report)
    due, number, killed = pages(tmp_path / "control"), 0, True
    assert len(due) == 4
    while killed:
        out = tmp_path / f"out{number}"
        grade(out, BEFORE)
        killed = killed_at(number, out)
        assert pages(out) == due, number
        number += 1


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_a_run_killed_at_fifteen_random_moments_can_be_completed(tmp_path: Path, wanted: Path, first: bool) -> None:
    rng, took = random.Random(27), 0.0
    alone = tmp_path / "alone"
    if not first:
        grade(alone, BEFORE)
    start = time.monotonic()
    os.waitpid(in_a_child(lambda: grade(alone)), 0)
    took = time.monotonic() - start
    for number in range(15):
        out = tmp_path / f"out{number}"
        if not first:
            grade(out, BEFORE)
        child = in_a_child(lambda out=out: grade(out))
        time.sleep(rng.random() * took)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if tree(out) != tree(alone):  # a run that wrote its last file before it was killed is complete
            grade(out)
        assert tree(out) == tree(alone) and rows(out) == rows(alone)


def test_reports_of_a_killed_run_are_kept_but_do_not_count(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        for report in BEFORE:
            folder.keep(report)
        folder.settle()
    assert students_with_files(tmp_path) == [] and not list((tmp_path / "reports").iterdir())
    with Folder(tmp_path) as folder:
        assert folder.current_report("a", "1", ["c3_contracting"]) == BEFORE[0]
        assert [r.student for r in counted(folder)] == ["a"], "only reports that this run asked for count"
    with Folder(tmp_path) as folder:
        assert folder.current_report("b", "1", ["c3_contracting"]) == BEFORE[1]


@pytest.mark.parametrize(("seconds", "saved"), [(0.0, 4), (math.inf, 1)])
def test_a_kill_loses_the_reports_of_one_period_at_most(
    tmp_path: Path, wanted: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, saved: int
) -> None:
    """The database saves at most once per ``TOGETHER`` seconds. KeyboardInterrupt and other exceptions lose no report."""
    monkeypatch.setattr(database, "TOGETHER", seconds)
    out = tmp_path / "out"
    grade(out, BEFORE)

    def work(end: Callable[[], object]) -> None:
        with Folder(out) as folder:
            for report in AFTER:
                folder.keep(report)
            end()

    os.waitpid(in_a_child(lambda: work(lambda: os.kill(os.getpid(), signal.SIGKILL))), 0)
    assert sum('INTO "made"' in row for row in rows(out)) == saved
    os.waitpid(in_a_child(lambda: work(lambda: os.kill(os.getpid(), signal.SIGINT))), 0)
    assert sum('INTO "made"' in row for row in rows(out)) == 4
    grade(out)
    assert tree(out) == tree(wanted) and rows(out) == rows(wanted)


def test_a_report_is_stored_as_graded_and_as_adjusted(tmp_path: Path) -> None:
    grade(tmp_path, AFTER)
    graded = next(r for r in AFTER if r.student == "ann")
    assert on_file(tmp_path, "ann") == graded
    with reading(tmp_path) as database:
        stored = database.stored("ann")
    assert stored is not None and (stored.counts.earned, stored.graded.earned) == (1, 0)
    assert stored.counts.exercises[0].results[0].by_hand is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PRAGMA user_version = 9", "was written by a newer shardlings (schema 9, and this version reads 3); install"),
        (
            "PRAGMA application_id = 7",
            "is damaged, or is not a database of grades; restore the file from a copy, or move it",
        ),
    ],
)
def test_a_newer_or_foreign_database_is_refused(tmp_path: Path, text: str, said: str) -> None:
    grade(tmp_path, BEFORE)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute(text)
    before = tree(tmp_path)
    for dry in (False, True):
        with pytest.raises(CourseError) as refused, Folder(tmp_path, dry=dry):
            pass
        assert said in str(refused.value) and "\n" not in str(refused.value)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("data", [b"no database" * 100, b"SQLite format 3\0" + b"\7" * 5000])
def test_a_damaged_database_gives_a_one_line_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    with (
        pytest.raises(CourseError, match=r"grades\.sqlite is damaged, or is not a database of grades; "),
        Folder(tmp_path),
    ):
        pass
    with pytest.raises(CourseError, match="is damaged"), reading(tmp_path):
        pass
    assert (tmp_path / FILE).read_bytes() == data


@pytest.mark.parametrize("change", ["DROP TABLE made", "ALTER TABLE change RENAME COLUMN why TO reason"])
def test_a_database_that_another_program_changed_gives_a_one_line_error(tmp_path: Path, change: str) -> None:
    grade(tmp_path, BEFORE)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute(change)
    with pytest.raises(CourseError, match=r"grades\.sqlite is damaged, or is not a database of grades; "):
        grade(tmp_path, AFTER)


def test_a_student_is_dropped_in_any_unicode_form(tmp_path: Path) -> None:
    grade(tmp_path, [BEFORE[0].model_copy(update={"student": name}) for name in ("Zo\u00eb", "bob")])
    drop(tmp_path, ["Zoe\u0308"])
    assert students_with_files(tmp_path) == ["bob"]


@pytest.mark.parametrize("data", [b"", b"no zlib", zlib.compress(b"{}"), zlib.compress(b"\xff"), "text", 7])
def test_a_damaged_report_gives_a_one_line_error_and_can_be_dropped(tmp_path: Path, data: object) -> None:
    grade(tmp_path, BEFORE)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("UPDATE report SET graded = ? WHERE student = 'b'", (data,))
        connection.commit()
    for work in (lambda: grade(tmp_path), lambda: write_csv(load(tmp_path), tmp_path / "results.csv")):
        with pytest.raises(
            CourseError, match=rf"holds a damaged report of b; delete this report with .* drop {tmp_path} b, and"
        ):
            work()
    drop(tmp_path, ["b"])
    grade(tmp_path)
    assert students_with_files(tmp_path) == ["a", "ann", "b", "c", "d", "e"]


def test_a_damaged_report_that_does_not_count_yet_is_graded_again(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        folder.keep(BEFORE[0])
        folder.database._do("UPDATE made SET graded = 'x'")
        assert folder.current_report("a", "1", ["c3_contracting"]) is None
        assert counted(folder, BEFORE[0]) == [BEFORE[0]]


def test_an_empty_database_file_counts_as_no_reports(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    assert students_with_files(tmp_path) == []
    grade(tmp_path, BEFORE)
    assert students_with_files(tmp_path) == list("abcd")


def test_a_database_locked_by_another_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grade(tmp_path, BEFORE)
    monkeypatch.setattr("grader.batch.database.PATIENCE", 0.1)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CourseError, match=r"another program uses .*; wait for it"):
            grade(tmp_path)
    grade(tmp_path)


def test_reports_that_a_lock_kept_from_being_saved_are_saved_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    with Folder(tmp_path) as folder:
        with contextlib.closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(CourseError, match="another program uses"):
                folder.keep(BEFORE[0])
        folder.keep(BEFORE[1])
    with Folder(tmp_path) as folder:
        assert [folder.current_report(name, "1", ["c3_contracting"]) for name in "ab"] == BEFORE[:2]


def test_a_dry_run_is_refused_during_a_run_and_locks_nothing_itself(tmp_path: Path) -> None:
    with Folder(tmp_path), pytest.raises(CourseError, match="a grader is writing to"), Folder(tmp_path, dry=True):
        pass
    with Folder(tmp_path, dry=True), Folder(tmp_path, dry=True):
        pass


@pytest.mark.parametrize("full", ["the database", "the files"])
def test_a_full_disk_gives_a_one_line_error_and_loses_nothing(
    tmp_path: Path, wanted: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    out = tmp_path / "out"
    grade(out, BEFORE)
    old = rows(out)

    def no_room(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(out / "x"))

    with monkeypatch.context() as patched:
        if full == "the database":
            no_space = pytest.raises(
                CannotWrite, match=r"cannot write .*sqlite: No space left on device; mend the cause and"
            )
            with no_space, Folder(out) as folder:
                folder.database._do("PRAGMA max_page_count = 1")
                folder.keep(a_large_report())
            assert rows(out) == old
        else:
            patched.setattr(written, "write_atomic", no_room)
            with pytest.raises(CannotWrite, match=r"cannot write .*x: No space left on device; mend the cause and run"):
                grade(out)
    grade(out)
    assert tree(out) == tree(wanted) and rows(out) == rows(wanted)


def a_large_report() -> Report:
    noise = [random.Random(i).randbytes(1000).hex() for i in range(100)]
    return make_report(exercise([result("v")]), student="large", notes=noise)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Return a folder as older versions wrote it: no database, and reports in staged/."""
    grade(tmp_path / "older", BEFORE)
    grade(tmp_path / "older")
    (tmp_path / "older" / FILE).unlink()
    (tmp_path / "older" / "reports" / "zed.json").write_text("{")
    (tmp_path / "older" / "roster.csv").write_text("id,extension\nb,2d\n")
    return tmp_path / "older"


def test_a_folder_of_an_older_version_is_converted_once(older: Path, wanted: Path) -> None:
    before = tree(older)
    assert students_with_files(older) == ["a", "ann", "b", "c", "d", "e", "zed"]
    with reading(older) as database:
        assert database.students() == ["a", "ann", "b", "c", "d", "e"]
    assert tree(older) == before and not (older / FILE).exists(), "a reader changes nothing"
    with Folder(older, dry=True) as folder:
        assert "is from an older version; 6 reports and " in folder.taken.text(older)
    assert tree(older) == before and not (older / FILE).exists()
    with Folder(older) as folder:
        assert "is from an older version; 6 reports and " in folder.taken.text(older)
        assert folder.database.roster() == b"id,extension\nb,2d\n"
    for out in (older, wanted):
        grade(out)  # a further run, so no warning about changed points
    with Folder(older, adjust=Adjustments(overrides=BY_HAND)) as folder:
        assert folder.taken.text(older) == ""
        folder.settle()
        assert folder.uncounted == ["zed.json"] and folder.changes == []
    strays = {"reports/zed.json", "roster.csv"}
    assert {n: d for n, d in tree(older).items() if n not in strays} == tree(wanted)
    assert on_file(older, "ann") == next(r for r in AFTER if r.student == "ann")


@pytest.mark.parametrize("name", ["Zo\u00eb", "com,ma", "index", "\u00e9" * 90])
def test_reports_of_all_names_are_read_if_the_database_was_deleted(tmp_path: Path, name: str) -> None:
    """The names of these students' report files differ from the students' names, but must still be found."""
    grade(tmp_path, [BEFORE[0].model_copy(update={"student": name})])
    (tmp_path / FILE).unlink()
    assert students_with_files(tmp_path) == [name]
    with Folder(tmp_path) as folder:
        assert folder.taken.reports == 1 and folder.database.students() == [name]


def test_drop_removes_a_students_reports_and_pages(tmp_path: Path) -> None:
    grade(tmp_path)
    with pytest.raises(CourseError, match="no report of zed in"):
        drop(tmp_path, ["b", "zed"])
    drop(tmp_path, ["b", "c"])
    left = [name for name in tree(tmp_path) if name.endswith((".json", ".html")) and Path(name).stem in ("b", "c")]
    assert students_with_files(tmp_path) == ["ann", "e"] and left == []
    with pytest.raises(CourseError, match="no reports in"):
        drop(tmp_path / "nowhere", ["b"])


def test_an_unchanged_run_adds_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        with Folder(tmp_path, when="2026") as folder:
            counted(folder, *a_class())
    assert sum('INSERT INTO "run"' in row for row in rows(tmp_path)) == 1


def test_a_drop_that_is_killed_can_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grade(tmp_path, BEFORE)
    remove, left = folder_module.remove_files, iter([True])

    def killed(path: Path, student: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        remove(path, student)

    monkeypatch.setattr(folder_module, "remove_files", killed)
    with pytest.raises(KeyboardInterrupt):
        drop(tmp_path, ["a", "b"])
    monkeypatch.setattr(folder_module, "remove_files", remove)
    drop(tmp_path, ["a", "b"])
    assert students_with_files(tmp_path) == ["c", "d"]
    assert {path.stem for path in (tmp_path / "reports").iterdir()} == {"c", "d"}
