"""Answer questions of every kind as a learner: check the file, submit it, and read grades and pages."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from grader.batch.grade import Grader
from grader.batch.replies import plain_values
from grader.batch.workers import Workers
from grader.common.observation import Outcome
from grader.common.result import ExerciseReport, Report
from grader.course.build import build
from grader.course.loading import Course, load_course
from grader.course.stubs import stub_source
from grader.exercise import Choice, Question, Table
from grader.intake.submission import Chunk, Source, Submission
from grader.integrations.nbgrader.cells import comment
from grader.integrations.nbgrader.folder import in_plain_words
from grader.judging.plan import Ask
from grader.reports.pages import render_fragment
from tests.test_documented import DOCS, FENCED, PER_STUDENT, course_of

NAME = "answers_0"
TEXT = FENCED.findall((DOCS / "checks" / "answers.md").read_text())[0]


@pytest.fixture(scope="module", params=["", PER_STUDENT], ids=["shared", "per_student"])
def course(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Course:
    made = course_of(tmp_path_factory.mktemp("answers"), NAME, TEXT, request.param)
    build(made)
    return made


def graded(
    course: Course, workers: Workers, text: str, student: str = "ada", *, public: bool = False
) -> ExerciseReport:
    source = Source(f"{NAME}.py", (Chunk(f"{NAME}.py", text),))
    grader = Grader(course, "none", here=cast(Any, workers))
    return grader.grade(Submission(student, {NAME: source}, (), ""), [NAME], public=public).exercises[0]


def right(course: Course, student: str = "ada") -> str:
    """Return right answers in the notation that learners use."""
    asked = course.exercise(NAME).questions
    drawn = {name: course.params(q, student) for name, q in asked.items()}
    spec = asked["matmul_spec"](**drawn["matmul_spec"])
    letter = "ABCD"[drawn["what_is_sent"]["order"].index(asked["what_is_sent"](**drawn["what_is_sent"]))]
    table = {
        row: {"bytes": f"{cells['bytes']} B", "time": cells["time"] * 1e6}
        for row, cells in asked["two_collectives"](**drawn["two_collectives"]).items()
    }
    lines = ["from jax.sharding import PartitionSpec as P", f"matmul_spec = P{tuple(spec)!r}"]
    return "\n".join([*lines, f"what_is_sent = {letter!r}", f"two_collectives = {table!r}", ""])


def test_right_answers_get_full_marks(course: Course, workers: Workers) -> None:
    for student in ("ada", "bo"):
        report = graded(course, workers, right(course, student), student)
        assert [(r.kind, r.status) for r in report.results] == [
            ("spec", "passed"),
            ("choice", "passed"),
            ("table", "passed"),
        ]
        assert report.earned == 2.5


def test_a_released_course_reads_answers_back_without_judging(course: Course, workers: Workers) -> None:
    released = load_course(course.root / "exercises" / "course.yaml")
    report = graded(released, workers, right(course), public=True)
    reasons = [r.reason for r in report.results]
    assert [r.status for r in report.results] == ["blocked"] * 3
    assert all(
        reason.startswith("read as ") and reason.endswith("; the answer is judged after you submit")
        for reason in reasons
    )
    assert reasons[0].startswith("read as P(") and reasons[1][8:11] in ("A: ", "B: ", "C: ", "D: ")
    assert reasons[2].startswith("read as gather: bytes = ")


def test_a_wrong_letter_and_a_known_misconception_are_reported(course: Course, workers: Workers) -> None:
    text = (
        right(course)
        .replace("what_is_sent = ", "what_is_sent = 'Q' or ")
        .replace("two_collectives = ", "two_collectives = 3 or ")
    )
    report = graded(course, workers, text + "matmul_spec = 'P((x))'\n")
    assert [(r.status, r.reason) for r in report.results[1:]] == [
        ("failed", "'Q' is not an option: answer with A, B, C or D, or with the text of one option"),
        ("failed", "write a dict with the rows gather, scatter, or a list of their values in this order"),
    ]
    misconception = course.exercise(NAME).misconceptions["joined"]
    drawn = course.params(course.exercise(NAME).questions["matmul_spec"], "ada")
    report = graded(course, workers, f"matmul_spec = {tuple(misconception.fn(**drawn))!r}")
    assert (report.results[0].misconception, report.results[0].hint) == ("joined", misconception.hint)
    assert [r.reason for r in report.results[1:]] == ["not answered yet"] * 2


def test_learners_get_the_questions_and_no_answer(course: Course) -> None:
    stub = stub_source(course, course.exercise(NAME))
    for line in (
        "# Question matmul_spec [a PartitionSpec]", "# Question what_is_sent [one of A, B, C, D]",
        "# Question two_collectives [bytes, time]", "matmul_spec = None  # TODO: your answer",
    ):  # fmt: skip
        assert line in stub.splitlines()
    shared = course.config.variants.mode == "shared"
    listed = [line for line in stub.splitlines() if line.startswith(("# - A: ", "# - D: "))]
    assert len(listed) == (2 if shared else 0)
    cells = json.loads((course.root / "exercises" / "01_shown" / "01_shown.ipynb").read_text())["cells"]
    asked = "".join(next(c["source"] for c in cells if c["id"].endswith("what_is_sent-text")))
    assert ("\n- A: " in asked) == shared
    public = (course.root / "exercises" / "01_shown" / "_public" / f"{NAME}.py").read_text()
    for text in (public, stub, json.dumps(cells)):
        assert not any(secret in text for secret in ("all_gather_time", "misconception", "You cut", "size / 4"))
    given = load_course(course.root / "exercises" / "course.yaml").exercise(NAME).questions
    assert isinstance(given["what_is_sent"].answer, Choice) and isinstance(given["two_collectives"].answer, Table)
    assert [q.answer for q in given.values()] == [q.answer for q in course.exercise(NAME).questions.values()]


def test_every_renderer_calls_them_questions(course: Course, workers: Workers) -> None:
    exercise = graded(course, workers, "matmul_spec = 'x, x'\nwhat_is_sent = 'Q'\ntwo_collectives = [1]\n")
    page = render_fragment(exercise.for_student())
    assert page.count(">question<") == 3
    assert (
        comment(exercise, "matmul_spec")
        == "- question matmul_spec: the axis x is named twice: an axis cuts one dimension."
    )
    shown = exercise.for_student().model_dump_json()
    assert all(r.expected is None for r in exercise.for_student().results) and "all_gather_time" not in shown
    words = in_plain_words(course, NAME)
    assert "question matmul_spec\n" in words and "question two_collectives, within 2%" in words
    report = Report(
        student="ada", course="shown", versions={}, isolation="none", backend="cpu", fingerprint="", points=exercise.points,
        earned=0, pending=0, exercises=[exercise],
    )  # fmt: skip
    assert Report.loads(report.dumps()) == report
    labels = [result.label for result in exercise.results]
    for label, name in zip(labels, ("matmul_spec", "what_is_sent", "two_collectives"), strict=True):
        assert label.startswith(f"{name}: ") and label.endswith("?")


def deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize(
    "raw",
    [deep(40), [0] * 999, {str(i): 0 for i in range(99)}, {"dict": [[deep(40), 1]]}],
    ids=["deep", "long", "wide", "key"],
)
def test_a_malformed_reply_of_a_learners_process_is_refused(raw: Any) -> None:
    question = Question("q", "What?", lambda: {"a": 1}, 1, Table({"a": ""}))
    found = plain_values(Ask(question), {"raw": raw}).fault
    assert found is not None and found.kind == "refused"
    given = {"dict": [["a", 1]]}
    assert plain_values(Ask(question), {"raw": given}).outcomes == [Outcome(value=given)]
