"""Grades for others to import."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grader.cli import app
from grader.common.result import ByHand, ExerciseReport, HandIn, Report, Result
from grader.course.config import CourseError
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from grader.exercise import Task
from grader.integrations import export
from grader.sandbox.tiers import NoIsolation, best_tier
from grader.wings.gradescope import autograder as gradescope
from tests import classroom
from tests.made_up import made_up

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


def test_lines_of_a_student_add_up_to_the_score_with_points_by_hand_and_lateness(tmp_path: Path) -> None:
    hand = ByHand(by="B", reason="oral", graded=2, was=2)
    late = HandIn(module="01_m", submitted="", source="", penalty=0.3, text="handed in 26 h late")
    plain = report("ada", result(), result(name="other", status="failed", earned=0))
    whole = plain.exercises[0].model_copy(update={"earned": 1.0, "by_hand": hand})
    found = plain.model_copy(update={"exercises": [whole], "hand_ins": [late], "earned": 0.7})
    export.write_csv([found], tmp_path / "x.csv")
    lines = [dict(zip(export.COLUMNS, line, strict=True)) for line in table(tmp_path / "x.csv")[1:]]
    assert sum(float(line["earned"]) for line in lines) == pytest.approx(found.earned)
    assert [line["kind"] for line in lines] == ["check", "check", "by hand", "late"]
    export.write_canvas([found], tmp_path / "c.csv")
    assert table(tmp_path / "c.csv")[2][-1] == "0.7"


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


# As Canvas documents its export: students by name, ID, SIS ids and section; an assignment is "TITLE (NUMBER)"; a line of
# points possible; columns that it computes itself come last, "(read only)" in the second line; and a test student.
GRADEBOOK = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,01_m (991),02_n (992),Current Score,Final Score
,,,,,Manual Posting,,,
    Points Possible,,,,,4.00,10.00,(read only),(read only)
"Liddell, Alice",1201,S-1,ada,"Math, Section 2",,7.00,70.00,50.00
"Brien, O'",1202,S-2,bob@x.edu,Section 1,1.00,8.00,80.00,61.00
"Zed, Yan",1203,S-3,yan,Section 1,,,,
"Student, Test",1299,,f00ba7,Section 1,,,,
"""


@pytest.fixture
def roster(tmp_path: Path) -> export.Roster:
    (tmp_path / "gradebook.csv").write_text(GRADEBOOK, encoding="utf-8")
    return export.Roster(tmp_path / "gradebook.csv")


def test_grades_go_back_in_canvas_own_columns(roster: export.Roster, tmp_path: Path) -> None:
    """The round trip: what Canvas would read again are its students and its assignment, and nothing else changes."""
    reports = [report("ada"), report("bob", result(earned=0, status="failed")), report("eve")]
    assert export.write_canvas(reports, tmp_path / "x.csv", roster=roster) == ["eve"]
    lines = table(tmp_path / "x.csv")
    assert lines == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "01_m (991)"],
        ["    Points Possible", "", "", "", "", "4.00"],
        ["Liddell, Alice", "1201", "S-1", "ada", "Math, Section 2", "2"],
        ["Brien, O'", "1202", "S-2", "bob@x.edu", "Section 1", "0"],
    ]
    again = export.Roster(tmp_path / "x.csv")
    assert [row["ID"] for row in again.rows] == ["1201", "1202"] and again.column("01_m") == "01_m (991)"


@pytest.mark.parametrize(
    ("name", "login"),
    [("ada", "ada"), ("ADA", "ada"), ("1202", "bob@x.edu"), ("S-2", "bob@x.edu"), ("bob", "bob@x.edu"),
     ("liddellalice_1201_77001_ada", "ada"), ("liddellalice_1201", "ada"), ("brieno_LATE_1202_77002", "bob@x.edu"), ("stranger", None),
     ("f00ba7", None)],
)  # fmt: skip
def test_a_student_is_known_by_any_name_of_canvas(name: str, login: str | None, roster: export.Roster) -> None:
    assert roster.login(name) == (login or name)
    assert (roster.row_of(name) is None) is (login is None)


def test_a_name_that_could_be_two_students_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("Student;ID;SIS Login ID\nA;1;ann@x.edu\nB;2;ann@y.edu\n")
    known = export.Roster(tmp_path / "r.csv")
    assert known.row_of("ann") is None and known.login("ann@y.edu") == "ann@y.edu"


def test_a_roster_without_canvas_columns_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("name,mail\n")
    with pytest.raises(CourseError, match=r"r\.csv has no columns Student and ID, as a gradebook .* and no column id"):
        export.Roster(tmp_path / "r.csv")
    with pytest.raises(CourseError, match=r"none\.csv cannot be read: No such file"):
        export.Roster(tmp_path / "none.csv")


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
    (tmp_path / "reports" / "bob.json").write_text(report("ada").dumps(), encoding="utf-8")
    with pytest.raises(
        CourseError, match=r"bob\.json is no whole report of bob; grade again to mend it, or move it out"
    ):
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


def test_the_grader_failing_gives_no_score_and_tells_the_staff_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gradescope.main(tmp_path)
    made = json.loads((tmp_path / "results" / "results.json").read_text())
    assert not {"score", "tests"} & set(made)  # either would be zero points
    assert made["stdout_visibility"] == "hidden" and "gradescope.json" in capsys.readouterr().out
    assert "gradescope.json" not in json.dumps(made)


def test_questions_are_tests_by_their_label() -> None:
    (made,) = gradescope.results_of(report("ada", result(kind="number", name="time", label="time: How long?")))["tests"]
    assert made["name"] == "e: time: How long?"


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


TOP = {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility",
       "stdout_visibility", "extra_data", "tests", "leaderboard"}  # fmt: skip
OF_TEST = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags",
           "visibility", "extra_data"}  # fmt: skip
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


def as_documented(made: dict[str, Any]) -> None:
    """What Gradescope's "Autograder Specifications" say of results.json."""
    assert set(made) <= TOP and {"score", "tests"} <= set(made)
    assert {made["visibility"], made["stdout_visibility"]} <= VISIBILITIES and made["output_format"] in FORMATS
    for test in made["tests"]:
        assert set(test) <= OF_TEST
        assert 0 <= test["score"] <= test["max_score"]
        assert test["visibility"] in VISIBILITIES and test["status"] in ("passed", "failed")
        assert {test["name_format"], test["output_format"]} <= FORMATS
        assert all(isinstance(test[key], str) for key in ("name", "output")) and test["name"]
        assert all(isinstance(tag, str) for tag in test["tags"])


def tier() -> str:
    try:
        return best_tier("auto")
    except NoIsolation:
        return "none"


def test_notes_speak_of_the_modules_of_the_zip(tmp_path: Path) -> None:
    """Of a course with another module: it is neither looked for, nor is a file of it taken for work."""
    made_up(tmp_path)
    config = (tmp_path / "course.yaml").read_text()
    other = "  - {id: 02_other, title: Other, exercises: [x2_scatter]}\n"
    (tmp_path / "course.yaml").write_text(config + other)
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "x2_scatter.py").write_text("x = 1\n")
    found = gradescope.submission_in(tmp_path, load_course(tmp_path / "course.yaml"), ["x1_gather"])
    notes = "\n".join(found.notes)
    assert "nothing to grade: looked for x1_gather.py, or 01_gather.ipynb" in notes
    assert "02_other" not in notes and not found.sources


@pytest.mark.slow
def test_the_autograder_zip_works_where_it_is_unpacked(course: Course, tmp_path: Path) -> None:
    """Gradescope's layout, with the Python that runs here in place of the one that setup.sh installs."""
    place = tmp_path / "autograder.zip"
    options = ["--only", C1, "--isolation", tier(), "--course", str(course.root)]
    made = CliRunner().invoke(app, ["export", str(place), "--to", "gradescope", *options])
    exercise = course.exercise(C1)
    assert made.exit_code == 0 and f"set the assignment to {exercise.points:g} points" in made.output
    root = tmp_path / "autograder"
    with zipfile.ZipFile(place) as archive:
        archive.extractall(root / "source")
        modes = {i.filename: i.external_attr >> 16 & 0o777 for i in archive.infolist()}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    setup = (root / "source" / "setup.sh").read_text()
    assert "jax==" in setup and f"--python {sys.version_info[0]}.{sys.version_info[1]} " in setup
    subprocess.run(["bash", "-n", str(root / "source" / "setup.sh")], check=True)
    shutil.copy(root / "source" / "run_autograder", root)  # as Gradescope does
    whole = reference_source(exercise, classroom.answers(course, exercise, None, None))
    misconception = next(s for s in exercise.misconceptions.values() if isinstance(s.of, Task))
    partly = reference_source(exercise, classroom.answers(course, exercise, None, None), misconception)
    for source in (whole, partly):
        shutil.rmtree(root / "submission", ignore_errors=True)
        (root / "submission").mkdir()
        (root / "submission" / f"{C1}.py").write_text(source)
        (root / "submission_metadata.json").write_text('{"users": [{"email": "ada@x.edu"}]}')
        env = os.environ | {"AUTOGRADER_ROOT": str(root), "PYTHON": sys.executable}
        done = subprocess.run(["bash", "run_autograder"], env=env, cwd=root, capture_output=True, text=True, check=True)
        assert done.stdout + done.stderr == ""
        results = json.loads((root / "results" / "results.json").read_text())
        as_documented(results)
        assert results["score"] == pytest.approx(sum(t["score"] for t in results["tests"]))
        assert sum(t["max_score"] for t in results["tests"]) == exercise.points
        shown = {t["tags"][-1] for t in results["tests"] if t["visibility"] == "visible"}
        assert shown == {c.name for c in exercise.checks.values() if c.public}
        failed = {t["tags"][-1] for t in results["tests"] if t["status"] == "failed"}
        if source == whole:
            assert results["score"] == exercise.points and not failed
        else:
            assert 0 < results["score"] < exercise.points and failed >= set(misconception.fails)
