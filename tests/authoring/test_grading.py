"""Reports on all checks and on public checks, from one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grader.authoring import grading
from grader.authoring.grading import graded_and_public
from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.batch.workers import Workers
from grader.intake.submission import Source
from tests.batch.test_grade import NAME, RIGHT, ZEROS, submitted
from tests.made_up import made_up


@pytest.fixture
def grader(workers: Workers, tmp_path: Path) -> Grader:
    return Grader(made_up(tmp_path), "none", here=workers)


@pytest.mark.parametrize("text", [RIGHT, ZEROS, "", "1 / 0\n", RIGHT.replace("tiled=True", "tiled=False")])
def test_graded_and_public_returns_the_two_reports_of_separate_runs(grader: Grader, text: str) -> None:
    *both, _ = graded_and_public(grader, submitted(text), NAME)
    for report, public in zip(both, (False, True), strict=True):
        assert report == grader.grade(submitted(text), [NAME], public=public).exercises[0]


def test_graded_and_public_asks_nothing_twice(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def collecting(workers: Workers, source: Source, asks: list[Any]) -> Any:
        asked.append(asks)
        return collect(workers, source, asks)

    monkeypatch.setattr(grading, "collect", collecting)
    graded_and_public(grader, submitted(RIGHT), NAME)
    ((asks),) = asked
    assert (
        len({ask.answer_key for ask in asks})
        == len(asks)
        < sum(len(grader.plan(NAME, public)) for public in (True, False))
    )
    assert [ask.hidden_inputs for ask in asks] == sorted(ask.hidden_inputs for ask in asks)


def test_graded_and_public_reuses_known_answers(grader: Grader) -> None:
    *right, found = graded_and_public(grader, submitted(RIGHT), NAME)
    known = [answered for answered in found if answered.ask.task == "gather"]
    *both, _ = graded_and_public(grader, submitted(ZEROS), NAME, known)
    unbased = [[report.model_copy(update={"basis": {}}) for report in reports] for reports in (both, right)]
    assert unbased[0] == unbased[1] and known
