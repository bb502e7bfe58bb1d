"""Grades for others to import."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import classroom
import pytest

from grader import build, export
from grader.course import Course, CourseError
from grader.integrations import gradescope
from grader.result import ExerciseReport, Report, Result

MODULE, C1 = "03_matmuls", "c1_no_communication"


def result(**changes) -> Result:
    base = Result(kind="check", name="value", label="C equals A @ B", task="t", status="passed", points=2, earned=2, public=True)  # fmt: skip
    return base.model_copy(update=changes)


def report(student: str = "ada", *results: Result, exercise: str = "e", module: str = "01_m") -> Report:
    listed = list(results) or [result()]
    points, earned = sum(r.points for r in listed), sum(r.earned for r in listed)
    pending = sum(r.points for r in listed if r.status == "broken")
    one = ExerciseReport(exercise=exercise, module=module, title="E", points=points, earned=earned, pending=pending, results=listed)  # fmt: skip
    return Report(student=student, course="c", versions={}, isolation="none", backend="cpu", fingerprint="f",
                  points=points, earned=earned, pending=pending, exercises=[one])  # fmt: skip


def table(path: Path) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


EVIL = ["=1+1", "+1", "-cmd", "@x", "\t=1", "＝1", "=HYPERLINK(1)\r\n", "'=1"]


@pytest.mark.parametrize("evil", EVIL)
def test_no_cell_is_a_formula(evil: str, tmp_path: Path) -> None:
    bad = result(status="failed", earned=0, reason=evil, label=evil)
    export.write_csv([report(evil, bad)], tmp_path / "a.csv")
    export.write_canvas([report(evil, bad)], tmp_path / "b.csv")
    cells = [c for name in ("a.csv", "b.csv") for row in table(tmp_path / name) for c in row]
    assert not [c for c in cells if c[:1] in set("=+-@\t\r＝＋－＠")]


def test_csv_has_a_line_per_result(tmp_path: Path) -> None:
    export.write_csv(
        [report("ada", result(), result(name="hidden", public=False, status="failed", earned=0))], tmp_path / "x.csv"
    )
    head, *lines = table(tmp_path / "x.csv")
    assert tuple(head) == export.COLUMNS
    assert [dict(zip(head, line, strict=True))["hidden"] for line in lines] == ["no", "yes"]
    assert [dict(zip(head, line, strict=True))["earned"] for line in lines] == ["2", "0"]


def test_canvas_has_a_column_per_module_and_points_possible(tmp_path: Path) -> None:
    reports = [report("ada"), report("bob", result(earned=0, status="failed"))]
    export.write_canvas(reports, tmp_path / "x.csv")
    lines = table(tmp_path / "x.csv")
    assert lines[0] == [*export.CANVAS, "01_m"]
    assert lines[1][0].strip() == "Points Possible" and lines[1][-1] == "2"
    assert [(line[3], line[-1]) for line in lines[2:]] == [("ada", "2"), ("bob", "0")]


def test_extensions_are_no_points_possible(tmp_path: Path) -> None:
    export.write_canvas([report("ada")], tmp_path / "x.csv", frozenset({"e"}))
    assert table(tmp_path / "x.csv")[1][-1] == "0"


def test_a_folder_without_reports_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="shardlings grade"):
        export.load(tmp_path)


def test_reports_are_read_back(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "ada.json").write_text(report("ada").dumps(), encoding="utf-8")
    assert [r.student for r in export.load(tmp_path)] == ["ada"]
    (tmp_path / "reports" / "bob.json").write_text("{")
    with pytest.raises(CourseError, match="bob"):
        export.load(tmp_path)


# -- Gradescope --------------------------------------------------------------------------------


def test_hidden_checks_show_after_publishing_and_without_what_was_expected() -> None:
    hidden = result(public=False, status="failed", earned=0, expected="42-secret", reason="no\x1b[31m")
    made = gradescope.results_of(report("ada", result(), hidden))
    assert [t["visibility"] for t in made["tests"]] == ["visible", "after_published"]
    assert made["score"] == 2
    assert "42-secret" not in json.dumps(made) and "\x1b" not in json.dumps(made)


def test_a_broken_check_is_pending_not_failed_silently() -> None:
    made = gradescope.results_of(report("ada", result(status="broken", earned=0)))
    assert "pending" in made["output"] and made["tests"][0]["output"].startswith("pending")


def test_the_grader_failing_gives_no_score(tmp_path: Path) -> None:
    gradescope.main(tmp_path)
    made = json.loads((tmp_path / "results" / "results.json").read_text())
    assert "score" not in made and made["tests"] == []


@pytest.mark.parametrize(
    ("text", "name"),
    [('{"users": [{"email": "ada@x.edu", "id": 1}]}', "ada"), ("{", "me"), ('{"users": []}', "me"), ("[]", "me")],
)
def test_the_student_is_the_one_who_submitted(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(text)
    assert gradescope.student_in(tmp_path / "m.json") == name


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return classroom.copied(tmp_path_factory.mktemp("course") / "c", **{MODULE: [C1]})


def test_the_autograder_zip_works_where_it_is_unpacked(course: Course, tmp_path: Path) -> None:
    gradescope.write_zip(course, [C1], tmp_path / "autograder.zip", isolation="none")
    root = tmp_path / "autograder"
    with zipfile.ZipFile(tmp_path / "autograder.zip") as archive:
        archive.extractall(root / "source")
        modes = {i.filename: i.external_attr >> 16 & 0o777 for i in archive.infolist()}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert "jax==" in (root / "source" / "setup.sh").read_text()
    subprocess.run(["bash", "-n", str(root / "source" / "setup.sh")], check=True)
    exercise = course.exercise(C1)
    (root / "submission").mkdir()
    answers = classroom.answers(course, exercise, None, None)
    (root / "submission" / f"{C1}.py").write_text(build.reference_source(exercise, answers))
    (root / "submission_metadata.json").write_text('{"users": [{"email": "ada@x.edu"}]}')
    env = os.environ | {"AUTOGRADER_ROOT": str(root), "PYTHON": sys.executable}
    subprocess.run(["bash", str(root / "source" / "run_autograder")], env=env, check=True, cwd=tmp_path)
    made = json.loads((root / "results" / "results.json").read_text())
    assert made["score"] == exercise.points
    assert len(made["tests"]) == len(exercise.checks) + len(exercise.numbers)
