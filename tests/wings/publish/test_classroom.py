"""GitHub Classroom: the input of its reporter."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from grader.wings.publish import classroom
from tests.integrations.test_export import report, result


def decoded(path: Path) -> dict:
    return json.loads(base64.b64decode(classroom.encoded(path)))


def test_points_are_those_of_public_checks_and_a_question_is_worth_nothing(tmp_path: Path) -> None:
    made = report("ada", result(), result(name="second", status="failed", earned=0, label="it is\x1b[31m whole"),
                  result(name="time", kind="number", status="blocked", earned=0))  # fmt: skip
    (tmp_path / "r.json").write_text(made.dumps())
    assert decoded(tmp_path / "r.json") == {
        "version": 1, "status": "fail", "max_score": 4, "tests": [
            {"name": "e", "status": "fail", "score": 2, "message": "it is whole", "test_code": "", "filename": "",
             "line_no": 0, "duration": 0}
        ],
    }  # fmt: skip


def test_all_that_is_checked_passes() -> None:
    assert classroom.results_of(report("ada", result()))["status"] == "pass"
    only_questions = classroom.results_of(report("ada", result(kind="number", status="blocked", earned=0)))
    assert (only_questions["tests"], only_questions["max_score"]) == ([], 0)


def test_a_broken_check_is_an_error_and_no_failure() -> None:
    made = classroom.results_of(report("ada", result(status="broken", earned=0)))
    assert made["status"] == made["tests"][0]["status"] == "error"


@pytest.mark.parametrize("text", ["", "{", "[]", None])
def test_without_a_report_there_is_an_error_that_is_worth_nothing(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "r.json").write_text(text)
    assert decoded(tmp_path / "r.json") == {"version": 1, "status": "error", "max_score": 0, "tests": []}
