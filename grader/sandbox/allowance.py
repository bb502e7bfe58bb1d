"""The time that a process may use: CPU time and sleep. Time spent waiting for a core does not count."""

from __future__ import annotations

import os
import time

WINDOW, AWAKE = 1.0, 0.005
"""A process sleeps if it gets less than ``AWAKE`` CPU seconds in ``WINDOW`` seconds; even one of 100 gets more."""
NICE_WINDOW = 5.0
"""The longest window in seconds, for a process under ``nice``, which gets about 4 ms a second beside 3 others."""


def backstop(seconds: float) -> float:
    """Return a wall time in which a process gets this much CPU time even on a busy machine."""
    return 10 * seconds + 10


class Allowance:
    """A limit on the seconds that a process uses from now on: its CPU time, and the windows in which it sleeps.

    Time in which the process waits for a core does not count, because other load on the machine causes it. Read
    ``over`` at least every half second: if a window gets too long, it does not count as sleep.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid, self._seconds, self._slept, self._length = pid, seconds, 0.0, window()
        self._began = self._window = time.monotonic()
        self._cpu = self._before = cpu_seconds(pid)

    @property
    def over(self) -> bool:
        now, cpu = time.monotonic(), cpu_seconds(self._pid)
        if (length := now - self._window) >= self._length:
            if cpu - self._before < AWAKE and length < 1.5 * self._length:
                self._slept += length
            self._window, self._before = now, cpu
        return cpu - self._cpu + self._slept > self._seconds or now - self._began > backstop(self._seconds)

    @property
    def used(self) -> float:
        """CPU seconds used so far, plus the seconds slept up to the last read of ``over``."""
        return max(0.0, cpu_seconds(self._pid) - self._cpu) + self._slept


def window() -> float:
    """Return the length of a window in seconds. It is longer under ``nice``, where a process gets less of a core."""
    try:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
    except (OSError, AttributeError):
        nice = 0
    return min(NICE_WINDOW, WINDOW * 1.25 ** max(0, nice))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and all its threads, from its Linux clock.

    Return 0 if the process has ended or the system has no such clock.
    """
    try:
        return time.clock_gettime(-8 * (pid + 1) + 2)
    except (OSError, AttributeError):
        return 0.0
