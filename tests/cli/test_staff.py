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


def test_quiet_nbgrader_grade_prints_the_summary_line_and_problems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("nbgrader")
    from grader.integrations.nbgrader import batch

    done = batch.BatchOutcome(graded=["ada"], attention={"bob": ["no answer"]}, warnings=["all scores fell"], tier="x")
    monkeypatch.setattr(batch, "grade", lambda *_, **__: done)
    shown = CliRunner().invoke(cli.app, ["nbgrader", "grade", str(tmp_path), "m", "--quiet"]).stdout
    assert shown.startswith("all scores fell\n1 graded, 0 unchanged  (isolation: x)\n")
    assert "bob" in shown and "next:" not in shown and "class page" not in shown


@pytest.mark.parametrize("command", ["verify", "nbgrader grade folder m"])
def test_quiet_and_json_exclude_each_other(command: str) -> None:
    done = CliRunner().invoke(cli.app, [*command.split(), "--quiet", "--json"])
    assert str(done.exception) == "--quiet and --json exclude each other; pass one"
