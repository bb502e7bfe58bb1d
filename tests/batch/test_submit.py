"""``submit`` checks a student's work and writes a zip of it."""

from __future__ import annotations

import json
import os
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.batch import submit
from grader.batch.grade import Grader
from grader.cli import app
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.course.stubs import stub_source
from grader.intake.reading import read
from grader.intake.students import find_submissions
from grader.intake.times import STAMP, handed_in_at
from tests import classroom

ROOT = Path(__file__).resolve().parents[2]
MODULE, C1, D1 = "03_matmuls", "c1_no_communication", "c3_contracting"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return classroom.copied(tmp_path_factory.mktemp("course") / "c", **{MODULE: [C1, D1]})


@pytest.fixture(scope="module")
def grader(course: Course):
    with Grader(course, "none") as grader:
        yield grader


@pytest.fixture
def work(course: Course, tmp_path: Path) -> Path:
    """Return a folder with one finished and one untouched exercise."""
    (tmp_path / "work").mkdir()
    exercise = course.exercise(C1)
    answers = classroom.answers(course, exercise, None, None)
    (tmp_path / "work" / f"{C1}.py").write_text(reference_source(exercise, answers))
    (tmp_path / "work" / f"{D1}.py").write_text(stub_source(course, course.exercise(D1)))
    return tmp_path / "work"


def test_prepare_lists_the_missing_tasks_and_questions(course: Course, grader: Grader, work: Path) -> None:
    ready = submit.prepare(course, MODULE, work, "ada", grader)
    exercise = course.exercise(D1)
    assert ready.missing == {D1: [*exercise.tasks, *exercise.questions]}


def test_the_zip_is_graded_like_the_folder(course: Course, grader: Grader, work: Path, tmp_path: Path) -> None:
    ready = submit.prepare(course, MODULE, work, "ada", grader)
    path = submit.write_zip(course, MODULE, work, ready, tmp_path, "ada")
    assert path.name == f"ada_{MODULE}.zip"
    (found,) = find_submissions([path], course.module_of).students
    assert found == ("ada", path)
    assert read(path, "ada", course.module_of).sources == ready.submission.sources
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read(submit.MANIFEST))
    assert manifest["student"] == "ada" and manifest["module"] == MODULE
    assert set(manifest["files"]) == {f"{C1}.py", f"{D1}.py"}
    assert {"jax", "numpy", "shardlings"} <= set(manifest["versions"])
    assert course.config.seed not in json.dumps(manifest)


def test_equal_submissions_give_zips_of_equal_bytes(course: Course, grader: Grader, work: Path, tmp_path: Path) -> None:
    ready = submit.prepare(course, MODULE, work, "ada", grader)
    at = datetime(2026, 11, 1, 12, tzinfo=UTC)
    first = submit.write_zip(course, MODULE, work, ready, tmp_path / "a.zip", "ada", at).read_bytes()
    assert submit.write_zip(course, MODULE, work, ready, tmp_path / "b.zip", "ada", at).read_bytes() == first
    names = sorted({source.name for source in ready.submission.sources.values()})
    assert handed_in_at(tmp_path / "a.zip", names) == (at, STAMP)


def test_the_half_zip_of_a_killed_submit_is_deleted(course: Course, grader: Grader, work: Path, tmp_path: Path) -> None:
    half, own = tmp_path / (".tmp-" + "0a" * 8), tmp_path / ".tmp-notes"
    for path in (half, own):
        path.write_text("half")
        os.utime(path, (0, 0))
    submit.write_zip(course, MODULE, work, submit.prepare(course, MODULE, work, "ada", grader), tmp_path, "ada")
    assert own.exists() and not half.exists()


def test_the_zip_leaves_out_other_modules_without_a_note(grader: Grader, work: Path, tmp_path: Path) -> None:
    other = "a1_local_shape"
    course = classroom.copied(tmp_path / "c", **{MODULE: [C1, D1], "01_layout": [other]})
    (work / f"{other}.py").write_text("x = 1\n")
    ready = submit.prepare(course, MODULE, work, "ada", grader)
    assert set(ready.submission.sources) <= set(course.module(MODULE).exercises)
    assert not ready.submission.notes
    with zipfile.ZipFile(submit.write_zip(course, MODULE, work, ready, tmp_path, "ada")) as archive:
        assert not [name for name in archive.namelist() if other in name]


def test_nothing_to_hand_in_is_an_error(course: Course, grader: Grader, tmp_path: Path) -> None:
    looked = rf"no file for 03_matmuls in .*: the grader looked for {C1}\.py, 03_matmuls\.ipynb and similar names; go to the folder with your work"
    with pytest.raises(CourseError, match=looked):
        submit.prepare(course, MODULE, tmp_path, "ada", grader)


@pytest.mark.parametrize(
    "words", [["submit", MODULE, "--student", "ada"], ["check", "c1"], ["check"], ["explain", "c1"]]
)
def test_an_unreadable_notebook_is_reported_by_submit_check_and_explain(
    words: list[str], course: Course, tmp_path: Path
) -> None:
    (tmp_path / f"{MODULE}.ipynb").write_text('{"cells": [')
    done = CliRunner().invoke(app, [*words, "--course", str(course.root), "--work", str(tmp_path)])
    assert isinstance(done.exception, CourseError), done.output
    assert f" in {tmp_path}: {MODULE}.ipynb is not a notebook: " in str(done.exception)
    assert f"looked for {C1}.py" in str(done.exception)


def test_blank_stubs_are_not_handed_in(course: Course, grader: Grader) -> None:
    """Otherwise students in the wrong folder read that their submission is complete."""
    with pytest.raises(
        CourseError, match=r"^nothing is written yet in .*exercises \(.*\); go to the folder with your work or pass"
    ):
        submit.prepare(course, MODULE, course.root / "exercises", "ada", grader)


@pytest.mark.parametrize(("hub", "account", "name"), [("ada", "jovyan", "ada"), ("", "bob", "bob")])
def test_the_zip_is_named_after_the_login(
    hub: str, account: str, name: str, course: Course, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", hub)
    monkeypatch.setattr(submit.getpass, "getuser", lambda: account)
    monkeypatch.delenv("SHARDLINGS_STUDENT", raising=False)
    args = ["submit", MODULE, "--work", str(work), "--to", str(tmp_path), "--course", str(course.root)]
    assert CliRunner().invoke(app, args).exit_code == 0
    with zipfile.ZipFile(tmp_path / f"{name}_{MODULE}.zip") as archive:
        assert json.loads(archive.read(submit.MANIFEST))["student"] == name


def test_a_zip_from_a_shared_account_needs_a_student(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "")
    monkeypatch.setattr(submit.getpass, "getuser", lambda: "jovyan")
    with pytest.raises(
        CourseError,
        match=r"the account 'jovyan' is not a student's, so the submission has no name; pass --student LOGIN",
    ):
        submit.login()


def test_submit_writes_the_zip_and_lists_what_is_not_begun(course: Course, work: Path, tmp_path: Path) -> None:
    args = ["submit", MODULE, "--work", str(work), "--to", str(tmp_path), "--student", "ada"]
    done = CliRunner().invoke(app, [*args, "--course", str(course.root)])
    assert done.exit_code == 0, done.output
    assert re.search(rf"{D1} +not begun", done.output) and "upload this file without changes" in done.output
    # For a file that was not begun, there is only the line "not begun".
    assert "missing in" not in done.output and "not written yet" not in done.output
    whole = CliRunner().invoke(app, [*args, "--full", "--course", str(course.root)])
    assert "matmul_all_reduce: not written yet" in " ".join(whole.output.split())


def test_submit_reports_failing_checks_and_missing_tasks_of_begun_exercises(
    course: Course, work: Path, tmp_path: Path
) -> None:
    file = work / f"{D1}.py"
    wrong = "return a @ b[:, :8]"
    file.write_text(file.read_text().replace('raise NotImplementedError("matmul_all_reduce")', wrong))
    args = ["submit", MODULE, "--work", str(work), "--to", str(tmp_path), "--student", "ada"]
    done = CliRunner().invoke(app, [*args, "--course", str(course.root)])
    said = " ".join(done.output.split())
    assert "✗ matmul_all_reduce: C equals A @ B on every device on the mesh" in said and "expected: [" not in said
    assert f"missing in {D1}: matmul_reduce_scatter, scatter_time, all_reduce_bytes" in said


def test_submit_asks_for_the_student_before_any_check_runs(course: Course, work: Path, monkeypatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "")
    monkeypatch.setattr(submit.getpass, "getuser", lambda: "jovyan")
    monkeypatch.setattr(submit, "prepare", None)
    done = CliRunner().invoke(app, ["submit", MODULE, "--work", str(work), "--course", str(course.root)])
    assert isinstance(done.exception, CourseError) and "has no name; pass" in str(done.exception)
