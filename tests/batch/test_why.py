"""Appeals: decide a check again without the cache, and show differences from the stored report."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from grader.batch.grade import Grader
from grader.batch.overrides import Override, in_full, overridden
from grader.batch.why import code_of, fields_that_differ, find_check, set_by_hand, why, with_evidence
from grader.batch.workers import Workers
from grader.common.result import Report, RubricItem
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.intake.submission import Chunk, Source
from grader.reports.appeal import Appeal, render_appeal
from tests.batch.test_grade import NAME, RIGHT, TIER, ZEROS, submitted
from tests.made_up import made_up
from tests.reports.example_reports import exercise, make_report, result


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return made_up(tmp_path)


@pytest.mark.slow
def test_why_grades_a_check_again_and_shows_every_run(course: Course) -> None:
    with Grader(course, TIER) as grader:
        kept = Report.loads(grader.grade(submitted(ZEROS), [NAME]).dumps())  # as read from the stored text
    found = why(course, TIER, submitted(ZEROS), f"{NAME}/value", kept)
    assert (found.result.status, found.differs, found.kept) == ("failed", [], found.result)
    text = "\n".join(found.lines)
    assert "gather: mesh {'x': 4}, dims {'I': 8, 'J': 3}, public inputs" in text
    assert "gather: mesh {'x': 2}, dims {'I': 1012, 'J': 5}, hidden inputs" in text
    assert (
        "  run 2: on device (x=0), all values are wrong" in text
    )  # hidden inputs are shown too, because the page is for the staff
    hand = Override(student=submitted(ZEROS).student, check=f"{NAME}/traffic", points=0.5, by="Tom", reason="oral exam")
    others = [hand.model_copy(update={"student": "somebody"}), hand.model_copy(update={"check": f"{NAME}/value"})]
    right = why(course, TIER, submitted(RIGHT), "traffic", None, overrides=[hand, *others])
    told = [line for line in right.lines if "by hand" in line]
    assert told == [f"set by hand by Tom: 0.5 points for {NAME}/traffic: oral exam"] and told[0] in right.page.lines
    assert (right.result.status, right.kept, right.differs) == ("passed", None, [])
    assert any(line.startswith("  all_gather over x: ") and line.endswith("(line 4)") for line in right.lines)


def test_an_ambiguous_override_is_not_shown_as_set_by_hand() -> None:
    hand = Override(student="alice", check="c3", points=0.5, by="Tom", reason="oral exam")
    parts = {name: exercise([result("value")], exercise=name) for name in ("c3_contracting", "c3_more")}
    assert set_by_hand(parts, [hand], ["c3_contracting"]) == []
    del parts["c3_more"]
    assert set_by_hand(parts, [hand], ["c3_contracting"]) == ["set by hand by Tom: 0.5 points for c3: oral exam"]


def test_points_by_hand_sum_the_items_of_a_rubric() -> None:
    worth = {"cause": 0.5, "mend": 1.0, "cost": 2.0}
    items = [RubricItem(name=name, points=points, text=f"names the {name}") for name, points in worth.items()]
    written = result("why").model_copy(update={"rubric": items})
    hand = Override(student="alice", check="c3/wh", items=("cause", "mend"), by="Ines", reason="both named")
    parts = {"c3_contracting": exercise([written], exercise="c3_contracting")}
    assert set_by_hand(parts, [hand], ["c3_contracting/why"]) == [
        "set by hand by Ines: 1.5 points for c3/wh: both named"
    ]


def test_a_stored_result_that_differs_only_in_form_is_no_difference() -> None:
    """A stored report has lists in place of tuples, for example for the rounds of a ring."""
    ring = {"title": "actual rounds", "mesh": [["x", 2]], "rounds": {"axes": ("x",), "holds": ((0, 1), (1, 0))}}
    today = result("traffic", "failed", pictures=[ring], actual=[math.nan, (1, 2)])
    (kept,) = Report.loads(make_report(exercise([today])).dumps()).exercises[0].results
    assert kept != today and fields_that_differ(kept, today) == []
    other = today.model_copy(update={"actual": [0.0, (1, 2)], "unjudged": True})
    assert fields_that_differ(kept, other) == [
        "actual: [None, [1, 2]] on file, [0.0, [1, 2]] now",
        "unjudged: None on file, True now",
    ]


def test_the_evidence_of_an_appeal_is_every_run_of_its_check(workers: Workers, course: Course) -> None:
    submission, grader = submitted(ZEROS), Grader(course, "none", here=workers)
    page = Appeal("ada", "small", f"{NAME}/value", exercise([result("value", "failed")]))
    page = with_evidence(page, course, submission, grader.answered(submission, NAME))
    assert [(run.secret, run.number) for run in page.runs].count((True, 2)) == 2  # one on each mesh
    assert page.failed_on.startswith("gather on x=4 with I=8, J=3, run 1: on device (x=0), all values are wrong")
    assert len(page.facts) == 4 and page.whole


@pytest.mark.slow
def test_the_page_of_an_appeal_has_code_inputs_facts_and_every_run(course: Course) -> None:
    text = "def other(): ...\n\n\n" + ZEROS
    page = why(course, TIER, submitted(text), f"{NAME}/value", None).page
    (code,) = page.functions
    assert (
        (code.name, code.line) == (f"{NAME}.py", 5)
        and code.text.startswith("def gather(a")
        and "import" not in code.text
    )
    assert page.failed_on.startswith("gather on x=4 with I=8, J=3, run 1: on device (x=0), all values are wrong")
    assert [(v.name, v.about) for v in (*page.inputs, *page.outputs)] == [
        ("a", "float32[8,3]"),
        ("result 0", "float32[8,3]"),
    ]
    assert [fact.title for fact in page.facts] == [
        f"gather on x={x} with {sizes}" for sizes in ("I=8, J=3", "I=1012, J=5") for x in (4, 2)
    ]
    assert [(run.secret, run.number) for run in page.runs].count(
        (True, 2)
    ) == 2  # each mesh has two runs on hidden inputs
    text = render_appeal(page)
    assert "For staff only" in text and "hidden" in text and "http" not in text.replace("http-equiv", "")
    question = why(course, TIER, submitted(RIGHT + "\ngather_time = '3 us'\n"), "gather_time", None).page
    assert [c.text for c in question.functions] == ["gather_time = '3 us'"] and question.runs == ()
    missing = why(course, TIER, submitted(None), "value", None).page
    assert missing.functions == () and "The submission has no code for this" in render_appeal(missing)


@pytest.mark.slow
def test_differences_from_the_report_on_file_are_shown(course: Course) -> None:
    with Grader(course, TIER) as grader:
        kept = grader.grade(submitted(ZEROS), [NAME])
    differs = why(course, TIER, submitted(RIGHT), f"{NAME}/value", kept).differs
    assert "status: 'failed' on file, 'passed' now" in differs
    assert "the exercise's programs or inputs differ from the programs or inputs of the report on file" in differs
    other = kept.model_copy(update={"versions": {"jax": "0"}})
    assert why(course, TIER, submitted(ZEROS), f"{NAME}/value", other).differs == [
        f"versions: {{'jax': '0'}} in the report on file, {kept.versions} now"
    ]


@pytest.mark.slow
def test_why_also_decides_questions_and_missing_submissions(course: Course) -> None:
    asked = why(course, TIER, submitted(None), "gather_time", None)
    assert asked.result.status == "failed" and asked.lines[0].endswith(
        "}, answered nothing, because nothing was handed in"
    )
    (line,) = why(course, TIER, submitted(RIGHT + "\ngather_time = '3 us'\n"), "gather_time", None).lines
    assert line.startswith("asked with {") and line.endswith("}, answered '3 us'")
    assert why(course, TIER, submitted(None), "value", None).lines == []


def test_an_unknown_check_is_reported_with_the_known_ones(course: Course) -> None:
    with pytest.raises(CourseError, match="no check or question 'nope'; there are gather_time, traffic, value"):
        find_check(course, f"{NAME}/nope")
    with pytest.raises(CourseError, match=f"'x1' is an exercise, so name one of {NAME}/value, {NAME}/traffic"):
        find_check(course, "x1")


SPELLINGS = {
    f"{NAME}/value": "value", f"{NAME}/val": "value", "x1/VAL": "value", f"{NAME}/gather": "gather_time",
    "value": "value", "val": "value", "gather_time": "gather_time",
}  # fmt: skip
NO_NAMES = [f"{NAME}/", "nope", "x2/value", f"{NAME}/nope"]


@pytest.mark.parametrize("typed", [*SPELLINGS, *NO_NAMES])
def test_appeals_and_overrides_take_the_same_names(course: Course, typed: str) -> None:
    loaded = course.exercise(NAME)
    report = make_report(exercise([result(one) for one in (*loaded.checks, *loaded.questions)], exercise=NAME))
    override = Override.model_construct(student=report.student, check=typed, points=1.0, items=None, by="B", reason="r")
    _, problems = overridden(report, None, [override])
    full = in_full(override, {NAME: report.exercises[0]}).check
    if typed in SPELLINGS:
        assert (find_check(course, typed), full, problems) == (
            (NAME, SPELLINGS[typed]),
            f"{NAME}/{SPELLINGS[typed]}",
            [],
        )
    else:
        with pytest.raises(CourseError) as refused:
            find_check(course, typed)
        assert problems == [f"{report.student} {typed}: {refused.value}; the line does nothing"]


def found(*texts: str, name: str = "f") -> list[tuple[str, int, str]]:
    chunks = tuple(Chunk(f"cell {i}", text) for i, text in enumerate(texts, 1))
    return [(code.name, code.line, code.text) for code in code_of(Source("x", chunks), name)]


def test_the_evidence_is_the_last_definition_with_its_decorators() -> None:
    first, last = "def f(): return 1\n", "x = 1\n@jit\ndef f():\n    return 2\ny = 3\n"
    assert found(first, last) == [("cell 2", 2, "@jit\ndef f():\n    return 2")]
    assert found("a = 1\nf = g\n") == [("cell 1", 2, "f = g")]
    assert found("f: int = 2\n") == [("cell 1", 1, "f: int = 2")]
    assert found("def g():\n    def f(): ...\n") == []


@pytest.mark.parametrize("text", ["def f(:", "\0", "(" * 100_000, "%matplotlib\ndef f(): ...", "f" * 10 + "\ud800"])
def test_the_evidence_skips_code_that_cannot_be_parsed(text: str) -> None:
    assert found(text) == []


def test_lines_are_counted_as_python_does() -> None:
    assert found('a = "\x0c\u2028"\r\ndef f():\r\n    return 1\r\n') == [("cell 1", 2, "def f():\n    return 1")]
