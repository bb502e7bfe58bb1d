"""Bounds on what a submission may take, and on what its processes may leave behind."""

from __future__ import annotations

import time
from dataclasses import dataclass

GRACE = 2.0  # after its limit a task is interrupted; what cannot be is killed so many seconds (of CPU time) later
START_SECONDS = 600.0
GONE_SECONDS = 30.0
LOOK_SECONDS = 0.1
MAX_STDERR = 64 << 10
MAX_ANSWER = 16 << 20
MAX_HEADER = 2 << 20
MAX_STRAY = 1000  # frames that nobody asked for
MAX_SCRATCH = 64 << 20
MAX_SCRATCH_FILES = 1000
MAX_OPEN = 64
MAX_THREADS = 1024


@dataclass(frozen=True)
class Limits:
    """Bounds: seconds of CPU time, MiB.

    ``trace_seconds`` are for loading, and for each task; ``total_seconds`` for all that one submission does, its files
    together; ``run_seconds`` for one program, ``total_run_seconds`` for all programs of one submission.
    """

    trace_seconds: float = 20.0
    total_seconds: float = 300.0
    run_seconds: float = 60.0
    total_run_seconds: float = 180.0
    memory_mib: int = 6144
    file_mib: int = 16

    def as_dict(self) -> dict[str, float]:
        return dict(vars(self))


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
