"""The example submissions, graded by the real command: expected points and reasons, the same bytes however they are graded."""

from __future__ import annotations

import filecmp
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from grader.sandbox import NoIsolation, best_tier

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = yaml.safe_load((ROOT / "examples" / "expected.yaml").read_text(encoding="utf-8"))


def command(out: Path, jobs: int) -> list[str]:
    try:
        tier = best_tier()
    except NoIsolation:
        tier = "none"  # the examples are ours
    where = str(ROOT / "examples" / "submissions")
    return [sys.executable, "-m", "grader.cli", "grade", where, "--out", str(out), "-j", str(jobs), "--isolation", tier]


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All examples, graded two at a time."""
    out = tmp_path_factory.mktemp("graded") / "out"
    subprocess.run(command(out, 2), cwd=ROOT, check=True, capture_output=True, timeout=600)
    return out


def test_there_is_an_example_for_every_expectation() -> None:
    names = {p.name for p in (ROOT / "examples" / "submissions").iterdir()}
    assert names == set(EXPECTED) and len(names) >= 14


@pytest.mark.parametrize("student", sorted(EXPECTED))
def test_an_example_gets_what_is_expected(graded: Path, student: str) -> None:
    report = json.loads((graded / "reports" / f"{student}.json").read_text(encoding="utf-8"))
    expected = EXPECTED[student]
    assert report["earned"] == expected["earned"]
    assert report["pending"] == 0
    handed_in = {e["exercise"]: e for e in report["exercises"] if e["handed_in"]}
    assert set(handed_in) == set(expected["exercises"])
    for name, wanted in expected["exercises"].items():
        assert handed_in[name]["earned"] == wanted["earned"], name
        found = {r["name"]: r for r in handed_in[name]["results"] if r["status"] != "passed"}
        assert set(found) == set(wanted.get("not_passed", {})), name
        for check, told in wanted.get("not_passed", {}).items():
            status, _, text = told.partition(": ")
            assert found[check]["status"] == status, check
            assert text in found[check]["reason"] or text == found[check]["misconception"], (check, found[check])


@pytest.mark.slow
def test_reports_do_not_depend_on_how_they_were_made(graded: Path, tmp_path: Path) -> None:
    """One at a time, and killed in the middle and resumed: the same bytes as two at a time."""
    one, killed = tmp_path / "one", tmp_path / "killed"
    subprocess.run(command(one, 1), cwd=ROOT, check=True, capture_output=True, timeout=600)
    running = subprocess.Popen(command(killed, 2), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list((killed / "reports").glob("*.json"))) < 3 and running.poll() is None:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert len(list((killed / "reports").glob("*.json"))) < len(EXPECTED)
    subprocess.run(command(killed, 2), cwd=ROOT, check=True, capture_output=True, timeout=600)
    for other in (one, killed):
        names = {str(p.relative_to(graded)) for p in graded.rglob("*") if p.is_file()}
        assert names == {str(p.relative_to(other)) for p in other.rglob("*") if p.is_file()}
        _, different, missing = filecmp.cmpfiles(graded, other, names, shallow=False)
        assert (different, missing) == ([], []), other
