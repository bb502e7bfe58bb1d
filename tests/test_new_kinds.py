"""Grade lists, formulas and code that a person must grade, in confined workers, and give points as a person does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.batch.confined import parsing
from grader.batch.grade import Grader
from grader.batch.overrides import Override, as_graded, overridden, with_sums
from grader.batch.running import with_formula_values
from grader.common import formulas
from grader.common.observation import Outcome
from grader.common.result import Report, Result
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from grader.intake.facts import with_facts
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.plan import Ask
from grader.judging.seen import Finding
from grader.reports.pages import render_html
from grader.reports.summary import summarise
from grader.sandbox.tiers import best_tier
from tests.reports.example_reports import Nesting

GALLERY = Path(__file__).resolve().parents[1] / "examples" / "courses" / "grids" / "course.yaml"
pytestmark = pytest.mark.xdist_group("new_kinds")


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(GALLERY)


@pytest.fixture(scope="module")
def grader(course: Course) -> Iterator[Grader]:
    with Grader(course, best_tier("auto")) as made:
        yield made


def graded(grader: Grader, name: str, text: str) -> tuple[Report, dict[str, Result]]:
    source = Source(f"{name}.py", with_facts([Chunk(f"{name}.py", text)]))
    report = grader.grade(Submission("ada", {name: source}, (), ""), [name])
    return report, {result.name: result for result in report.exercises[0].results}


HOSTILE = """
halo_formula = {formula}
what_sets_the_bytes = {several}
overlapped_step = "A, A, A, A"
"""


@pytest.mark.parametrize(
    ("formula", "several", "reason"),
    [
        ("'9**9**9**9'", "'A' * 5_000_000", "the formula has no finite value for "),
        ("'(' * 200_000 + 'N' + ')' * 200_000", "['A'] * 9999", "a formula has at most 500 characters"),
        ("'N' * 5_000_000", "'А, В'", "a formula has at most 500 characters"),
        ("'-' * 490 + 'N'", "{'A': 1}", "this formula is too long: simplify it"),
        ("{'formula': 'N', 'values': [1.0] * 32}", "[[['A']]]", "write the formula as a text in quotes"),
        ("lambda: 3", "lambda: 3", "write the formula as a text in quotes"),
        ("'__import__(\"os\").abort()'", "...", "a formula has only numbers, symbols, + - * / ** and "),
        ("'\\ud800'", "'\\ud800'", "this is not a formula: "),
    ],
)
def test_a_hostile_answer_costs_only_its_own_points(grader: Grader, formula: str, several: str, reason: str) -> None:
    report, results = graded(grader, "a2_bytes", HOSTILE.format(formula=formula, several=several))
    assert results["halo_formula"].status == "failed" and results["halo_formula"].reason.startswith(reason)
    assert results["what_sets_the_bytes"].status == "failed" and results["what_sets_the_bytes"].earned == 0
    assert results["overlapped_step"].reason.endswith("is listed twice")
    assert not report.broken and report.earned == 0
    _, results = graded(grader, "a2_bytes", "halo_formula = '16*h*(N/X + N/Y)'\n")
    assert results["halo_formula"].status == "passed", "the next submission is judged as ever"


def test_only_a_confined_process_parses_a_students_formula(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real = formulas.ast.parse
    monkeypatch.setattr(formulas.ast, "parse", lambda text, *a, **k: parsed.append(str(text)) or real(text, *a, **k))
    text = "(N/Y + N/X)*h*16"
    _, results = graded_as_read(grader, f"halo_formula = {text!r}\n")
    assert results["halo_formula"].status == "passed"
    assert any("2*8*h*(N/X + N/Y)" in one for one in parsed), "the author's formula is parsed here"
    assert not any(text in one for one in parsed)


def graded_as_read(grader: Grader, text: str) -> tuple[Report, dict[str, Result]]:
    """Let a confined process read the text of a submission, then grade the submission."""
    with parsing("auto") as parsers:
        source, _ = parsers.source("a2_bytes.py", text.encode(), ["a2_bytes"])
    report = grader.grade(Submission("ada", {"a2_bytes": source}, (), ""), ["a2_bytes"])
    return report, {result.name: result for result in report.exercises[0].results}


def test_values_that_a_learners_process_sends_are_never_used(course: Course, grader: Grader) -> None:
    question = course.exercise("a2_bytes").questions["halo_formula"]
    kind_raw = {"formula": "2*8*h*(N/X + N/Y)", "values": [1.0] * 32}
    with grader.pool.lent() as workers:
        (found,) = with_formula_values(workers, Ask(question), Finding(outcomes=[Outcome(value=kind_raw)])).outcomes
    assert found.value == {"problem": "write the formula as a text in quotes"}


@pytest.fixture(scope="module")
def report(course: Course, grader: Grader) -> Report:
    exercise = course.exercise("a1_heat")
    return graded(grader, "a1_heat", reference_source(exercise, {}))[0]


def picked(**what: Any) -> Override:
    return Override(student="ada", check="a1_heat/heat_clear", by="Bob", reason="read", **what)


def test_code_waits_for_a_person_and_is_shown(report: Report) -> None:
    (result,) = (r for r in report.exercises[0].results if r.kind == "code")
    assert (result.status, result.earned, report.pending) == ("waiting", 0, 1)
    assert str(result.actual).startswith("def heat(u, *, mesh, k):")
    staff, own = (Nesting(render_html(report, audience=who)).text for who in ("staff", "student"))
    for page in (staff, own):
        assert "needs grading" in page and "def heat(u, *, mesh, k):" in page
    assert "names (0.5 points): names and shapes are clear" in staff and "names and shapes" not in own
    (found,) = summarise([report]).attention
    assert (found.kind, found.reason) == ("by hand", "needs grading, 1 point: a1_heat/heat_clear")


def test_unchanged_or_missing_code_gets_no_points_at_once(course: Course, grader: Grader) -> None:
    stub = (GALLERY.parent / "exercises" / "01_halo" / "a1_heat.py").read_text()
    for text in (stub, "x = 1\n"):
        result = graded(grader, "a1_heat", text)[1]["heat_clear"]
        assert (result.status, result.reason) == ("failed", "not answered yet")


@pytest.mark.parametrize(
    "text",
    [
        "if True:\n    def heat(u, *, mesh, k):\n        return u\n",
        "from helpers import heat\n",
        "def heat(u, *, mesh, k):\n    return (\n",
        "heat = lambda u, *, mesh, k: u\n",
        "def heat(u, *, mesh, k):\n    if k:\n        return u\n    raise NotImplementedError\n",
    ],
    ids=["not at top level", "imported", "a syntax error", "lambda", "raises at its end"],
)
def test_code_of_any_form_awaits_review_and_is_shown(grader: Grader, text: str) -> None:
    result = graded(grader, "a1_heat", text)[1]["heat_clear"]
    assert (result.status, result.actual) == ("waiting", text.strip())


def test_a_person_picks_items_and_students_see_those(report: Report) -> None:
    found, problems = overridden(report, None, [picked(items=["once"])])
    found = with_sums(found)
    assert problems == [] and found.earned == report.earned + 0.5 and found.pending == 0
    staff, own = (Nesting(render_html(found, audience=who)).text for who in ("staff", "student"))
    assert "✓ once (0.5 points): the exchange" in staff and "✗ names (0.5 points)" in staff
    assert "✓ once (0.5 points): the exchange" in own and "names (0.5 points)" not in own
    assert "needs grading" not in own
    assert as_graded(found) == report
    assert Report.loads(found.dumps()) == found
    none, problems = overridden(report, None, [picked(items=[])])
    assert problems == [] and with_sums(none).pending == 0 and with_sums(none).earned == report.earned


def test_items_of_a_rubric_are_worth_their_points_times_the_modules_weight(
    course: Course, grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(course), "weight", lambda self, name: 3)
    report = graded(grader, "a1_heat", reference_source(course.exercise("a1_heat"), {}))[0]
    found, problems = overridden(report, None, [picked(items=["once", "names"])])
    assert problems == [] and with_sums(found).earned == with_sums(found).points == report.earned + 3


@pytest.mark.parametrize(
    ("check", "items", "problem"),
    [
        ("a1_heat/heat_clear", ["onse"], "the rubric has no item 'onse', only names, once; the line does nothing"),
        ("a1_heat/heat_value", ["once"], "write points in place of items: only an answer that is graded by a rubric has items; the line does nothing"),
        ("a1_heat", ["once"], "write points in place of items: only an answer that is graded by a rubric has items; the line does nothing"),
    ],
)  # fmt: skip
def test_unknown_items_of_a_rubric_are_reported(report: Report, check: str, items: list[str], problem: str) -> None:
    line = Override(student="ada", check=check, by="Bob", reason="read", items=tuple(items))
    found, problems = overridden(report, None, [line])
    assert problems == [f"ada {check}: {problem}"] and found == report


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ({}, "give either points or items of the question's rubric, not both"),
        ({"points": 1, "items": ["once"]}, "give either points or items of the question's rubric, not both"),
        ({"items": ["once", "once"]}, "items names once twice"),
    ],
)
def test_an_override_needs_either_points_or_items(what: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        picked(**what)


RUBRIC = {"names": (1, "clear names")}


@pytest.mark.parametrize(
    ("rubric", "told"),
    [
        ({}, "`rubric` is the dict {}: write items, or a text that says which answer earns which points"),
        ({"a b": (1, "x")}, "rubric: 'a b' is not a valid name of an item; write a Python name such as gathers"),
        ({"a": 1}, 'rubric: a has the int 1, not points and a text: (1, "...")'),
        ({"a": (0, "x")}, "rubric: a has the tuple (0, 'x'), not points and a text: (1, \"...\")"),
        ({"a": (1, " ")}, "rubric: a has the tuple (1, ' '), not points and a text: (1, \"...\")"),
        ({"a": (1, "x")}, "rubric: the points of the items add up to 1, but the question has 2 points"),
    ],
)
def test_an_invalid_rubric_is_reported(rubric: Any, told: str) -> None:
    from grader.exercise import AuthorError, Exercise

    with pytest.raises(AuthorError) as error:
        Exercise().written(points=2, rubric=rubric)
    assert str(error.value) == told
