"""The outcome of grading a class with nbgrader."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace

import pytest

pytest.importorskip("nbgrader")

from grader.integrations.nbgrader.outcome import BatchOutcome


@pytest.mark.parametrize(("penalty", "cost"), [(0.0, ""), (2.0, ": 2 points off")])
def test_nbgraders_pages_show_lateness_as_all_other_pages_do(penalty: float, cost: str) -> None:
    """Before, they showed ``handed in late by 1 d 2 h``."""
    notebook = SimpleNamespace(late_submission_penalty=penalty, grades=[])
    submission = SimpleNamespace(
        student_id="ada", name="01_gather", total_seconds_late=26 * 3600, timestamp=datetime(2026, 11, 2),
        notebooks=[notebook],
    )  # fmt: skip
    outcome = BatchOutcome()
    outcome.look_at(submission, {}, {})
    assert outcome.late["ada"].text == f"handed in 26 h late{cost}"
