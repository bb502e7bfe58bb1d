"""Grade a small class for a whole term. The test kills the grader several times.

A separate program checks all sums of points.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader.sandbox.tiers import available
from tests.commands import ROOT

TIER = next((tier for tier in ("sandlock", "bwrap") if not available(tier)), "none")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="kills a grader")
def test_every_sum_of_a_term_adds_up(tmp_path: Path) -> None:
    words = ["--students", "40", "--isolation", TIER, "--place", str(tmp_path)]
    term = [sys.executable, str(ROOT / "bench" / "term.py"), *words]
    done = subprocess.run(term, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("killed at") >= 2 and done.stdout.count(" 0 differ") == 3
    assert "temporary folders left: 0" in done.stdout

    # bench/term_sums.py must fail if a sum of points is wrong
    truth = json.loads((tmp_path / "truth.json").read_text())
    truth["s001"]["points"]["01_gather"][0] += 1
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    adder = [sys.executable, str(ROOT / "bench" / "term_sums.py"), str(tmp_path)]
    assert subprocess.run(adder, capture_output=True, check=False).returncode == 1
