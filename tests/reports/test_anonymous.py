"""A class without names: no page contains a name, and pseudonyms are stable."""

from __future__ import annotations

import re

import pytest

from grader.common.result import HandIn, Report
from grader.reports.anonymous import COVERED, Anonymous, assign
from grader.reports.pages import page_name, render_html
from grader.reports.summary import summarise
from grader.reports.wording import score_of
from tests.reports.example_reports import Nesting, class_page_html, exercise, layout_failure, make_report, result

PEOPLE = ["liddell.alice@uni.edu", "bo", "Straße Jürgen", "max_mustermann", "o'neil-<b>"]


def a_class() -> list[Report]:
    """Return a class in which every text that a learner can set contains the student's name."""
    reports = []
    for name in PEOPLE:
        says = f"NameError: name '{name}_x' is not defined in {name.upper()}.py, by {name.split()[0]}"
        bad = layout_failure(reason=says, where=f"{name}.ipynb", actual={name: [name]}, staff=says)
        lost = result("lost", "broken", reason=says)
        one = exercise([bad, lost], notes=[says], pseudonym=name)
        notes = [f"{name}.py is not graded for c3: used c3.py", f"x of {name} is a link and was not followed"]
        reports.append(make_report(one, student=name, notes=notes, fingerprint="f1f2" * 16))
    return reports


def shown() -> dict[str, str]:
    """Return the pages by file name."""
    reports = a_class()
    suspicions = [{"student": "bo", "question": "q", "fits": PEOPLE[2:]}]
    summary = summarise(reports, not_graded={"zoe zimmer": "zoe zimmer: unreadable"}, suspicions=suspicions)
    hidden = Anonymous(assign([*PEOPLE, "zoe zimmer"], {}), ["Carroll, Lewis"])
    without = [hidden.report(report) for report in reports]
    pages = {page_name(r.student): render_html(r, audience="staff") for r in without}
    return pages | {"index.html": class_page_html(hidden.summary(summary), without)}


@pytest.mark.parametrize(
    "word", ["liddell", "alice", "uni.edu", "Jürgen", "Straße", "mustermann", "neil", "zoe", "zimmer", "f1f2"]
)
def test_no_name_is_in_pages_their_names_titles_or_sources(word: str) -> None:
    for name, page in shown().items():
        assert word.lower() not in name.lower()
        assert word.lower() not in page.lower()


def test_a_short_name_is_covered_as_a_whole_word() -> None:
    hidden = Anonymous({"bo": "student-0001"})
    report = make_report(exercise([result("a", "failed", reason="bo_c3.py: Bo's carbon about")]), student="bo")
    (covered,) = hidden.report(report).exercises[0].results
    assert covered.reason == f"{COVERED}_c3.py: {COVERED}'s carbon about"


def test_students_named_like_a_pictures_fields_cost_no_picture() -> None:
    names = ["title", "mesh", "shape", "slices", "actual", "expected"]
    report = make_report(exercise([layout_failure(where="by mesh")]), student="mesh")
    shown = Anonymous(assign(names, {})).report(report)
    assert shown.exercises[0].results[0].where == f"by {COVERED}"
    before, after = (render_html(one, audience="staff").count("<svg") for one in (report, shown))
    assert after == before > 0


def test_text_of_the_course_is_not_anonymised() -> None:
    """Labels and hints come from the course, so they keep the word scatter although a student has this name."""
    report = make_report(exercise([layout_failure()]), student="scatter")
    (kept,) = Anonymous({"scatter": "student-0001"}).report(report).exercises[0].results
    assert (kept.label, kept.hint) == (layout_failure().label, layout_failure().hint)


def test_anonymous_reports_keep_scores_and_omit_submission_times() -> None:
    late = HandIn(module="03_matmuls", submitted="2026-11-02T14:00:00+00:00", source="s", penalty=1, text="14 h late")
    extra = exercise([result("a", points=2)], exercise="c5_choose", extension=True)
    report = make_report(exercise([result("v", points=2)]), extra, points=2, earned=3, hand_ins=[late], student="ada")
    shown = Anonymous({"ada": "student-0001"}).report(report)
    assert score_of(shown) == score_of(report) == "1.5 / 2 + 1.5 bonus points"
    assert shown.hand_ins == [HandIn(module="03_matmuls", submitted="", source="", penalty=1)]
    assert "14 h" not in render_html(shown, audience="staff")


def test_the_anonymous_index_links_to_every_page() -> None:
    pages = shown()
    links = [v for n, v in Nesting(pages["index.html"]).attributes if n == "href" and v.startswith("./")]
    assert {link.removeprefix("./") for link in links} == set(pages) - {"index.html"}


def test_pseudonyms_are_stable_random_and_unique() -> None:
    first = assign(["ann", "bea"], {})
    again = assign(["bea", "cat", "ann"], first)
    assert {s: again[s] for s in first} == first
    assert len(set(again.values())) == 3
    many = assign([f"s{i}" for i in range(2000)], {})
    assert len(set(many.values())) == 2000
    assert all(re.fullmatch(r"student-\d{4,5}", name) for name in many.values())
    assert [many[f"s{i}"] for i in range(2000)] != sorted(many.values())
