"""CPU time that a process may use, and the wall time that ends what sleeps."""

from __future__ import annotations

import time


def backstop(seconds: float) -> float:
    """Seconds of wall time in which anything has its seconds of CPU time, on a machine that others load as well."""
    return 10 * seconds + 10


class Allowance:
    """CPU seconds that a process of ours may use from now on. Wall time only ends what sleeps, or waits for ever."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid, self._cpu, self._wall = pid, cpu_seconds(pid) + seconds, time.monotonic() + backstop(seconds)

    @property
    def over(self) -> bool:
        return cpu_seconds(self._pid) > self._cpu or time.monotonic() > self._wall


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all its threads, by the clock that Linux has for each; else, or when it is gone, 0."""
    try:
        return time.clock_gettime(-8 * (pid + 1) + 2)
    except (OSError, AttributeError):
        return 0.0
