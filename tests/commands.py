"""Run commands as a user types them."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOOD = "examples/submissions/ada/c1_no_communication.py"
SECONDS = 300


def shardlings(*words: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a ``shardlings`` command. With ``env``, start a new Python, which reads some variables only at its start."""
    command = [sys.executable, "-m", "grader", *words]
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS", "SHARDLINGS_STUDENT")}
    if env or not hasattr(os, "fork"):
        return subprocess.run(
            command, cwd=cwd, env=clean | env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    return in_a_fork("grader.cli", words, cwd, clean)


def nbgrader(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run an ``nbgrader`` command in the same way as ``shardlings`` above runs a command."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    whole = os.environ | {"PATH": path} | env
    if env or not hasattr(os, "fork"):
        return subprocess.run(["nbgrader", *words], cwd=cwd, env=whole, capture_output=True, text=True, check=False)
    return in_a_fork("nbgrader", words, cwd, whole)


def in_a_fork(program: str, words: Sequence[str], cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command of ``program`` in a fork of a process that has already imported ``program``."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = (Path(folder, name) for name in ("out", "err"))
        for path in (out, err):
            path.touch()
        asked = {"words": words, "cwd": str(cwd.resolve()), "env": env, "out": str(out), "err": str(err)}
        code = answer(program, json.dumps(asked))
        return subprocess.CompletedProcess([program, *words], code, out.read_text(), err.read_text())


def answer(program: str, request: str) -> int:
    """Send a request to the process that forks, and return the exit code of the command that it ran."""
    server = forking(program)
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(request + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], SECONDS)[0]:
        forking.cache_clear()
        server.kill()
        raise subprocess.TimeoutExpired(request, SECONDS)
    return int(server.stdout.readline())


@functools.cache
def forking(program: str) -> subprocess.Popen[str]:
    """Return the process that forks itself for each command. All tests in one pytest process share it."""
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.forked", program],
        cwd=ROOT, env=clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    atexit.register(server.communicate)  # the server ends when its input closes
    return server


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a failed command printed. Assert exit code 2 and no traceback."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


def bad_line(folder: Path) -> str:
    """Return the error line about the unusable exercise of ``with_bad``."""
    return (
        f"{folder}/solutions/02_bad/x2_bad.py:64: gather_time: unknown unit 'furlong': "
        "write for instance us, ms, KiB, GB/s, FLOP or token"
    )
