"""The launcher of one sandlock sandbox, a process that starts the worker inside the sandbox and cleans up.

Usage: ``launcher.py WRITABLE READABLE PROCESSES THREADS BYTES FILES COMMAND...``, where WRITABLE and READABLE are paths
with colons between them. The first path of WRITABLE is the scratch folder. The launcher imports nothing from this
package.

The launcher is separate from the grader for two reasons:
- sandlock's supervisor, which decides about some system calls of the sandbox, runs in the process that starts the
  sandbox.
- The launcher adopts, as a subreaper, processes that leave the sandbox's process group, and kills them.

The kernel limits the memory of each process (RLIMIT_AS). A memory limit for the whole sandbox is unnecessary, because
the process that runs learner code cannot start processes. Such a limit would also be slow, because the supervisor would
handle every system call that maps memory.

All processes of a sandbox may read the same paths. Learner code must not read the files of other processes in
``/proc``, so the worker cannot read them either. It asks the launcher whether a process sleeps. Two pipes in the
scratch folder carry this question and its answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import sys
import threading
import time
from typing import Any

PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
CAP_DAC_READ_SEARCH = 2
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
PIPES = (".requests", ".results")
"""Names of two pipes. The launcher reads process numbers from the first, and writes shares to the second."""
MOUNT_SETATTR, AT_RECURSIVE = 442, 0x8000  # this call has the same number on all architectures
READ_ONLY = struct.pack("=4Q", 0x1, 0, 0, 0)
"""The argument of ``mount_setattr`` that makes mounts read-only.

It has four fields: the attributes to set, the attributes to clear, and two unused fields.
"""
PID, SHARE = struct.Struct("=i"), struct.Struct("=d")
# MS_PRIVATE here includes the flag MS_REC, so that it applies to a mount and to all mounts below it.
MS_NOSUID_NODEV, MS_PRIVATE = 0x2 | 0x4, 0x4000 | 0x40000


def main(
    writable: list[str], readable: list[str], processes: int, threads: int, size: int, files: int, command: list[str]
) -> int:
    """Run a command in a sandbox. Return its exit code, or 128 + the number of the signal that ended it."""
    # Do this before any thread starts, because a process with threads gets no user namespace.
    mount_scratch(writable[0], size, files, read_only=len(writable) == 1)
    from sandlock import Sandbox
    from sandlock.sandbox import StdioMode

    pipes = open_pipes(writable[0])
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
    if os.getppid() == 1:  # the grader died before PR_SET_PDEATHSIG was set
        stop(0, None)
    os.close(0)
    os.close(1)
    threading.Thread(target=limit_threads, args=(threads,), daemon=True).start()
    threading.Thread(target=tell_states, args=pipes, daemon=True).start()
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(process.wait()), daemon=True)
    waiting.start()
    waiting.join()  # signals interrupt this join, but not process.wait
    kill_descendants()
    if not results:
        return 1
    return 128 + results[0].signal if results[0].signal else results[0].exit_code


def mount_scratch(folder: str, size: int, files: int, read_only: bool) -> bool:
    """Mount a file system of limited size on the scratch folder, visible only to this process and its children.

    The mount fails if this process is not root and the machine refuses user namespaces. Then only the keeper process
    (``keeper.py``) limits the size of the folder. Return whether the file system is mounted.

    Args:
        size: the largest number of bytes in the folder.
        files: the largest number of files and folders in the folder.
        read_only: whether all other file systems become read-only. This stops the kernel from storing times of access,
            through which a submission could leave a message for a later submission.
    """
    # Try in a child first, so that this process does not enter a namespace in which mounts fail.
    child = os.fork()
    if child == 0:
        os._exit(0 if _mounted(folder, size, files, read_only) else 1)
    return os.waitpid(child, 0)[1] == 0 and _mounted(folder, size, files, read_only)


def _mounted(folder: str, size: int, files: int, read_only: bool) -> bool:
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
        and (not read_only or libc.syscall(MOUNT_SETATTR, -1, b"/", AT_RECURSIVE, READ_ONLY, len(READ_ONLY)) == 0)
        and libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", MS_NOSUID_NODEV, options) == 0
    )


def drop_capabilities() -> None:
    """Drop root's capabilities inside the sandbox, such as setting the clock or changing other users' files.

    Root keeps the capability to read all files, because the interpreter may be in a user's home folder. Landlock still
    limits which files are readable. A process of another user has only the capabilities that ``mount_scratch`` gave it,
    and loses all of them.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the capability interface; process 0 is this process
    held = (ctypes.c_uint32 * 6)()
    if libc.capget(header, held) != 0:
        raise OSError(ctypes.get_errno(), "cannot read capabilities")
    # Root in a container may lack the capability to read all files. A process can keep only capabilities that it has.
    keep = held[1] & 1 << CAP_DAC_READ_SEARCH if os.geteuid() == 0 else 0
    for capability in range(64):
        if not keep >> capability & 1:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    # The effective, permitted and inheritable sets: first the lower 32 bits of each set, then the higher 32 bits.
    sets = (ctypes.c_uint32 * 6)(keep, keep, 0, 0, 0, 0)
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "cannot drop capabilities")


def open_pipes(folder: str) -> tuple[int, int]:
    for name in PIPES:
        os.mkfifo(os.path.join(folder, name), 0o600)
    requests, results = (os.open(os.path.join(folder, name), os.O_RDWR) for name in PIPES)
    return requests, results


def tell_states(requests: int, results: int) -> None:
    """Read process numbers from the pipe ``requests``. Write results of ``share_asleep`` to the pipe ``results``."""
    while True:
        os.write(results, SHARE.pack(share_asleep(*PID.unpack(os.read(requests, PID.size)))))


def share_asleep(pid: int) -> float:
    """Return the share of this call's time (0 to 1) in which a process slept, judged by the states of its threads.

    Return 0 if a thread runs or waits for a core, a disk or the sandbox, or if the system shows no threads. Otherwise
    return 1 - c / d, where c is the CPU time of the process during this call, and d is the duration of this call. The
    CPU time reveals threads that wake each other in turn, although each may look asleep when its state is read.
    """
    began, cpu = time.monotonic(), cpu_seconds(pid)
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return 0.0
    if any(thread_state(pid, thread) in "RD" or waits_for_sandbox(pid, thread) for thread in threads):
        return 0.0
    return max(0.0, 1 - (cpu_seconds(pid) - cpu) / max(time.monotonic() - began, 1e-9))


def thread_state(pid: int, thread: str) -> str:
    """Return the letter that Linux shows for a thread's state, or X if the thread has ended."""
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
            return chr(file.read().rpartition(b") ")[2][0])  # the thread's name, in parentheses, may contain any text
    except (OSError, IndexError):
        return "X"


def waits_for_sandbox(pid: int, thread: str) -> bool:
    """Return True if a thread made a system call and waits until the sandbox allows the call.

    The process that allows the calls waits for a core, too. So on a busy machine, this can take a second.
    """
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/wchan", "rb") as file:
        return file.read().startswith(b"seccomp_do_user_notification")
    return False


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and all its threads; 0 if the process has ended or the time cannot be read."""
    try:
        return time.clock_gettime(-8 * (pid + 1) + 2)
    except (OSError, AttributeError):
        return 0.0


def limit_threads(most: int) -> None:
    """Kill every descendant with more than ``most`` threads, because nothing else in the sandbox limits threads."""
    while True:
        for pid in descendants():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as status:
                threads = next((int(line.split()[1]) for line in status if line.startswith("Threads:")), 0)
                if threads > most:
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)


def kill_descendants() -> None:
    """Kill children until none is left. When a child dies, its own children become children of this process."""
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
