"""grades.csv is complete, and spreadsheets read no cell as a formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from grader.reports.tables import csv_cell, csv_lines
from tests.reports.example_reports import exercise, grades_csv, make_report, mixed, result


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\x1b[0m=", "\u202e =", "\uff1d", " ="])
def test_csv_formulas_become_text(start: str) -> None:
    cell = csv_cell(f"{start}cmd|' /C calc'!A0")
    assert isinstance(cell, str)
    assert cell.startswith("'")


@pytest.mark.parametrize("start", ["a;", "a; ", "late: 1; ", 'a;"', '"a";', "a;b;", "a,;"])
def test_no_cell_is_a_formula_where_semicolons_separate_cells(start: str) -> None:
    line = next(csv_lines([["ada", csv_cell(f"{start}=1+1;x"), csv_cell(f"{start}@SUM(A1)")]]))
    cells = [cell for row in csv.reader([line], delimiter=";") for cell in row]
    assert len(cells) > 2 and not [cell for cell in cells if cell.strip(' "').startswith(("=", "@"))]


@pytest.mark.parametrize(
    ("value", "cell"),
    [("a; -1; b", "a; -1; b"), ("-1.5", "-1.5"), (-1.5, -1.5), (0.1 + 0.2, 0.3), (2.0, 2), ("bob", "bob")],
)
def test_csv_numbers_stay_numbers(value: object, cell: object) -> None:
    assert csv_cell(value) == cell


def test_grades_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    bob = make_report(exercise([result(points=0.1), result("b", points=0.2)]), student="bob")
    grades_csv([mixed(), bob], path)
    raw = path.read_bytes()
    assert b"\r" not in raw
    assert list(csv.reader(io.StringIO(raw.decode("utf-8")))) == [
        [
            "student",
            "c3_contracting",
            "c4_hidden",
            "earned",
            "points",
            "percent",
            "bonus",
            "pending",
            "notes",
            "remarks",
        ],
        ["alice", "2", "0", "2", "8", "25", "0", "2", "2", ""],
        ["bob", "0.3", "", "0.3", "0.3", "100", "0", "0", "0", ""],
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["grades.csv"]


def test_a_student_named_like_a_formula_is_text(tmp_path: Path) -> None:
    grades_csv([make_report(student='=HYPERLINK("http://a.b","x")')], tmp_path / "g.csv")
    lines = list(csv.reader(io.StringIO((tmp_path / "g.csv").read_text(encoding="utf-8"))))
    assert lines[1][0] == '\'=HYPERLINK("http://a.b","x")'
