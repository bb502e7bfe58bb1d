"""For appeals: a check decided again from scratch, and what is not as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.batch.grade import Grader
from grader.batch.why import find_check, why
from grader.course.config import CourseError
from grader.course.loading import Course
from tests.batch.test_grade import NAME, RIGHT, TIER, ZEROS, submitted
from tests.made_up import made_up


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return made_up(tmp_path)


@pytest.mark.slow
def test_a_check_is_decided_again_and_laid_open(course: Course) -> None:
    with Grader(course, TIER) as grader:
        kept = grader.grade(submitted(ZEROS), [NAME])
    found = why(course, TIER, submitted(ZEROS), f"{NAME}/value", kept)
    assert (found.result.status, found.differs, found.kept) == ("failed", [], found.result)
    text = "\n".join(found.lines)
    assert "gather: mesh {'x': 4}, dims {'I': 8, 'J': 3}, open inputs" in text
    assert "gather: mesh {'x': 2}, dims {'I': 1012, 'J': 5}, secret inputs" in text
    assert "  run 2: on device (x=0), all values are wrong" in text  # of the secret inputs too: it is for the staff
    right = why(course, TIER, submitted(RIGHT), "traffic", None)
    assert (right.result.status, right.kept, right.differs) == ("passed", None, [])
    assert any(line.startswith("  all_gather over x: ") and line.endswith("(line 4)") for line in right.lines)


@pytest.mark.slow
def test_what_differs_from_the_report_on_file_is_said(course: Course) -> None:
    with Grader(course, TIER) as grader:
        kept = grader.grade(submitted(ZEROS), [NAME])
    differs = why(course, TIER, submitted(RIGHT), f"{NAME}/value", kept).differs
    assert "status: 'failed' on file, 'passed' now" in differs
    assert "decided by other programs or inputs than the report on file" in differs
    other = kept.model_copy(update={"versions": {"jax": "0"}})
    assert why(course, TIER, submitted(ZEROS), f"{NAME}/value", other).differs == [
        f"versions: {{'jax': '0'}} on file, {kept.versions} now"
    ]


@pytest.mark.slow
def test_questions_and_work_that_is_not_there_are_decided_too(course: Course) -> None:
    asked = why(course, TIER, submitted(None), "gather_time", None)
    assert asked.result.status == "failed" and asked.lines[0].endswith("}, answered nothing: nothing was handed in")
    (line,) = why(course, TIER, submitted(RIGHT + "\ngather_time = '3 us'\n"), "gather_time", None).lines
    assert line.startswith("asked with {") and line.endswith("}, answered '3 us'")
    assert why(course, TIER, submitted(None), "value", None).lines == []


def test_a_check_that_nobody_has_is_named(course: Course) -> None:
    assert find_check(course, "value") == (NAME, "value")
    with pytest.raises(
        CourseError, match="no check or question 'valeu' in x1_gather; it has value, traffic, gather_time"
    ):
        find_check(course, f"{NAME}/valeu")
