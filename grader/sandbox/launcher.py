"""Holds one sandlock sandbox: starts the worker inside, passes its pipes on, leaves nothing behind.

A process of its own, because the sandbox's supervisor lives in whoever starts it, and because as subreaper it gets, and
kills, whatever escapes from the sandbox's process group. Run as ``launcher.py WRITABLE READABLE PROCESSES THREADS
BYTES FILES COMMAND...``, the scratch folder first of what is writable; imports nothing of this package.

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
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_NOSUID_NODEV, MS_PRIVATE = 0x2 | 0x4, 0x4000 | 0x40000  # the second with all mounts below


def main(
    writable: list[str], readable: list[str], processes: int, threads: int, size: int, files: int, command: list[str]
) -> int:
    mount_scratch(writable[0], size, files)  # a process with threads gets no user namespace
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


def mount_scratch(folder: str, size: int, files: int) -> bool:
    """Mount a file system of limited size on the scratch folder, which only this process and its children see.

    A user who is not root needs a user namespace for it, which some machines refuse. There the folder stays as it is,
    and the keeper's looks alone limit it.

    Args:
        size: bytes.
        files: files and folders in it.

    Returns:
        Whether the file system is there.
    """
    child = os.fork()  # a namespace in which nothing can be mounted is of no use: try it in another process
    if child == 0:
        os._exit(0 if _mounted(folder, size, files) else 1)
    return os.waitpid(child, 0)[1] == 0 and _mounted(folder, size, files)


def _mounted(folder: str, size: int, files: int) -> bool:
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.geteuid(), os.getegid()
    try:
        if libc.unshare(CLONE_NEWNS) != 0:
            if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
                return False
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
    except OSError:
        return False
    options = f"size={size},nr_inodes={files},mode=700,uid={user},gid={group}".encode()
    return (
        libc.mount(None, b"/", None, MS_PRIVATE, None) == 0
        and libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", MS_NOSUID_NODEV, options) == 0
    )


def drop_capabilities() -> None:
    """Root inside the sandbox has no powers: no clock, no devices, no raw memory, no files of other users.

    Root keeps reading, for an interpreter in a user's home folder; Landlock limits where. Other users have powers only
    in the namespace of ``mount_scratch``, and lose them all.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    keep = 1 << CAP_DAC_READ_SEARCH if os.geteuid() == 0 else 0
    for capability in range(64):
        if not keep >> capability & 1:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
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
    writable, readable, *numbers = sys.argv[1:7]
    sys.exit(main(writable.split(":"), readable.split(":"), *map(int, numbers), command=sys.argv[7:]))
