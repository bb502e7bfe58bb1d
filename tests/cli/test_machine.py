"""``doctor`` prints one line for each missing part, and tests whether this machine grades correctly."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from grader.cli import machine as doctor
from grader.cli.machine import count_devices, examine, graded_right, jax_line, jax_problem, search_path_lines
from grader.course.loading import load_course
from grader.sandbox.tiers import NoIsolation
from grader.sandbox.worker import WorkerDied
from tests.made_up import made_up

ROOT = Path(__file__).resolve().parents[2]


def test_doctor_reports_a_jax_that_is_too_old_with_the_pip_command() -> None:
    assert jax_problem("0.4.38") == "JAX 0.4.38 is too old; pip install 'jax>=0.10.2'"
    assert jax_problem("0.10.2") == ""


def test_doctor_notes_an_untested_jax_without_refusing() -> None:
    line = jax_line("0.13.0")
    assert not line.ok and not line.needed and not jax_problem("0.13.0")
    assert line.detail == "0.13.0 is newer than the tested versions; pip install 'jax>=0.10.2,<0.13'"
    assert jax_line("0.12.0.1").ok and jax_line("0.10.2").ok
    assert jax_line("0.10.0").needed and not jax_line("0.10.0").ok


def test_doctor_has_the_jax_bounds_of_pyproject_toml() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (jax,) = (d for d in project["dependencies"] if re.match(r"jax\b", d))
    oldest, untested = (".".join(map(str, v)) for v in (doctor.OLDEST_JAX, doctor.UNTESTED_JAX))
    assert jax == f"jax>={oldest},<{untested}"


def test_doctor_counts_devices_in_a_worker() -> None:
    line = count_devices(3)
    assert line.ok and line.detail == "3 simulated devices"


@pytest.mark.parametrize("entries", [":/a", "/a:", "lib", "/a:.:/b"])
def test_doctor_warns_of_paths_that_change_with_the_folder(entries: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", entries)
    (line,) = search_path_lines()
    assert not line.ok and not line.needed
    assert line.detail.startswith(f"{entries} has an empty or relative entry, which the grader's workers ignore")


@pytest.mark.parametrize("entries", ["", "/a", "/a:/b"])
def test_doctor_is_silent_about_absolute_paths(entries: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", entries)
    assert search_path_lines() == []


def test_doctor_shows_the_last_line_of_a_worker_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(worker: object, *about: object) -> None:
        raise WorkerDied("died", "Traceback\n  a line\nModuleNotFoundError: No module named 'jax'\n")

    monkeypatch.setattr("grader.cli.machine.Worker.trace", die)
    assert count_devices(2).detail == "the worker ended: ModuleNotFoundError: No module named 'jax'"


def test_doctor_grades_the_solutions(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    line = graded_right(course, "none")
    assert line.ok and line.detail == "full marks for the solutions of x1_gather (isolation: none)"


def test_doctor_reports_solutions_that_lose_points(tmp_path: Path) -> None:
    course = made_up(tmp_path, "expect_close(seen.out, seen.a)", "expect_close(seen.out, 2 * seen.a)")
    line = graded_right(course, "none")
    assert not line.ok and line.needed
    assert line.detail.startswith(
        "the test with the course's solutions failed: the solution of x1_gather gets 1 of 3 points on this machine (value: "
    )


def test_doctor_reports_why_the_canary_did_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = made_up(tmp_path, "import math\n", "import maths\n")
    line = graded_right(broken, "none")
    assert not line.ok and not line.needed and "No module named 'maths'" in line.detail

    def none(asked: str) -> str:
        raise NoIsolation("no sandbox works here")

    monkeypatch.setattr(doctor, "best_tier", none)
    line = graded_right(made_up(tmp_path), "auto")
    assert not line.ok and not line.needed and line.detail == "not run: no sandbox works here"


def test_doctor_without_solutions_has_no_canary_line(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    (tmp_path / "solutions").rename(tmp_path / "elsewhere")
    assert "canary" not in {line.name for line in examine(2, load_course(course.root / "course.yaml"), "none")}
