"""After a killed regrade, all old or all new reports count, and the next run writes the files."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.batch.changes import FILE
from grader.batch.database import FILE as DATABASE
from grader.batch.folder import Folder, grade_batch
from grader.batch.grade import Grader
from grader.batch.opening import students_with_files
from grader.batch.overrides import Adjustments, Override
from grader.batch.workers import Workers
from grader.common.result import Report
from grader.course.loading import Course, load_course
from grader.intake.submission import Submission
from grader.reports.summary import summarise
from tests.batch.test_grade import NAME, RIGHT, ZEROS, submitted
from tests.made_up import made_up
from tests.reports.example_reports import class_page_html
from tests.test_unlucky import no_bar

CLASS = {"ada": ZEROS, "bo": RIGHT, "cy": RIGHT}
REGRADED = {"ada": RIGHT, "bo": ZEROS, "cy": RIGHT}
WRITES = 3 * 2 + 2 + 4  # two pages and a report of each changed student; two tables of changes; four files of the class


class Killed(BaseException):
    """Ends the run like SIGKILL, except that this process goes on."""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return made_up(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def grader(workers: Workers, course: Course) -> Grader:
    return Grader(course, "none", here=workers)


def grade(grader: Grader, out: Path, texts: dict[str, str], **more) -> Folder:
    work: dict[str, Submission] = {student: submitted(text, student) for student, text in texts.items()}
    with Folder(out, grader.course, when="2026", **more) as folder:
        _, failures = grade_batch(grader, folder, work, [NAME], no_bar)
        assert not failures
        folder.finish(summarise(folder.database.reports()))
    return folder


def reports(out: Path) -> dict[str, Report]:
    return {p.stem: Report.loads(p.read_text()) for p in (out / "reports").glob("*.json")}


def files(out: Path) -> dict[str, bytes]:
    """Return all files except the lock and the database, because the database's bytes depend on the order of writes."""
    found = (p for p in out.rglob("*") if p.is_file() and p.name not in (".lock", DATABASE))
    return {str(p.relative_to(out)): p.read_bytes() for p in found}


def rows(out: Path) -> list[str]:
    """Return the content of the database, as SQL."""
    with contextlib.closing(sqlite3.connect(out / DATABASE)) as connection:
        return list(connection.iterdump())


@pytest.mark.slow
def test_a_regrade_killed_between_any_two_writes_can_be_completed(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(grader, tmp_path / "wanted", CLASS)
    old = reports(tmp_path / "wanted")
    grade(grader, tmp_path / "wanted", REGRADED)
    new, wanted, replace = reports(tmp_path / "wanted"), files(tmp_path / "wanted"), os.replace
    content = rows(tmp_path / "wanted")
    assert old["ada"].earned < new["ada"].earned and old["bo"].earned > new["bo"].earned and old["cy"] == new["cy"]
    for last in range(1, WRITES + 1):
        out, left = tmp_path / f"out{last}", iter(range(1, last + 1))
        grade(grader, out, CLASS)

        def replace_or_die(source, target, left=left, last=last) -> None:
            if next(left, last) == last:
                raise Killed
            replace(source, target)

        monkeypatch.setattr(os, "replace", replace_or_die)
        with pytest.raises(Killed):
            grade(grader, out, REGRADED)
        monkeypatch.setattr(os, "replace", replace)
        there = reports(out)
        # A report file is missing while its pages are replaced.
        assert all(report in (old[student], new[student]) for student, report in there.items())
        assert rows(out) == content, "the reports count before their files are written"
        grade(grader, out, REGRADED)
        assert files(out) == wanted and rows(out) == content


def test_reports_of_a_killed_regrade_are_not_graded_again(
    grader: Grader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(grader, tmp_path, CLASS)
    monkeypatch.setattr(Folder, "settle", lambda self: (_ for _ in ()).throw(Killed()))
    with pytest.raises(Killed):
        grade(grader, tmp_path, REGRADED)
    monkeypatch.undo()
    with Folder(tmp_path, grader.course) as folder:
        found = folder.current_report("ada", grader.fingerprint(submitted(RIGHT), [NAME]), [NAME])
        assert found and found.earned == 2 and reports(tmp_path)["ada"].earned == 0
        other = folder.current_report("ada", grader.fingerprint(submitted(RIGHT + "\n"), [NAME]), [NAME])
        assert other is None, "the report that was made is of another submission"


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("{")], ids=["deleted", "damaged"])
def test_a_missing_or_damaged_file_is_written_again(
    grader: Grader, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    grade(grader, tmp_path, CLASS)
    grade(grader, tmp_path, REGRADED)
    wanted, content = files(tmp_path), rows(tmp_path)
    for name in wanted:
        if name.endswith(".html") and damage is not Path.unlink:
            (tmp_path / name).write_text("")  # the only damage to a page that the grader notices is an empty page
        else:
            damage(tmp_path / name)
        grade(grader, tmp_path, REGRADED)
        assert files(tmp_path) == wanted and rows(tmp_path) == content, name
    (tmp_path / DATABASE).unlink()
    grade(grader, tmp_path, REGRADED)
    assert files(tmp_path) == wanted, "the reports and the history are taken over from the files"


def test_an_incomplete_report_or_one_of_another_student_does_not_count(grader: Grader, tmp_path: Path) -> None:
    out, wanted = tmp_path / "out", tmp_path / "wanted"
    for folder in (out, wanted):
        grade(grader, folder, CLASS)
    for copy in ("ada-before", "Aa-before"):
        shutil.copy(out / "reports" / "ada.json", out / "reports" / f"{copy}.json")
    (out / "reports" / "zed.json").write_text("{")
    strays = ["Aa-before.json", "ada-before.json", "zed.json"]
    for texts in ({"bo": RIGHT}, REGRADED, REGRADED):
        grade(grader, wanted, texts)
        dry = grade(grader, out, texts, dry=True)
        assert dry.uncounted == strays and students_with_files(out) == ["ada", "bo", "cy"]
        assert grade(grader, out, texts).uncounted == strays
        for stray in strays:
            assert (out / "reports" / stray).is_file(), "what is not ours is not touched"
        assert files(wanted) == {name: data for name, data in files(out).items() if Path(name).name not in strays}


def test_a_dry_run_writes_nothing_and_reports_everything(grader: Grader, tmp_path: Path) -> None:
    grade(grader, tmp_path, CLASS)
    before = files(tmp_path)
    folder = grade(grader, tmp_path, REGRADED, dry=True)
    assert files(tmp_path) == before
    dry = [change.line for change in folder.changes]
    assert (
        dry[-1]
        == "bo: score 2 -> 0 of 3: passed -> failed; the submission changed; passed -> blocked; the submission changed"
    )
    assert [change.line for change in grade(grader, tmp_path, REGRADED).changes] == dry


def test_grading_an_unchanged_class_again_changes_no_byte(grader: Grader, tmp_path: Path) -> None:
    grade(grader, tmp_path, CLASS)
    before = files(tmp_path)
    assert grade(grader, tmp_path, CLASS).changes == [] and files(tmp_path) == before
    assert FILE not in before


def test_the_class_page_shows_stored_reports_with_points_by_hand(grader: Grader, tmp_path: Path) -> None:
    grade(grader, tmp_path, CLASS)
    name = next(r.name for e in reports(tmp_path)["ada"].exercises for r in e.results if r.kind == "check")
    by_hand = Override(student="ada", check=f"{NAME}/{name}", points=1, by="Bo", reason="asked")
    for _ in range(2):
        adjust = Adjustments(overrides=[by_hand])
        grade(grader, tmp_path, CLASS, adjust=adjust)
        assert adjust.problems == [] and reports(tmp_path)["ada"].earned == 1
        with Folder(tmp_path) as later:
            read = list(later.database.reports())
        assert files(tmp_path)["index.html"].decode() == class_page_html(summarise(read), read)


def test_a_new_deadline_or_policy_grades_nothing_again(tmp_path: Path, course: Course) -> None:
    text = (course.root / "course.yaml").read_text()
    (tmp_path / "solutions").symlink_to(course.root / "solutions")

    def digest(more: str) -> str:
        (tmp_path / "course.yaml").write_text(text + more)
        return load_course(tmp_path / "course.yaml").digest([NAME])

    plain = digest("")
    assert digest("    deadline: 2026-11-01\nlate: {percent_per_day: 10}\n") == plain
    assert digest("    weight: 2\n") != plain
