"""Allowances count CPU time and idle time, but not waiting for a core."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grader.sandbox.allowance import (
    Allowance,
    AloneError,
    IdleTime,
    backstop,
    cpu_seconds,
    share_asleep,
    share_reader,
)
from grader.sandbox.launcher import thread_state, waits_for_sandbox
from grader.sandbox.limits import Limits
from grader.sandbox.worker import Worker
from grader.wire.messages import FunctionAsk
from tests.commands import ROOT
from tests.sampled import sampled
from tests.sandbox.submissions import WORKING


class Machine:
    """A simulated process and a simulated clock. The test advances both."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cpu, self.now = 3.0, 100.0
        monkeypatch.setattr("grader.sandbox.allowance.cpu_seconds", lambda pid: self.cpu)
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def allows(self, seconds: float, asleep: Callable[[float], bool]) -> Allowance:
        """Return an allowance for a process that sleeps at the times for which ``asleep`` is true."""
        return Allowance(IdleTime(1, lambda pid: float(asleep(self.now))), seconds)

    def ended_after(self, allowed: Allowance, share: float, look: float = 0.02) -> float:
        """Return the wall seconds until the allowance is over, for a process that gets this share of a core."""
        began = self.now
        while not allowed.over and self.now - began < 10_000:
            self.now, self.cpu = self.now + look, self.cpu + share * look
        return self.now - began


def never(now: float) -> bool:
    return False


def always(now: float) -> bool:
    return True


def test_computing_counts_even_with_little_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    assert machine.ended_after(machine.allows(20, never), 1.0) == pytest.approx(20, abs=0.2)
    assert machine.ended_after(machine.allows(20, never), 0.5) == pytest.approx(40, abs=0.4)
    assert machine.ended_after(machine.allows(20, never), 0.001) == pytest.approx(backstop(20), abs=0.2)


@pytest.mark.parametrize("share", [0.0, 0.005, 0.01, 0.05, 0.5])
def test_idle_time_counts_like_cpu_time(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """An allowance of 20 s ends after 20 s of sleep, however much the process computes between two sleeps."""
    machine = Machine(monkeypatch)
    allowed = machine.allows(20, always)
    assert machine.ended_after(allowed, share) == pytest.approx(20, abs=0.5)
    assert allowed.used == pytest.approx(20, abs=0.5)


def test_a_process_that_sleeps_half_the_time_is_charged_for_about_half(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    allowed = machine.allows(20, lambda now: now % 1 < 0.5)
    assert 30 < machine.ended_after(allowed, 0.0) < 55


def test_a_suspended_machine_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    allowed = machine.allows(20, always)
    for _ in range(5):
        machine.now += 30
        assert not allowed.over
    machine.now += backstop(20)
    assert allowed.over


def test_the_cpu_time_of_another_process_is_known() -> None:
    before = time.process_time()
    sum(range(3_000_000))
    assert cpu_seconds(os.getpid()) >= time.process_time() - before > 0
    assert cpu_seconds(1 << 22) == 0.0


@contextmanager
def running(text: str) -> Iterator[int]:
    """Start a Python process with this code. Wait until it prints a line, and yield the process's number."""
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout and process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def waited(pid: int) -> float:
    """Return the seconds for which the main thread of a process was ready to run and had no core."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def watched(pid: int, samples: int) -> tuple[float, float]:
    """Take this many samples of a process. Return its idle seconds, and the wall seconds that the sampling took."""
    idle, began = IdleTime(pid), time.monotonic()
    for _ in range(samples):
        time.sleep(idle.due_in)
        idle.look()
    return idle.seconds, time.monotonic() - began


BEGIN = "import os, select, signal, threading, time; print(1, flush=True)\n"
SLEEPS = {
    "sleep": "time.sleep(1e6)",
    "thread": "one = threading.Thread(target=time.sleep, args=(1e6,)); one.start(); one.join()",
    "lock": "one = threading.Lock(); one.acquire(); one.acquire()",
    "select": "select.select([os.pipe()[0]], [], [])",
    "poll": "one = select.poll(); one.register(os.pipe()[0]); one.poll()",
    "read": "os.read(os.pipe()[0], 1)",
    "stop": "os.kill(os.getpid(), signal.SIGSTOP)",
    "short": "while True: time.sleep(0.01)",
    "many": "[threading.Thread(target=time.sleep, args=(1e6,)).start() for _ in range(300)]",
}
COMPUTES = {
    "alone": "while True: pass",
    "thread": "def go():\n    while True: pass\none = threading.Thread(target=go); one.start(); one.join()",
    "handing": (
        "a, b = threading.Event(), threading.Event()\n"
        "def go(mine, other):\n    while True:\n        mine.wait(); mine.clear(); other.set()\n"
        "threading.Thread(target=go, args=(a, b)).start(); threading.Thread(target=go, args=(b, a)).start(); a.set()"
    ),
    "renamed": "open('/proc/self/comm', 'w').write('x) S (y')\nwhile True: pass",
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("how", sampled(1, SLEEPS))
def test_a_process_is_idle_however_it_waits(how: str) -> None:
    with running(BEGIN + SLEEPS[how]) as pid:
        time.sleep(0.2)
        before = waited(pid)
        idle, wall = watched(pid, 20)
        without_core = waited(pid) - before  # on a busy machine, a process that wakes often waits for a core
    assert idle > 0.7 * (wall - without_core)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("how", sampled(1, COMPUTES))
def test_a_process_that_waits_for_a_core_is_not_idle(how: str) -> None:
    """Four processes share a core, so the watched process waits for the core most of the time."""
    pin = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\n"
    loop = pin + BEGIN + COMPUTES["alone"]
    with running(loop), running(loop), running(loop), running(pin + BEGIN + COMPUTES[how]) as pid:
        cpu = cpu_seconds(pid)
        idle, wall = watched(pid, 20)
        cpu = cpu_seconds(pid) - cpu
    assert idle < 0.1 * wall
    assert cpu < 0.6 * wall


# The process asks a filter about each getppid, as sandlock's filter asks about each open. No process answers.
ASKS = """
import ctypes, os, platform, struct
from grader.sandbox.calls import ALLOW, ANSWER, ARCHITECTURES, EQUAL, LOAD
libc = ctypes.CDLL(None)
number = {"x86_64": 110, "aarch64": 173}[platform.machine()]
lines = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, number), (ANSWER, 0, 0, 0x7FC00000), ALLOW]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines), 8 * len(lines))
about = struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(code))
libc.prctl(38, 1, 0, 0, 0)
assert libc.syscall(ARCHITECTURES[platform.machine()][2], 1, 8, about) > 0  # 8: a listener gets the calls
print(1, flush=True)
libc.getppid()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs seccomp")
def test_a_process_that_waits_for_the_sandbox_is_not_idle() -> None:
    with running(ASKS) as pid:
        while not waits_for_sandbox(pid, str(pid)):
            time.sleep(0.01)
        idle, wall = watched(pid, 5)
        state = thread_state(pid, str(pid))
    assert (idle, state) == (0.0, "S") and wall > 0


def test_a_process_that_has_ended_is_not_idle() -> None:
    assert share_asleep(1 << 22) == 0.0


LAUNCHER = """
import sys
from grader.sandbox.launcher import open_pipes, tell_states
pipes = open_pipes(sys.argv[1])
print("ready", flush=True)
tell_states(*pipes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_killed_launcher_raises_an_error_in_waiting_threads(tmp_path: Path) -> None:
    raised = list[AloneError]()

    def ask() -> None:
        try:
            asleep(os.getpid())
        except AloneError as error:
            raised.append(error)

    words = [sys.executable, "-c", LAUNCHER, str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None and launcher.stdout.readline() == b"ready\n"
        asleep = share_reader(str(tmp_path))
        assert list(tmp_path.iterdir()) == [] and 0 <= asleep(os.getpid()) <= 1
        launcher.kill()
        launcher.wait()
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(60)
    assert len(raised) == 1


SLEEPER = (
    "import time\ndef f():\n    while True:\n        time.sleep({sleep})\n        end = time.process_time() + {burn}\n"
)
SLEEPER += "        while time.process_time() < end: pass\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("burn", [0.0, 0.005, 0.01, 0.05])
@pytest.mark.parametrize("tier", WORKING)
def test_a_sleeper_is_ended_by_its_idle_time(tier: str, burn: float) -> None:
    """Otherwise a sleeper that computes a little each second runs until the limit on wall time."""
    ask: FunctionAsk = {"kind": "function", "task": "f", "cases": [{"dict": []}]}
    text = SLEEPER.format(sleep=1 - burn, burn=burn)
    with Worker("trace", tier, 2, Limits(trace_seconds=1.0, total_seconds=60.0)) as one:
        frames: list[Any] = [f for f, _ in one.trace({"name": "x", "chunks": [["x", text]]}, [ask])]
    assert frames[-1]["end"] == "timeout"
    assert frames[-1]["cpu"] > 3.0, "the limit, and the grace time"
