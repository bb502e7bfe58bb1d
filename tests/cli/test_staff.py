"""Commands of the staff other than ``grade``, and the number of jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader import Mistake, cli
from grader.cli import author, grading, machine, staff
from tests.commands import ROOT, shardlings


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


@pytest.mark.parametrize(
    "words",
    [
        ["grade", "examples/submissions", "--out", "out"],
        ["verify", "03_matmuls"],
        ["mutants", "c1"],
        ["doctor", "--attack"],
    ],
    ids=" ".join,
)
def test_without_j_a_command_does_one_thing_for_each_core_at_a_time(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def used(course: object, tier: str, jobs: int, **more: object) -> None:
        raise Mistake(f"{jobs} jobs")

    monkeypatch.chdir(ROOT)
    for module in (author, grading):
        monkeypatch.setattr(module, "Grader", used)
    monkeypatch.setattr(machine, "attack", lambda tier, jobs: used(None, tier, jobs))
    for module in (author, grading, staff):
        monkeypatch.setattr(module, "cores", lambda: 3)
    for more, jobs in (([], 3), (["-j", "2"], 2)):
        assert str(CliRunner().invoke(cli.app, [*words, *more, "--isolation", "none"]).exception) == f"{jobs} jobs"
