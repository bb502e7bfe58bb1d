"""Commands of the staff other than ``grade``, and the number of jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader import cli
from grader.cli import grading_nbgrader
from tests.commands import shardlings


@pytest.mark.slow
def test_doctor_reports_devices_and_isolation() -> None:
    lines = {line["name"]: line for line in json.loads(shardlings("doctor", "--json").stdout)}
    assert lines["devices"]["detail"] == "8 simulated devices"
    assert {"isolation sandlock", "isolation bwrap", "JAX"} <= set(lines)


def test_without_j_nbgrader_grade_leaves_the_number_of_jobs_to_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[int | None] = []
    monkeypatch.setattr(grading_nbgrader, "grade_assignment", lambda options: asked.append(options.jobs) or 0)
    for more in ([], ["-j", "3"]):
        CliRunner().invoke(cli.app, ["nbgrader", "grade", str(tmp_path), "m", *more])
    assert asked == [None, 3]  # for None, nbgrader_config.py sets the number of jobs
