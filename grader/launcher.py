"""Holds one sandlock sandbox: starts the worker inside, passes its pipes on, leaves nothing behind.

A process of its own, because the sandbox's supervisor lives in whoever starts it, and because as
subreaper it gets, and kills, whatever escapes from the sandbox's process group.
Run as ``launcher.py SCRATCH READABLE MEMORY_MIB COMMAND...``; imports nothing of this package.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(scratch: str, readable: list[str], memory_mib: int, command: list[str]) -> int:
    from sandlock import Sandbox
    from sandlock.sandbox import StdioMode

    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    sandbox = Sandbox(
        fs_readable=readable,
        fs_writable=[scratch, "/dev/null"],
        max_processes=64,
        max_memory=f"{memory_mib}M",
        no_coredump=True,
        cwd=scratch,
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
    result = process.wait()
    kill_descendants()
    return result.exit_code


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


def children() -> list[int]:
    found = []
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as listing:
            found += [int(n) for n in listing.read().split()]
    return found


if __name__ == "__main__":
    scratch, paths, memory, *command = sys.argv[1:]
    sys.exit(main(scratch, paths.split(":"), int(memory), command))
