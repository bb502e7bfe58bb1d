"""Allowances count CPU time and sleep, but not waiting for a core."""

from __future__ import annotations

import os
import time

import pytest

from grader.sandbox.allowance import Allowance, backstop, cpu_seconds


class Machine:
    """A process and a clock that the test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nice: int = 0) -> None:
        monkeypatch.setattr("os.getpriority", lambda which, who: nice)
        self.cpu, self.now = 3.0, 100.0
        monkeypatch.setattr("grader.sandbox.allowance.cpu_seconds", lambda pid: self.cpu)
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def ended_after(self, allowed: Allowance, share: float, look: float = 0.1) -> float:
        """Return the wall seconds until the allowance is over, for a process that gets this share of a core."""
        began = self.now
        while not allowed.over and self.now - began < 10_000:
            self.now, self.cpu = self.now + look, self.cpu + share * look
        return self.now - began


def test_computing_counts_however_little_of_a_core_the_process_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Machine(monkeypatch).ended_after(Allowance(1, 20.0), 1.0) == pytest.approx(20, abs=0.2)
    assert Machine(monkeypatch).ended_after(Allowance(1, 20.0), 0.5) == pytest.approx(40, abs=0.4)
    assert Machine(monkeypatch).ended_after(Allowance(1, 20.0), 0.02) == pytest.approx(backstop(20), abs=0.2)


@pytest.mark.parametrize("share", [0.0, 0.003])
def test_sleeping_counts_as_computing_does(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    machine = Machine(monkeypatch)
    allowed = Allowance(1, 20.0)
    assert machine.ended_after(allowed, share) == pytest.approx(21, abs=1.2)
    assert allowed.used == pytest.approx(21, abs=1.2)


def test_under_nice_computing_beside_others_is_no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured with ``nice -n 19`` beside three others on a core: most windows of a second looked like sleep."""
    machine = Machine(monkeypatch, nice=19)
    allowed = Allowance(1, 20.0)
    for milliseconds in 6 * [4.0, 4.6, 0.0, 4.0, 1.7, 3.5, 4.0, 0.4, 4.0, 4.6]:
        for _ in range(10):
            machine.now, machine.cpu = machine.now + 0.1, machine.cpu + milliseconds / 10_000
            assert not allowed.over
    assert allowed.used < 1
    assert machine.ended_after(Allowance(1, 20.0), 0.0) == pytest.approx(20, abs=5.2)


def test_a_suspended_machine_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    allowed = Allowance(1, 20.0)
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
