"""Names and sections from the roster on the pages and in grades.csv."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from grader.reports.pages import render_html, summary_html
from grader.reports.people import Person, with_name
from grader.reports.summary import summarise
from grader.reports.tables import NOT_GRADED, NOTHING, write_grades_csv
from grader.reports.whole_class import WholeClass
from tests.reports.example_reports import Nesting, a_class, class_page_html, mixed

PEOPLE = {
    "bob": Person("Bob Hatter", "A"),
    "carol": Person("Carol Duchess", "B"),
    "dan": Person("", "B"),
    "gil": Person("Gil Mock", "C"),
}


def page_of_class() -> str:
    reports = a_class()
    return "".join(summary_html(summarise(reports), WholeClass(reports, PEOPLE), reports))


def test_the_class_page_names_students_and_their_sections() -> None:
    page = page_of_class()
    Nesting(page)
    assert page.count("Bob Hatter") >= 2  # once in a misconception's list, once in the table of students
    assert '<option value="1">A</option>' in page and '<option value="0">none</option>' in page
    assert '<tr data-section="1"><th scope="row" class="long"><a href="./bob.html">' in page
    assert '<tr data-section="0"><th scope="row" class="long"><a href="./zoe.html">' in page
    assert 'main:has(#section option[value="1"]:checked) tr[data-section]:not([data-section="1"])' in page
    assert '<th scope="row">B</th><td>2 students</td>' in page


def test_each_section_has_its_mean() -> None:
    whole = WholeClass(a_class(), PEOPLE)
    assert {section: len(percents) for section, percents in whole.sections.items()} == {"": 1, "A": 1, "B": 2}


def test_without_a_roster_no_page_speaks_of_sections() -> None:
    page = class_page_html(summarise(a_class()), a_class())
    assert "data-section" not in page and "<select" not in page
    assert render_html(mixed()) == render_html(mixed(), person=Person())


def test_a_roster_without_sections_gives_names_alone() -> None:
    reports = a_class()
    page = "".join(summary_html(summarise(reports), WholeClass(reports, {"bob": Person("Bob Hatter")}), reports))
    assert "Bob Hatter" in page and "data-section" not in page


def test_a_students_page_has_name_and_section() -> None:
    page = Nesting(render_html(mixed(), person=Person("Alice <b>Liddell</b>", "B"))).text
    assert "Alice <b>Liddell</b>, section B" in page


def test_grades_have_name_and_section_last(tmp_path: Path) -> None:
    reports = sorted(a_class(), key=lambda report: report.student)
    write_grades_csv(WholeClass(reports, PEOPLE), reports, tmp_path / "grades.csv", {"gil": NOTHING, "hal": NOT_GRADED})
    rows = list(csv.DictReader(io.StringIO((tmp_path / "grades.csv").read_text(encoding="utf-8"))))
    assert list(rows[0])[-3:] == ["remarks", "name", "section"]
    assert [(row["student"], row["name"], row["section"]) for row in rows] == [
        ("bob", "Bob Hatter", "A"),
        ("carol", "Carol Duchess", "B"),
        ("dan", "", "B"),
        ("zoe", "", ""),
        ("gil", "Gil Mock", "C"),
        ("hal", "", ""),
    ]
    given = [tuple(row[name] for name in ("earned", "points", "pending", "remarks")) for row in rows[-2:]]
    points = rows[0]["points"]
    assert given == [("0", points, "0", NOTHING), ("0", points, points, NOT_GRADED)]


def test_a_name_that_is_a_formula_is_text(tmp_path: Path) -> None:
    reports = [mixed()]
    write_grades_csv(WholeClass(reports, {"alice": Person("=1+1", "@A")}), reports, tmp_path / "grades.csv")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "grades.csv").read_text(encoding="utf-8")))
    assert (row["name"], row["section"]) == ("'=1+1", "'@A")


def test_a_name_follows_the_login() -> None:
    assert with_name("bob", PEOPLE) == "bob (Bob Hatter, section A)"
    assert with_name("dan", PEOPLE) == "dan (section B)"
    assert with_name("zoe", PEOPLE) == "zoe"
