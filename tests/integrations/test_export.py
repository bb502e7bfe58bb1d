"""Exports of grades for other systems."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from grader.batch.folder import Folder
from grader.cli.regrading import Rosters
from grader.common.result import ByHand, ExerciseReport, HandIn, Report, Result
from grader.course.config import CourseError
from grader.intake.submission import ReviewCase
from grader.integrations import export
from grader.reports.tables import NOT_GRADED

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
def test_no_exported_cell_begins_like_a_formula(evil: str, tmp_path: Path) -> None:
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


def test_extensions_add_nothing_to_points_possible(tmp_path: Path) -> None:
    export.write_canvas([report("ada")], tmp_path / "x.csv", frozenset({"e"}))
    assert table(tmp_path / "x.csv")[1][-1] == "0"


def test_a_bonus_has_a_column_without_points_possible(tmp_path: Path) -> None:
    """In one column, students could get more points than possible. A late penalty of 30 % applies to both columns."""
    late = HandIn(module="01_m", submitted="", source="", penalty=0.3)
    whole = report("ada", result(), exercise="e"), report("ada", result(earned=1), exercise="more")
    both = whole[0].model_copy(update={"exercises": [e for one in whole for e in one.exercises], "hand_ins": [late]})
    export.write_canvas([both, report("bob")], tmp_path / "x.csv", frozenset({"more"}))
    head, possible, *lines = table(tmp_path / "x.csv")
    assert head[-2:] == ["01_m", "01_m bonus"] and possible[-2:] == ["2", "0"]
    assert [line[-2:] for line in lines] == [["1.8", "0.9"], ["2", ""]]


def test_a_bonus_goes_into_the_assignment_that_canvas_has(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text(GRADEBOOK.replace("02_n (992)", "01_m bonus (993)").replace("10.00", "0.00"))
    both = report("ada"), report("ada", exercise="more")
    one = both[0].model_copy(update={"exercises": [e for of in both for e in of.exercises]})
    export.write_canvas([one], tmp_path / "x.csv", frozenset({"more"}), export.Roster(tmp_path / "g.csv"))
    head, possible, line = table(tmp_path / "x.csv")
    assert (head[-1], possible[-1], line[-1]) == ("01_m bonus (993)", "0.00", "2")


# Canvas documents this form of an export. A line has a student's name, ID, SIS ids and section. An assignment has
# a column "TITLE (NUMBER)". Canvas computes the last columns, and marks them "(read only)" in the line of points
# possible. The last line is Canvas's test student.
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


def test_a_canvas_roster_keeps_its_own_columns_in_the_export(roster: export.Roster, tmp_path: Path) -> None:
    """The export has only columns and students of the Canvas gradebook, so Canvas can import it."""
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


def test_an_ambiguous_name_matches_no_student(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("Student;ID;SIS Login ID\nA;1;ann@x.edu\nB;2;ann@y.edu\n")
    known = export.Roster(tmp_path / "r.csv")
    assert known.row_of("ann") is None and known.login("ann@y.edu") == "ann@y.edu"


def test_a_roster_without_canvas_columns_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("name,mail\n")
    with pytest.raises(
        CourseError, match=r"r\.csv is neither a Canvas gradebook, .* nor a plain roster, which has the column id"
    ):
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
        CourseError,
        match=r"bob\.json is an incomplete report of bob; grade again to mend the report, or move the file out",
    ):
        export.load(tmp_path)


def test_a_file_without_a_students_name_is_exported_as_such(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder:
        folder.database.set_cases([ReviewCase("", "c3.py names no student", ()), ReviewCase("eve", "twice", ())])
    assert export.not_graded(tmp_path) == ["files without a student's name", "eve"]


def test_a_file_without_a_students_name_has_no_row_among_the_grades() -> None:
    assert Rosters(None, None).remarks(["ada"], ["", "eve"]) == {"eve": NOT_GRADED}
