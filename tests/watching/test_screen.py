"""The lines that ``watch`` shows below an exercise."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from grader.course.loading import load_course
from grader.watching.screen import Screen
from grader.watching.session import WatchSession
from tests.made_up import made_up
from tests.reports.example_reports import exercise, result

PASSES = "everything that was checked passes"
NEXT = "; n goes to the next exercise"


@pytest.mark.parametrize(
    ("names", "has_keys", "further"),
    [(["x1_gather", "x2"], True, NEXT), (["x1_gather"], True, ""), (["x1_gather", "x2"], False, "")],
    ids=["another", "the last", "no keys"],
)
def test_the_next_exercise_is_offered_only_if_there_is_one(
    tmp_path: Path, names: list[str], has_keys: bool, further: str
) -> None:
    made_up(tmp_path)
    (tmp_path / "x1_gather.py").write_text("gather_time = 3\n")
    session = WatchSession(load_course(tmp_path / "course.yaml"), tmp_path, "me", names)
    session.look()
    session.report = exercise([result()], exercise="x1_gather")
    file = io.StringIO()
    screen = Screen(session, Console(file=file, width=100))
    screen.has_keys = has_keys
    screen.result(0.1)
    assert f"\n{PASSES}{further}\n" in file.getvalue()
