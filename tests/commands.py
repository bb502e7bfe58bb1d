"""The commands as a person types them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOOD = "examples/submissions/ada/c1_no_communication.py"


def shardlings(*words: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "grader.cli", *words]
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS", "SHARDLINGS_STUDENT")}
    return subprocess.run(command, cwd=cwd, env=clean | env, capture_output=True, text=True, timeout=300, check=False)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The complaint of a command that could not be carried out: one line, exit code 2, no traceback."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


def bad_line(folder: Path) -> str:
    """What is said of the exercise of ``with_bad`` that cannot be used."""
    return (
        f"{folder}/solutions/02_bad/x2_bad.py:64: gather_time: unknown unit 'furlong': "
        "write for instance us, ms, KiB, GB/s, FLOP or token"
    )
