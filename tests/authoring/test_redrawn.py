"""Inputs that another process draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.authoring.redrawn import Redrawn
from tests.made_up import made_up

CALL = 'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})'
TOLD = ["gather: each process draws other inputs: draw only with the given rng"]


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("", []),
        ("import os\nA = normal('I', 'J', spec=P('x', None), dtype='float32')\nSIZE = os.getpid() % 1000", TOLD),
        ("SIZE = hash('text') % 1000", TOLD),
    ],
)
def test_what_differs_between_processes_is_reported(tmp_path: Path, before: str, told: list[str]) -> None:
    size = "5 + 2 * SIZE" if "SIZE" in before else "5"
    course = made_up(tmp_path, CALL, f"{before}\n{CALL.replace('5}', size + '}')}")
    assert list(Redrawn(course, ["x1_gather"]).problems(course.exercise("x1_gather"))) == told
