"""The grader chooses a sandbox, and gives a worker in it only the folders that the worker needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grader.sandbox.tiers import ROOMS, SERVES, TIERS, NoIsolation, available, best_tier, command, package
from tests.sandbox.submissions import CONFINED

ROOT = Path(__file__).resolve().parents[2]


def test_at_least_one_sandbox_works_on_this_machine() -> None:
    """The command ``grade`` refuses to run without a sandbox, so this test fails without a sandbox."""
    assert CONFINED, [available(t) for t in TIERS]


def test_without_any_sandbox_grading_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.sandbox.tiers.available", lambda tier: f"{tier} is not here")
    with pytest.raises(
        NoIsolation, match=r"no sandbox works here, so other people's code is not run.*--isolation none"
    ):
        best_tier()


@pytest.mark.parametrize(("role", "begins"), SERVES.items())
def test_a_worker_is_given_the_folders_that_it_imports_and_no_more(role: str, begins: str) -> None:
    """A worker imports from all folders that ``ROOMS`` lists for it. In a sandbox, it sees no other folder."""
    program = f"""
import sys
from grader.sandbox.start import admit
admit({":".join(ROOMS[role])!r}.split(":"))
import grader.sandbox.main, {begins}
print(*{{name.split(".")[1] for name in sys.modules if name.startswith("grader.")}})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert set(done.stdout.split()) == set(ROOMS[role])
    assert [Path(path).name for path in package(role)] == ["__init__.py", *ROOMS[role]]


def test_bwrap_is_not_offered_where_there_is_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside bwrap, only the filter protects the keeper from a submission."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    available.cache_clear()
    try:
        assert available("bwrap") == "bwrap needs one of x86_64, aarch64, this is riscv64"
    finally:
        available.cache_clear()


def test_a_tier_that_does_not_work_has_its_own_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for tier in ("sandlock", "bwrap"):
        monkeypatch.setattr(f"grader.sandbox.tiers._{tier}_problem", lambda tier=tier: f"{tier} is broken")
    available.cache_clear()
    try:
        assert [available(tier) for tier in TIERS] == ["sandlock is broken", "bwrap is broken", ""]
    finally:
        available.cache_clear()


def test_a_tier_that_is_not_resolved_starts_no_process() -> None:
    """Without this error, a Grader with the tier "auto" would use bwrap, even on a machine without bwrap."""
    with pytest.raises(ValueError, match=r"^unknown tier 'auto'; the tiers are sandlock, bwrap, none$"):
        command("auto", "trace", "/scratch", 1024)
