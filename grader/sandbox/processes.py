"""Start and end the processes of workers."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import IO

from grader.sandbox import needs
from grader.sandbox.limits import Limits
from grader.sandbox.scratch import empty
from grader.sandbox.temporary import home, remove_own
from grader.sandbox.tiers import NO_EXTRA, Extra, command, environment

# A sandbox's launcher dies when the *thread* that started it ends (PR_SET_PDEATHSIG). The only thread of this executor
# lives as long as the process.
_starter = ThreadPoolExecutor(1, thread_name_prefix="starter")
# Processes that ``begin_ahead`` started and ``take`` has not returned yet. A key has the number of the process that
# started them, and the arguments of ``_begin``.
_ahead: dict[tuple[object, ...], list[Future[WorkerProcess]]] = {}
# Living processes. The first part of a key is the number of the process that started them, because forked processes
# inherit this table.
_living: dict[tuple[int, int], WorkerProcess] = {}
_lock = Lock()


@dataclass(frozen=True)
class WorkerProcess:
    """A worker's process, the tier (kind) of its sandbox, its writable folder, and the file for its standard error."""

    process: subprocess.Popen[bytes]
    tier: str
    scratch: str
    stderr: IO[bytes]


def begin_ahead(roles: Iterable[str], tier: str, devices: int, limits: Limits) -> None:
    """Start a worker process for each role, without waiting. A later call of ``take`` returns the process.

    Importing JAX takes a second, so a command that needs a worker starts it before the command's own imports.
    """
    for role in roles:
        with _lock:
            begun = _starter.submit(_begin, role, tier, devices, limits, NO_EXTRA)
            _ahead.setdefault(_alike(role, tier, devices, limits, NO_EXTRA), []).append(begun)


def take(role: str, tier: str, devices: int, limits: Limits, extra: Extra) -> WorkerProcess:
    """Return an unused process for these arguments: a process that ``begin_ahead`` started, else a new process."""
    with _lock:
        ahead = _ahead.get(_alike(role, tier, devices, limits, extra))
        begun = ahead.pop() if ahead else _starter.submit(_begin, role, tier, devices, limits, extra)
    return begun.result()


def _alike(role: str, tier: str, devices: int, limits: Limits, extra: Extra) -> tuple[object, ...]:
    return os.getpid(), role, tier, devices, limits.model_dump_json(), extra


def _begin(role: str, tier: str, devices: int, limits: Limits, extra: Extra) -> WorkerProcess:
    scratch = tempfile.mkdtemp(dir=home())
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed in end()
    settings = environment(devices, limits.stuck_seconds, extra)
    process = subprocess.Popen(
        command(tier, role, scratch, limits.memory_mib, extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=settings | {"HOME": scratch, "TMPDIR": scratch, "PYTHONPATH": needs.python_path()},
        cwd=scratch,
        start_new_session=True,
    )
    begun = _living[os.getpid(), process.pid] = WorkerProcess(process, tier, scratch, stderr)
    return begun


def stop(begun: WorkerProcess) -> None:
    """Make a process end with all its descendants, without waiting for the end. Any thread may call this function."""
    if begun.tier == "sandlock":  # the process is the launcher, which ends its sandbox, orphans included
        begun.process.terminate()
    else:
        _kill(begun)


def _kill(begun: WorkerProcess) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(begun.process.pid, signal.SIGKILL)


def end(begun: WorkerProcess) -> int:
    """End a process with all its descendants. Return its exit code."""
    process = begun.process
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    stop(begun)
    if begun.tier == "sandlock":
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        _kill(begun)
    code = process.wait()
    begun.stderr.close()
    empty(begun.scratch)
    with contextlib.suppress(OSError):
        os.rmdir(begun.scratch)
    _living.pop((os.getpid(), process.pid), None)
    return code


@atexit.register
def end_all() -> None:
    """End all remaining worker processes at exit, and remove this process's temporary folder."""
    with _lock:
        waiting = [begun for (owner, *_), ahead in _ahead.items() if owner == os.getpid() for begun in ahead]
        _ahead.clear()
    for begun in waiting:
        begun.exception()  # waits until the process has started
    for (owner, _), begun in list(_living.items()):
        if owner == os.getpid():
            end(begun)
    remove_own()
