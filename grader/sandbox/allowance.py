"""Time that a process may use: its CPU time and the time that it sleeps, but not the time that it waits for a core."""

from __future__ import annotations

import os
import time

WINDOW, AWAKE = 1.0, 0.005
"""A process with less CPU time than ``AWAKE`` in ``WINDOW`` seconds slept. With 100 others on its core it has more."""
NICE_WINDOW = 5.0
"""The longest window, under ``nice``: with 3 others on its core, a process then gets about 4 ms a second."""


def backstop(seconds: float) -> float:
    """Return a wall time in which a process gets its seconds of CPU time even on a busy machine."""
    return 10 * seconds + 10


class Allowance:
    """Seconds that a process may use from now on: its CPU time, and the windows in which it slept.

    Waiting for a core does not count, because it depends on the machine's other load. Read ``over`` at least every half
    second: a longer window is the machine's doing and does not count either.
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
        """Seconds used so far, those slept up to the last look."""
        return max(0.0, cpu_seconds(self._pid) - self._cpu) + self._slept


def window() -> float:
    """Return the seconds of a window: each step of ``nice`` takes a fifth of a process's share of a busy core."""
    try:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
    except (OSError, AttributeError):
        nice = 0
    return min(NICE_WINDOW, WINDOW * 1.25 ** max(0, nice))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process with all its threads by its Linux clock; 0 if there is none or it has ended."""
    try:
        return time.clock_gettime(-8 * (pid + 1) + 2)
    except (OSError, AttributeError):
        return 0.0
