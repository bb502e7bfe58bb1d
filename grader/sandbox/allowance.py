"""Time that a process may use: its CPU time and the time that it sleeps, but not the time that it waits for a core."""

from __future__ import annotations

import time

WINDOW, AWAKE = 1.0, 0.005
"""A process with less CPU time than ``AWAKE`` in ``WINDOW`` seconds slept. With 100 others on its core it has more."""


def backstop(seconds: float) -> float:
    """Return a wall time in which a process gets its seconds of CPU time even on a busy machine."""
    return 10 * seconds + 10


class Allowance:
    """Seconds that a process may use from now on: its CPU time, and the windows in which it slept.

    Waiting for a core does not count, because it depends on the machine's other load. Read ``over`` at least every half
    second: a longer window is the machine's doing and does not count either.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid, self._seconds, self._slept = pid, seconds, 0.0
        self._began = self._window = time.monotonic()
        self._cpu = self._before = cpu_seconds(pid)

    @property
    def over(self) -> bool:
        now, cpu = time.monotonic(), cpu_seconds(self._pid)
        if (length := now - self._window) >= WINDOW:
            if cpu - self._before < AWAKE and length < 1.5 * WINDOW:
                self._slept += length
            self._window, self._before = now, cpu
        return cpu - self._cpu + self._slept > self._seconds or now - self._began > backstop(self._seconds)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process with all its threads by its Linux clock; 0 if there is none or it has ended."""
    try:
        return time.clock_gettime(-8 * (pid + 1) + 2)
    except (OSError, AttributeError):
        return 0.0
