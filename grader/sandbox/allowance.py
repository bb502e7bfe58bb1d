"""Limits on the CPU time and idle time of a process. Time spent waiting for a core or a disk does not count."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from grader.sandbox.launcher import PID, PIPES, SHARE, cpu_seconds, share_asleep
from grader.wire.limits import LOOK_SECONDS

LONGEST = 0.5
"""Longest time in seconds between two samples of ``IdleTime``. A longer time does not count as idle time, because the
machine was suspended or the grader read no answers."""


class AloneError(Exception):
    """The grader or the sandbox's launcher has ended, so the keeper process and its child have to end."""


def backstop(seconds: float) -> float:
    """Return a limit on wall time that leaves a process ``seconds`` of CPU time even on a busy machine."""
    return 10 * seconds + 10


class IdleTime:
    """The seconds in which no thread of a process runs or waits for a core or a disk.

    ``look`` samples at random moments whether the process is asleep. A process cannot predict these moments, so it
    cannot wake up only for them. The time since the previous sample, minus the CPU time that the process used in it, is
    multiplied by the share of the sample in which the process was asleep. The product counts as idle time.

    Args:
        asleep: a function that watches a process for a short time, and returns the share of this time, 0 to 1, in which
            the process slept. An example is ``share_asleep``.

    Attributes:
        pid: number of the process.
        seconds: idle time up to the last sample.
    """

    def __init__(self, pid: int, asleep: Callable[[int], float] = share_asleep) -> None:
        self.pid, self.seconds, self._asleep = pid, 0.0, asleep
        self._last, self._cpu = time.monotonic(), cpu_seconds(pid)
        self._due = self._last + moment()

    @property
    def due_in(self) -> float:
        """Seconds until the next sample is due."""
        return max(0.0, self._due - time.monotonic())

    def look(self) -> None:
        """Take a sample if one is due. Call this method again within ``due_in`` seconds."""
        now = time.monotonic()
        if now < self._due:
            return
        cpu = cpu_seconds(self.pid)
        unused = now - self._last - (cpu - self._cpu)
        if unused > 0 and now - self._last <= LONGEST:
            self.seconds += unused * self._asleep(self.pid)
        self._last, self._cpu, self._due = now, cpu, now + moment()


class Allowance:
    """A limit on the CPU time plus the idle time of a process, counted from the moment when this object is made.

    Time in which the process waits for a core does not count, because other programs on the machine cause the wait.
    """

    def __init__(self, idle: IdleTime, seconds: float) -> None:
        self._idle, self._seconds, self._idle_before = idle, seconds, idle.seconds
        self._began, self._cpu = time.monotonic(), cpu_seconds(idle.pid)

    @property
    def over(self) -> bool:
        self._idle.look()
        return self.used > self._seconds or time.monotonic() - self._began > backstop(self._seconds)

    @property
    def used(self) -> float:
        """CPU seconds used so far, plus the idle seconds up to the last sample."""
        return max(0.0, cpu_seconds(self._idle.pid) - self._cpu) + self.idle

    @property
    def idle(self) -> float:
        """The idle seconds up to the last sample."""
        return self._idle.seconds - self._idle_before


def moment() -> float:
    """Return a random number of seconds until the next sample of idle time, on average ``LOOK_SECONDS``.

    The kernel draws the number, because a child could predict Python's random generator, whose state it inherits.
    """
    return 2 * LOOK_SECONDS * int.from_bytes(os.urandom(2)) / 0xFFFF


def share_reader(folder: str) -> Callable[[int], float]:
    """Return ``share_asleep``; in a sandlock sandbox, return a function that gets its results from outside the sandbox.

    A process in a sandlock sandbox cannot read the states of threads. So in such a sandbox the returned function asks
    the sandbox's launcher (``launcher.py``), a process outside the sandbox, through two pipes in ``folder``.
    ``share_reader`` itself deletes the pipes' names in ``folder``, so that learner code cannot open the pipes. The
    returned function raises AloneError if the launcher has ended.
    """
    paths = [os.path.join(folder, name) for name in PIPES]
    if not all(os.path.exists(path) for path in paths):
        return share_asleep
    # Only the launcher holds the other ends of these pipes, so a read returns no bytes if the launcher dies.
    asked, told = (os.open(path, mode) for path, mode in zip(paths, (os.O_WRONLY, os.O_RDONLY), strict=True))
    for path in paths:
        os.unlink(path)

    def ask(pid: int) -> float:
        with contextlib.suppress(BrokenPipeError):
            os.write(asked, PID.pack(pid))
        if not (answer := os.read(told, SHARE.size)):
            raise AloneError
        return SHARE.unpack(answer)[0]

    return ask
