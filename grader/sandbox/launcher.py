"""Holds one sandlock sandbox: starts the worker inside, passes its pipes on, leaves nothing behind.

A process of its own, because the sandbox's supervisor lives in whoever starts it, and because as subreaper it gets, and
kills, whatever escapes from the sandbox's process group. Run as ``launcher.py WRITABLE READABLE PROCESSES THREADS
COMMAND...``, the scratch folder first of what is writable; imports nothing of this package.

Memory is limited by the kernel (RLIMIT_AS) in each process, and the one in which learner code runs can start no other.
A limit of the sandbox, of the same size, would stop none sooner, and its supervisor would be asked whenever one of them
maps memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any

PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
CAP_DAC_READ_SEARCH = 2


def main(writable: list[str], readable: list[str], processes: int, threads: int, command: list[str]) -> int:
    from sandlock import Sandbox
    from sandlock.sandbox import StdioMode

    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    drop_capabilities()
    sandbox = Sandbox(
        fs_readable=readable,
        fs_writable=[*writable, "/dev/null"],
        max_processes=processes,
        no_coredump=True,
        cwd=writable[0],
    )
    process = sandbox.popen(command, stdin=StdioMode.INHERIT, stdout=StdioMode.INHERIT, stderr=StdioMode.INHERIT)

    def stop(signum: int, frame: Any) -> None:
        kill_descendants()
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    if os.getppid() == 1:  # the grader died before we could ask to be told
        stop(0, None)
    os.close(0)
    os.close(1)
    threading.Thread(target=limit_threads, args=(threads,), daemon=True).start()
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(process.wait()), daemon=True)
    waiting.start()
    waiting.join()  # a signal interrupts this, but not the wait itself
    kill_descendants()
    if not results:
        return 1
    return 128 + results[0].signal if results[0].signal else results[0].exit_code


def drop_capabilities() -> None:
    """Root inside the sandbox is nobody special: no clock, no devices, no raw memory, no other people's files.

    Reading is kept, for an interpreter that lies in somebody's home folder; Landlock limits where.
    """
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        if capability != CAP_DAC_READ_SEARCH:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    keep = 1 << CAP_DAC_READ_SEARCH
    sets = (ctypes.c_uint32 * 6)(keep, keep, 0, 0, 0, 0)  # effective, permitted, inheritable; low and high words
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "cannot drop capabilities")


def limit_threads(most: int) -> None:
    """Kill whatever starts threads without end: nothing else counts them, and a machine has only so many."""
    while True:
        for pid in descendants():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as status:
                threads = next((int(line.split()[1]) for line in status if line.startswith("Threads:")), 0)
                if threads > most:
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)


def kill_descendants() -> None:
    """Kill until no child is left; grandchildren come to us when their parents die."""
    for _ in range(2000):
        for child in children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def children(pid: int | str = "self") -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as listing:
                found += [int(n) for n in listing.read().split()]
    return found


def descendants() -> list[int]:
    found, todo = [], children()
    while todo:
        found.append(todo.pop())
        todo += children(found[-1])
    return found


if __name__ == "__main__":
    writable, readable, *numbers = sys.argv[1:5]
    sys.exit(main(writable.split(":"), readable.split(":"), *map(int, numbers), command=sys.argv[5:]))
