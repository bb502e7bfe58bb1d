"""The ``shardlings`` command grades the example submissions. The tests compare points, reasons and files of reports."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from grader.batch.database import FILE
from grader.sandbox.tiers import NoIsolation, best_tier
from tests.databases import graded_in, is_marked, mark

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "submissions"  # the submissions of a class for one assignment
OTHERS = ROOT / "examples" / "other_modules"
EXPECTED = yaml.safe_load((ROOT / "examples" / "expected.yaml").read_text(encoding="utf-8"))


def place(student: str) -> Path:
    """Return the folder of an example."""
    return next(folder / student for folder in (EXAMPLES, OTHERS) if (folder / student).is_dir())


def isolation() -> str:
    """Return ``auto``; ``none`` on machines without a sandbox. The project wrote the examples, so ``none`` is safe."""
    try:
        print("isolation:", best_tier("auto"))
    except NoIsolation:
        print("isolation: none, this system has no other")
        return "none"
    return "auto"


def command(out: Path, jobs: int, examples: Path = EXAMPLES) -> list[str]:
    words = ["grade", str(examples), "--out", str(out), "-j", str(jobs), "--isolation", isolation(), "--json"]
    return [sys.executable, "-m", "grader", *words]


def grade(out: Path, jobs: int, examples: Path = EXAMPLES) -> subprocess.CompletedProcess[str]:
    run = command(out, jobs, examples)
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done


def read_report(out: Path, student: str) -> dict[str, Any]:
    return json.loads((out / "reports" / f"{student}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graded")


@pytest.fixture(scope="session")
def demo(outputs: Path) -> subprocess.CompletedProcess[str]:
    """Grade the class of ``make demo``, two submissions at a time, and return what the command printed."""
    return grade(outputs / "demo", jobs=2)


def differences(report: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """Yield one line for each difference between a report and the expected points and reasons."""
    if report["earned"] != expected["earned"]:
        yield f"earned {report['earned']:g}, expected {expected['earned']:g}"
    handed_in = {e["exercise"]: e for e in report["exercises"] if e["handed_in"]}
    if (points := sum(e["points"] for e in handed_in.values())) != expected["points"]:
        yield f"what was handed in is worth {points:g}, expected {expected['points']:g}"
    for name in sorted(set(handed_in) ^ set(expected["exercises"])):
        yield f"{name}: {'not expected' if name in handed_in else 'not handed in'}"
    for name in sorted(set(handed_in) & set(expected["exercises"])):
        wanted = expected["exercises"][name]
        for key in ("earned", "points"):
            if handed_in[name][key] != wanted[key]:
                yield f"{name}: {key} {handed_in[name][key]:g}, expected {wanted[key]:g}"
        yield from (f"{name}: {line}" for line in surprises(handed_in[name]["results"], wanted.get("not_passed", {})))


def surprises(results: list[dict[str, Any]], not_passed: dict[str, str]) -> Iterator[str]:
    """Yield one line for each check or question with an unexpected status or reason."""
    found = {r["name"]: r for r in results}
    yield from (f"there is no {check}" for check in not_passed if check not in found)
    for check, result in found.items():
        status, _, words = not_passed.get(check, "passed").partition(": ")
        explained = words in result["reason"] or words == result["misconception"]
        if result["status"] != status or not explained:
            actual = f"{result['status']}: {result['misconception'] or result['reason']}"
            yield f"{check} is {actual!r}, expected {not_passed.get(check, 'passed')!r}"


def test_there_is_an_example_for_every_expectation() -> None:
    assert {p.name for folder in (EXAMPLES, OTHERS) for p in folder.iterdir()} == set(EXPECTED)
    assert len(EXPECTED) >= 16


@pytest.mark.slow
def test_the_demo_shows_a_class(demo: subprocess.CompletedProcess[str]) -> None:
    """The class page of ``make demo`` has one assignment. All students submitted it, and their scores vary."""
    assert (
        "note: graded modules: 03_matmuls (handed in by 20 of 20 students); to grade other modules, use --only MODULE"
        in demo.stderr
    )
    assert "warning: the seed in" in demo.stderr
    summary = json.loads(demo.stdout)
    assert [(a["module"], a["handed_in"]) for a in summary["assignments"]] == [("03_matmuls", 20)]
    assert summary["maximum"] == 100 and 60 < summary["mean"] < 90 and summary["minimum"] > 0
    assert summary["attention"] == []


@pytest.mark.slow
@pytest.mark.usefixtures("demo")
def test_every_example_gets_its_expected_points_and_reasons(outputs: Path) -> None:
    grade(outputs / "others", jobs=2, examples=OTHERS)
    folders = {EXAMPLES: outputs / "demo", OTHERS: outputs / "others"}
    reports = {student: read_report(folders[place(student).parent], student) for student in EXPECTED}
    results = [r for report in reports.values() for e in report["exercises"] for r in e["results"]]
    assert [r for r in results if r["status"] == "broken"] == []
    assert {report["pending"] for report in reports.values()} == {0}
    surprising = [f"{s}: {line}" for s, report in reports.items() for line in differences(report, EXPECTED[s])]
    assert not surprising, "\n".join(surprising)


@pytest.mark.slow
@pytest.mark.usefixtures("demo")
def test_reports_do_not_depend_on_how_they_were_made(outputs: Path, tmp_path: Path) -> None:
    """A run with one job that continues a killed run writes files that are equal to those of a run with two jobs."""
    graded, killed = outputs / "demo", tmp_path / "killed"
    made = killed_after_the_first_save(killed)
    assert 0 < len(made) < len(list(EXAMPLES.iterdir())) and not list((killed / "reports").iterdir())
    shutil.copytree(killed, tmp_path / "marked")
    for student in made:
        mark(tmp_path / "marked", student)
    grade(killed, jobs=1)
    assert files_of(killed) == files_of(graded)
    _, different, missing = filecmp.cmpfiles(graded, killed, files_of(graded) - {FILE}, shallow=False)
    assert (different, missing) == ([], [])
    assert graded_in(killed) == graded_in(graded)
    grade(tmp_path / "marked", jobs=2)
    assert all(is_marked(tmp_path / "marked", student) for student in made), "finished, and graded again"


def killed_after_the_first_save(out: Path) -> dict[str, bytes]:
    """Start a run, kill it as soon as its database has reports, and return these reports by student.

    The grader saves the first report at once, and later reports about once a second.
    """
    running = subprocess.Popen(command(out, 2), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not graded_in(out, "made") and running.poll() is None:
            time.sleep(0.05)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    return graded_in(out, "made")


def files_of(out: Path) -> set[str]:
    """Return all files, except temporary files that a killed run may leave behind. The grader never reads these."""
    return {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file() and not p.name.startswith(".tmp-")}
