"""Commands of the staff other than ``grade``, and the number of jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader import cli
from tests.commands import shardlings


@pytest.mark.slow
def test_doctor_reports_devices_and_isolation() -> None:
    lines = {line["name"]: line for line in json.loads(shardlings("doctor", "--json").stdout)}
    assert lines["devices"]["detail"] == "8 simulated devices"
    assert {"isolation sandlock", "isolation bwrap", "JAX"} <= set(lines)


def test_without_j_nbgrader_grade_leaves_the_number_of_jobs_to_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("nbgrader")
    from grader.integrations.nbgrader import batch

    asked: list[int] = []
    monkeypatch.setattr(
        batch, "grade", lambda *_, jobs, **more: asked.append(jobs) or batch.BatchOutcome(tier=more["isolation"])
    )
    for more in ([], ["-j", "3"]):
        CliRunner().invoke(cli.app, ["nbgrader", "grade", str(tmp_path), "m", *more])
    assert asked == [0, 3]  # for 0, nbgrader_config.py sets the number of jobs
