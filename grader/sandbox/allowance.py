"""Limits on the CPU time and idle time of a process. Waiting for a core, a disk or the sandbox does not count."""

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
    """The grader or the sandbox's launcher has ended, so this process and its child must end, too."""


def backstop(seconds: float) -> float:
    """Return a limit on wall time, in seconds, that allows ``seconds`` of CPU time even on a busy machine."""
    return 10 * seconds + 10


class IdleTime:
    """The seconds in which no thread of a process runs or waits for a core, a disk or the sandbox.

    ``look`` samples at random moments whether the process is asleep. A process cannot predict these moments, so it
    cannot wake up only for the samples. Each sample estimates the idle time since the previous sample: (wall time - CPU
    time of the process) times the share of the sample in which the process slept.

    Args:
        asleep: a function that watches a process for a short time, and returns the share of this time, 0 to 1, in which
            the process slept.

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
        """Seconds until the next sample."""
        return max(0.0, self._due - time.monotonic())

    def look(self) -> None:
        """Take a sample if ``due_in`` is 0."""
        now = time.monotonic()
        if now < self._due:
            return
        cpu = cpu_seconds(self.pid)
        unused = now - self._last - (cpu - self._cpu)
        if unused > 0 and now - self._last <= LONGEST:
            self.seconds += unused * self._asleep(self.pid)
        self._last, self._cpu, self._due = now, cpu, now + moment()


class Allowance:
    """A limit on the CPU time plus the idle time of a process, counted from the construction of this object."""

    def __init__(self, idle: IdleTime, seconds: float) -> None:
        self._idle, self._seconds, self._idle_before = idle, seconds, idle.seconds
        self._began, self._cpu = time.monotonic(), cpu_seconds(idle.pid)

    @property
    def over(self) -> bool:
        self._idle.look()
        return self.used > self._seconds or time.monotonic() - self._began > backstop(self._seconds)

    @property
    def used(self) -> float:
        """The process's CPU seconds plus idle seconds since the construction of this object."""
        return max(0.0, cpu_seconds(self._idle.pid) - self._cpu) + self.idle

    @property
    def idle(self) -> float:
        """The process's idle seconds since the construction of this object, up to the last sample."""
        return self._idle.seconds - self._idle_before


def moment() -> float:
    """Return a random number of seconds until the next sample of idle time, on average ``LOOK_SECONDS``.

    The kernel draws the number. Learner code could predict Python's random generator, because a forked child inherits
    the generator's state.
    """
    return 2 * LOOK_SECONDS * int.from_bytes(os.urandom(2)) / 0xFFFF


def share_reader(folder: str) -> Callable[[int], float]:
    """Return a function like ``share_asleep`` that also works in a sandlock sandbox.

    A process in a sandlock sandbox cannot read the states of threads. There, the returned function asks the launcher
    (``launcher.py``), which runs outside the sandbox, through two pipes in ``folder``. It raises AloneError if the
    launcher has ended. ``share_reader`` deletes the pipes' paths, so learner code cannot open the pipes.
    """
    paths = [os.path.join(folder, name) for name in PIPES]
    if not all(os.path.exists(path) for path in paths):
        return share_asleep
    # Only the launcher holds the other ends of these pipes, so a read returns no bytes if the launcher dies.
    requests, results = (os.open(path, mode) for path, mode in zip(paths, (os.O_WRONLY, os.O_RDONLY), strict=True))
    for path in paths:
        os.unlink(path)

    def ask(pid: int) -> float:
        with contextlib.suppress(BrokenPipeError):
            os.write(requests, PID.pack(pid))
        if not (answer := os.read(results, SHARE.size)):
            raise AloneError
        return SHARE.unpack(answer)[0]

    return ask
