"""Test this machine: devices, isolation, versions, missing packages, and whether the grader gives right verdicts."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from grader import wing
from grader.batch import canary
from grader.batch.grade import Grader
from grader.cli.options import OLDEST_JAX, UNTESTED_JAX, jax_problem, numbers
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.reports.points import counted
from grader.sandbox.limits import Limits
from grader.sandbox.tiers import TIERS, NoIsolation, available, best_tier
from grader.sandbox.worker import Worker, WorkerDied

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class MachineCheck:
    """The result of one test of the machine. ``needed`` is True if nothing works on a machine that fails the test."""

    name: str
    ok: bool
    detail: str
    needed: bool = False


def jax_line(version: str | None = None) -> MachineCheck:
    """Test JAX's version. A version that is too old gives an error. A version that is too new gives a warning."""
    if problem := jax_problem(version):
        return MachineCheck("JAX", False, problem, needed=True)
    version = version or importlib.metadata.version("jax")
    if numbers(version) < UNTESTED_JAX:
        return MachineCheck("JAX", True, version, needed=True)
    tested = f"jax>={'.'.join(map(str, OLDEST_JAX))},<{'.'.join(map(str, UNTESTED_JAX))}"
    return MachineCheck("JAX", False, f"{version} is newer than the tested versions; pip install '{tested}'")


def search_path_lines() -> list[MachineCheck]:
    """Return a warning if PYTHONPATH has empty or relative entries: their meaning depends on the current folder."""
    entries = os.environ.get("PYTHONPATH", "")
    if not entries or all(map(os.path.isabs, entries.split(os.pathsep))):
        return []
    text = f"{entries} has an empty or relative entry, which the grader's workers ignore; write absolute paths only"
    return [MachineCheck("PYTHONPATH", False, text)]


def examine(devices: int, course: Course | None = None, isolation: str = "auto") -> list[MachineCheck]:
    """Run all tests of this machine, and return their results. Some tests start workers and grade solutions."""
    lines = [MachineCheck("Python", sys.version_info >= (3, 11), platform.python_version(), needed=True)]
    lines += [jax_line(), *search_path_lines()]
    usable = not jax_problem()
    if usable:
        lines.append(count_devices(devices))
    for tier in TIERS[:2]:
        trouble = available(tier)
        lines.append(MachineCheck(f"isolation {tier}", not trouble, trouble or "works"))
    try:
        lines.append(MachineCheck("nbgrader", True, importlib.metadata.version("nbgrader")))
    except importlib.metadata.PackageNotFoundError:
        text = "not installed; to grade notebooks: pip install 'nbgrader>=0.9.5,<0.10'"
        lines.append(MachineCheck("nbgrader", False, text))
    lines += [line for lines_of in wing.offered("doctor") for line in lines_of()]
    if shutil.which("git") is None:
        lines.append(MachineCheck("git", False, "not installed; only the course's authors need git"))
    if usable and course is not None and course.solved:
        lines.append(graded_right(course, isolation))
    return lines


def graded_right(course: Course, isolation: str) -> MachineCheck:
    """Grade the solutions of a few exercises, which together have every kind of task and answer."""
    try:
        names = canary.one_of_each_kind(course)
        with Grader(course, best_tier(isolation)) as grader:
            problem = canary.examine(grader, names)
    except (CourseError, NoIsolation) as error:
        return MachineCheck("canary", False, f"not run: {error}")
    text = f"full marks for the solutions of {', '.join(names)} (isolation: {grader.tier})"
    return MachineCheck("canary", not problem, problem or text, needed=True)


def count_devices(devices: int) -> MachineCheck:
    """Test whether this machine can simulate the number of devices that the course needs."""
    text = "import jax\ndef count(): return jax.device_count()\n"
    found = 0
    with Worker("trace", "none", devices, Limits()) as worker:
        try:
            for frame, _ in worker.trace(
                {"name": "probe.py", "chunks": [["probe.py", text]]},
                [{"kind": "function", "task": "count", "cases": [{"dict": []}]}],
            ):
                for value in frame.get("body", {}).get("values", []):
                    found = value.get("value", 0)
        except WorkerDied as died:
            last = died.stderr.strip().rpartition("\n")[2][-200:]
            return MachineCheck("devices", False, f"the worker ended: {last}", needed=True)
    text = (
        counted(found, "simulated device")
        if found >= devices
        else f"{counted(found, 'simulated device')}, but the course needs {devices}"
    )
    return MachineCheck("devices", found >= devices, text, needed=True)


def attack(tier: str, jobs: int) -> int:
    """Run the project's attacks on the grader. Return 0 if no attack succeeds.

    Raises CourseError for an installed package, which does not contain the attacks.
    """
    if not (CHECKOUT / "tests" / "attack.py").is_file():
        raise CourseError(f"the attacks are in a checkout of this project, in tests/submissions/hostile; "
                          f"there is no checkout at {CHECKOUT}")  # fmt: skip
    return subprocess.run([sys.executable, "-m", "tests.attack", tier, "-j", str(jobs)], cwd=CHECKOUT).returncode
