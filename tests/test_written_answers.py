"""Grade answers in words: from the question that a learner sees to the points that a person gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from grader.batch.grade import Grader
from grader.batch.overrides import Override, overridden, with_sums
from grader.batch.running import collect
from grader.batch.why import laid_open
from grader.batch.workers import Workers
from grader.cli.console import exit_code
from grader.common.result import Report
from grader.course.build import build
from grader.course.loading import Course, load_course
from grader.course.stubs import stub_source
from grader.declared import AuthorError
from grader.exercise import Exercise
from grader.intake.submission import Chunk, Source, Submission
from grader.integrations.nbgrader import folder
from grader.integrations.nbgrader.cells import comment
from grader.reports.pages import render_html
from grader.reports.summary import summarise
from grader.reports.terminal import print_report
from grader.wire.limits import MAX_TEXT
from tests.reports.example_reports import Nesting
from tests.test_documented import DOCS, FENCED, course_of

NAME = "written_0"
TEXT = next(text for text in FENCED.findall((DOCS / "checks" / "answers.md").read_text()) if "exercise.written" in text)
SECRETS = ("A device needs all rows", "1 point")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    made = course_of(tmp_path_factory.mktemp("written"), NAME, TEXT)
    build(made)
    return made


def graded(course: Course, workers: Workers, answer: str, *, public: bool = False) -> Report:
    source = Source(f"{NAME}.py", (Chunk(f"{NAME}.py", f"why_it_waits = {answer}\n"),))
    grader = Grader(course, "none", here=cast(Any, workers))
    return grader.grade(Submission("ada", {NAME: source}, (), ""), [NAME], public=public)


def by_bob(points: float) -> Override:
    return Override(student="ada", check=f"{NAME}/why_it_waits", points=points, by="Bob", reason="no word of waiting")


def test_learners_get_the_question_and_neither_rubric_nor_answer(course: Course) -> None:
    stub = stub_source(course, course.exercise(NAME))
    assert "# Question why_it_waits [in your own words]" in stub and "the staff reads it" in stub
    for path in (course.root / "exercises").rglob("*"):
        text = path.read_text() if path.is_file() else ""
        assert not any(secret in text for secret in SECRETS), path
    given = load_course(course.root / "exercises" / "course.yaml").exercise(NAME)
    assert given.points == 2 and given.questions["why_it_waits"].hints


def test_answers_in_words_are_pending_and_only_staff_see_the_rubric(course: Course, workers: Workers) -> None:
    report = graded(course, workers, "'''It <b>waits</b>\n for B.'''")
    (result,) = report.exercises[0].results
    assert (result.kind, result.status, result.earned, report.pending) == ("written", "waiting", 0, 2)
    staff, own = (Nesting(render_html(report, audience=who)).text for who in ("staff", "student"))
    assert "It <b>waits</b> for B." in own and "the staff reads this answer" in own and "needs grading" in own
    assert all(secret in staff and secret not in own for secret in SECRETS)
    assert exit_code([report]) == 0 and not report.broken


def test_a_too_long_answer_reports_how_much_of_it_is_read(course: Course, workers: Workers) -> None:
    (result,) = graded(course, workers, "'word ' * 10_000").exercises[0].results
    assert result.status == "waiting" and len(str(result.actual)) <= MAX_TEXT
    assert (
        result.reason
        == "the staff reads this answer and gives its points; only the first 4000 characters of the answer were read"
    )


@pytest.mark.parametrize(("answer", "reason"), [("None", "not answered yet"), ("'  '", "not answered yet"), ("3", "this is not a text; write your answer between quotes")])  # fmt: skip
def test_an_answer_that_is_not_text_needs_no_review(course: Course, workers: Workers, answer: str, reason: str) -> None:
    report = graded(course, workers, answer)
    assert [(r.status, r.reason) for r in report.exercises[0].results] == [("failed", reason)] and report.pending == 0


def test_a_person_gives_parts_of_its_points(course: Course, workers: Workers) -> None:
    report = graded(course, workers, "'It waits.'")
    found, problems = overridden(report, None, [by_bob(1.5)])
    found = with_sums(found)
    assert (found.earned, found.pending, problems) == (1.5, 0, [])
    page = Nesting(render_html(found)).text
    assert "set by hand by Bob: no word of waiting" in page
    assert "the grader gave" not in page and "the staff reads" not in page, "the grader gives words no points"
    summary = summarise([found])
    assert summary.attention == [] and summary.broken == []
    _, problems = overridden(report, None, [by_bob(3)])
    assert problems == [
        f"ada {NAME}/why_it_waits: the line gives 3 points, but at most 2 are possible; the line does nothing"
    ]


def test_the_class_page_names_students_with_unread_answers(course: Course, workers: Workers) -> None:
    report = graded(course, workers, "'It waits.'")
    summary = summarise([report])
    (found,) = summary.attention
    assert (found.kind, found.reason) == ("by hand", f"needs grading, 2 points: {NAME}/why_it_waits")
    assert [b.name for b in summary.broken] == ["why_it_waits"] and summary.checks == []


def test_a_released_course_reads_a_written_answer_back(course: Course, workers: Workers) -> None:
    released = load_course(course.root / "exercises" / "course.yaml")
    (result,) = graded(released, workers, "'It waits.'", public=True).exercises[0].results
    assert (result.status, result.reason) == (
        "blocked",
        "read as a text of 2 words; the answer is judged after you submit",
    )


def test_a_terminal_and_a_comment_show_pending_written_answers(
    course: Course, workers: Workers, capsys: pytest.CaptureFixture
) -> None:
    from rich.console import Console

    report = graded(course, workers, "'It waits.'")
    print_report(report, Console(width=100))
    shown = capsys.readouterr().out
    assert (
        "the staff reads this answer" in shown
        and "1 point: every" not in shown
        and "2 points are pending review by the staff" in shown
    )
    assert "the staff reads this answer" in (comment(report.exercises[0], "why_it_waits") or "")


def test_nbgrader_cells_of_written_answers_are_graded_by_hand(course: Course) -> None:
    module = course.config.modules[0].id
    cells = json.loads(folder.source_notebook(course, module))["cells"]
    marks = {c["id"]: c["metadata"]["nbgrader"] for c in cells if "nbgrader" in c["metadata"]}
    own, check = (marks[folder.cell_name(NAME, name)] for name in ("why_it_waits", "check"))
    assert own["grade"] and own["solution"] and not own["locked"] and own["points"] == 2
    assert check["grade"] and not check["solution"] and check["points"] == 0


@pytest.mark.parametrize("rubric", ["", "  ", 3])
def test_a_written_question_without_a_rubric_is_refused(rubric: Any) -> None:
    with pytest.raises(AuthorError, match="or a text that says which answer earns which points"):
        Exercise().written(points=1, rubric=rubric)


def test_the_documents_example_of_overrides_is_valid(tmp_path: Path) -> None:
    block = (DOCS / "term.md").read_text().split("```yaml\noverrides:")[1].split("```")[0]
    (line,) = yaml.safe_load(f"overrides:{block}")["overrides"]
    assert Override(**line).points == 2


def test_why_shows_a_good_answer_and_the_rubric(course: Course, workers: Workers) -> None:
    source = Source(f"{NAME}.py", (Chunk(f"{NAME}.py", "why_it_waits = 'It waits.'"),))
    plan = Grader(course, "none", here=cast(Any, workers)).plan(NAME, False)
    answered, _ = collect(workers, source, plan)
    lines = list(laid_open(course, NAME, "why_it_waits", "ada", answered))
    assert lines[0] == "asked with {}, answered 'It waits.'"
    assert lines[1].startswith("a good answer: A device needs all rows") and lines[2].startswith(
        "rubric: 1 point: every"
    )
