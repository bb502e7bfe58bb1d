"""Ctrl-C in any command gives one sentence and exit code 130, and leaves no half-written file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from grader.stopping import SENTENCE, STOPPED
from tests.commands import ROOT
from tests.made_up import made_up

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def started(code: str, cwd: Path) -> subprocess.Popen[str]:
    """Start a process in its own process group, as a terminal does.

    The process resets the handler of Ctrl-C, because tests may run in a process that ignores Ctrl-C.
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=cwd, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def ended(process: subprocess.Popen[str], given: str | None = None) -> str:
    """Wait until a process ends, and return its stderr."""
    try:
        return process.communicate(given, timeout=60)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return f"not stopped: {process.communicate()[1]}"


def stopped(process: subprocess.Popen[str]) -> str:
    """Interrupt a process after its first line. Assert the exit code and the sentence, and return stderr."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    said = ended(process)
    assert process.returncode == STOPPED, said
    assert "Traceback" not in said and said.endswith(f"{SENTENCE}\n")
    return said


READY = """
import sys, threading, time
from grader import stopping
def ready(): print("ready", flush=True)
"""


@pytest.mark.parametrize(
    "then",
    [
        "stopping.stop_at_once(); ready(); time.sleep(60)",
        """
        stopping.stop_in_order()
        try:
            ready(); time.sleep(60)
        except KeyboardInterrupt:
            assert stopping.asked(); stopping.stop()
        """,
        """
        stopping.stop_in_order()
        class Dropped:
            def __del__(self): ready(); time.sleep(60)
        try:
            one = Dropped(); del one; time.sleep(60)
        except KeyboardInterrupt: stopping.stop()
        """,
        """
        stopping.stop_in_order()
        open("slow.py", "w").write("import time; print('ready', flush=True); time.sleep(1); done = 1")
        sys.path.insert(0, "")
        try:
            import slow; time.sleep(60)
        except KeyboardInterrupt:
            assert sys.modules["slow"].done; stopping.stop()
        """,
    ],
    ids=["at_once", "in_order", "dropped_in_a_callback", "in_an_import"],
)
def test_a_command_stops_with_one_sentence_wherever_it_is(tmp_path: Path, then: str) -> None:
    assert stopped(started(READY + textwrap.dedent(then), tmp_path)) == f"{SENTENCE}\n"


def test_ignored_interruptions_stay_ignored(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)" + READY
    process = started(f"{code}stopping.stop_at_once(); ready(); sys.stdin.readline()", tmp_path)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    ended(process, "\n")
    assert process.returncode == 0


COMMANDS = {
    "build": ["build"],
    "publish": ["publish", "--students", "given"],
    "verify": ["verify"],
    "mutants": ["mutants"],
    "check": ["check", "--work", "work"],
    "grade": ["grade", "work", "--out", "graded", "--isolation", "none"],
    "export": ["export", "x.zip", "--to", "gradescope"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_long_command_is_stopped_with_a_sentence(tmp_path: Path, name: str) -> None:
    """All commands execute the course's exercise file. In this test the file sleeps, and Ctrl-C arrives meanwhile."""
    made_up(tmp_path, "import math\n", "import math, os, time\nopen('executed', 'w').close()\ntime.sleep(300)\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "x1_gather.py").write_text("gather_time = 1\n")
    before = {p.relative_to(tmp_path) for p in tmp_path.rglob("*")}
    code = f"import sys; sys.argv = ['shardlings', *{COMMANDS[name]!r}]\nfrom grader.__main__ import main\nmain()"
    process = started(code, tmp_path)
    while not (tmp_path / "executed").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    said = ended(process)
    assert (process.returncode, said.splitlines()[-1], "Traceback" in said) == (STOPPED, SENTENCE, False)
    left = {p.relative_to(tmp_path) for p in tmp_path.rglob("*")} - before - {Path("executed")}
    # ``grade`` leaves the folder ``graded``, in which it can continue. The file x.zip was complete before Ctrl-C.
    whole = {"graded", "x.zip"}
    assert not [p for p in left if "__pycache__" not in p.parts and p.parts[0] not in whole]
