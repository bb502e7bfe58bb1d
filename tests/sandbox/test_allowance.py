"""Allowances are of CPU time."""

from __future__ import annotations

import os
import time

import pytest

from grader.sandbox.allowance import Allowance, backstop, cpu_seconds


def test_allowances_count_the_time_of_the_process_and_not_of_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    used, now = [0.0], [100.0]
    monkeypatch.setattr("grader.sandbox.allowance.cpu_seconds", lambda pid: used[0])
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    allowed = Allowance(1, 2.0)
    now[0] += backstop(2.0) - 0.1
    assert not allowed.over
    used[0] = 2.1
    assert allowed.over
    used[0], now[0] = 0.0, now[0] + 0.2
    assert allowed.over


def test_the_cpu_time_of_another_process_is_known() -> None:
    before = time.process_time()
    sum(range(3_000_000))
    assert cpu_seconds(os.getpid()) >= time.process_time() - before > 0
    assert cpu_seconds(1 << 22) == 0.0
