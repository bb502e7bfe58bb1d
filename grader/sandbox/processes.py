"""Starts the processes of workers, also ahead of who will ask them, and ends them."""

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

from grader.sandbox.limits import Limits
from grader.sandbox.scratch import empty
from grader.sandbox.tiers import NOTHING, Extra, command, environment

# Launchers die with the *thread* that started them (PR_SET_PDEATHSIG): this one lives as long as we do.
_starter = ThreadPoolExecutor(1, thread_name_prefix="starter")
# Begun, and not yet taken; by all that they were begun with.
_ahead: dict[tuple[object, ...], list[Future[WorkerProcess]]] = {}
# All that nobody has ended, by whose they are (a fork has its parent's) and number.
_living: dict[tuple[int, int], WorkerProcess] = {}
_lock = Lock()


@dataclass(frozen=True)
class WorkerProcess:
    """A process, how it is confined, the folder that it may write to, and the file that takes its standard error."""

    process: subprocess.Popen[bytes]
    tier: str
    scratch: str
    stderr: IO[bytes]


def begin_ahead(roles: Iterable[str], tier: str, devices: int, limits: Limits) -> None:
    """Start a process for each role without waiting for it: who soon asks for one like it gets this one.

    It takes a second to import JAX; a command that is going to need it begins before its own imports.
    """
    for role in roles:
        with _lock:
            begun = _starter.submit(_begin, role, tier, devices, limits, NOTHING)
            _ahead.setdefault(_alike(role, tier, devices, limits, NOTHING), []).append(begun)


def take(role: str, tier: str, devices: int, limits: Limits, extra: Extra) -> WorkerProcess:
    """A process that nobody has asked yet."""
    with _lock:
        ahead = _ahead.get(_alike(role, tier, devices, limits, extra))
        begun = ahead.pop() if ahead else _starter.submit(_begin, role, tier, devices, limits, extra)
    return begun.result()


def _alike(role: str, tier: str, devices: int, limits: Limits, extra: Extra) -> tuple[object, ...]:
    return os.getpid(), role, tier, devices, limits.model_dump_json(), extra


def _begin(role: str, tier: str, devices: int, limits: Limits, extra: Extra) -> WorkerProcess:
    scratch = tempfile.mkdtemp(prefix="shardlings-")
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed in end()
    settings = environment(devices, limits.stuck_seconds, extra)
    process = subprocess.Popen(
        command(tier, role, scratch, limits.memory_mib, extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=settings | {"HOME": scratch, "TMPDIR": scratch},
        cwd=scratch,
        start_new_session=True,
    )
    begun = _living[os.getpid(), process.pid] = WorkerProcess(process, tier, scratch, stderr)
    return begun


def end(begun: WorkerProcess) -> int:
    """End a process and all that it started; its exit code."""
    process = begun.process
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    if begun.tier == "sandlock":  # the launcher ends its sandbox, orphans included
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    begun.stderr.close()
    empty(begun.scratch)
    with contextlib.suppress(OSError):
        os.rmdir(begun.scratch)
    _living.pop((os.getpid(), process.pid), None)
    return code


@atexit.register
def end_all() -> None:
    """End those that are left: the command ends, and nobody has taken them, or who had was interrupted."""
    with _lock:
        waiting = [begun for (owner, *_), ahead in _ahead.items() if owner == os.getpid() for begun in ahead]
        _ahead.clear()
    for begun in waiting:
        begun.exception()  # so that it is begun by now
    for (owner, _), begun in list(_living.items()):
        if owner == os.getpid():
            end(begun)
