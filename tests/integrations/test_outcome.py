"""The outcome of grading a class with nbgrader."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("nbgrader")

from grader.common.result import HandIn
from grader.integrations.nbgrader import class_page
from grader.integrations.nbgrader.class_page import BatchOutcome
from tests.reports.example_reports import exercise, make_report, result


@pytest.mark.parametrize(("penalty", "cost"), [(0.0, ""), (2.0, ": 2 points off")])
def test_nbgraders_pages_show_lateness_as_all_other_pages_do(penalty: float, cost: str) -> None:
    """All pages show 26 hours as ``26 h``, and none as ``1 d 2 h``."""
    notebook = SimpleNamespace(late_submission_penalty=penalty, grades=[])
    submission = SimpleNamespace(
        student_id="ada", name="01_gather", total_seconds_late=26 * 3600, timestamp=datetime(2026, 11, 2),
        notebooks=[notebook],
    )  # fmt: skip
    outcome = BatchOutcome()
    outcome.look_at(submission, {}, {})
    assert outcome.late["ada"].text == f"handed in 26 h late{cost}"


def page_of(outcome: BatchOutcome, place: Path, **points: float) -> str:
    """Return the class page of students with these points. A student with 0 points wrote nothing."""
    reports = {
        student: [make_report(exercise([result(earned=earned)], handed_in=earned > 0), student=student)]
        for student, earned in points.items()
    }
    class_page.write(place, cast(Any, SimpleNamespace(seed_problem="")), reports, outcome, lambda fingerprint: None)
    return Path(outcome.page).read_text()


def test_a_student_who_wrote_nothing_is_not_late(tmp_path: Path) -> None:
    """The class page and the student's page must not list an untouched notebook as late."""
    late = HandIn(module="m", submitted="2026-11-02T00:00:00+00:00", source="nbgrader", text="handed in 26 h late")
    outcome = BatchOutcome(late=dict.fromkeys(["ada", "bob", "cy"], late))
    page = page_of(outcome, tmp_path, ada=1.0, bob=0.0)
    assert page.count(late.text) == 2 and list(outcome.late) == ["ada", "cy"], "cy could not be graded"
    assert late.text in (tmp_path / "ada.html").read_text()
    assert late.text not in (tmp_path / "bob.html").read_text()


def test_cases_have_the_kind_of_their_reason(tmp_path: Path) -> None:
    """The class page shows "pending", "by hand" or "handed in again" for a case, not the general "look"."""

    def row(name: str, score: float | None) -> SimpleNamespace:
        return SimpleNamespace(name=name, needs_manual_grade=True, manual_score=score)

    grades = [row("check", None), row("words", None), row("scored", 1.0)]
    submission = SimpleNamespace(student_id="ada", total_seconds_late=0, notebooks=[SimpleNamespace(grades=grades)])
    outcome = BatchOutcome()
    outcome.look_at(submission, {"check": "c1", "scored": "c2"}, {"words": "c3"})
    page = page_of(outcome, tmp_path, ada=1.0)
    for kind in ("pending", "by hand", "handed in again"):
        assert f">{kind}</span>" in page
    assert ">look</span>" not in page
