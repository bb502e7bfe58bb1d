"""List the system calls that confined processes make: the measurement behind ``grader/sandbox/calls.py``.

    python bench/system_calls.py [--quick] COMMAND...
    python bench/system_calls.py .venv/bin/shardlings verify --no-store -j 1 --isolation sandlock

Needs ``strace``. The command and all its processes run under it. A process counts from the moment at which it installs
its filter: as ``trace`` if it runs learner code, as ``run`` if it runs programs. For calls whose arguments decide, the
table names these arguments. A call that fails shows its errors, so that a call which the filter refuses is found.
``--quick`` leaves out the calls that make most of the time, such as ``futex`` and ``read``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

FREQUENT = "futex,read,write,mmap,munmap,madvise,mprotect,close,lseek,clock_nanosleep,sched_yield,getrusage"
LINE = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)(?:\((.*)| resumed>(.*))$")
RESULT = re.compile(r"\) += (-?\d+|\?)(?: (E[A-Z]+\d*))?[^=]*$")
STARTS = ("clone", "clone3", "fork", "vfork")


def _flags(at: int) -> Callable[[list[str]], str]:
    return lambda arguments: arguments[at] if at < len(arguments) else "?"


# The arguments that decide whether a call is allowed.
DECIDING: dict[str, Callable[[list[str]], str]] = {
    "fcntl": _flags(1), "ioctl": _flags(1), "prctl": _flags(0), "arch_prctl": _flags(0), "futex": _flags(1),
    "open": _flags(1), "openat": _flags(2), "mmap": lambda a: f"{a[2]} {a[3]}", "mprotect": _flags(2),
    "madvise": _flags(2), "socket": ", ".join, "socketpair": ", ".join, "setsockopt": ", ".join, "kill": _flags(1),
    "tgkill": _flags(2), "prlimit64": lambda a: f"{'self' if a[0] == '0' else 'pid'} {a[1]} {'set' if a[2] != 'NULL' else 'get'}",
    "clone": lambda a: next((x for x in a if "flags=" in x), a[0]), "membarrier": _flags(0), "getrandom": _flags(2),
    "rt_sigaction": lambda a: f"{a[0]} {'set' if a[1] != 'NULL' else 'get'}", "setitimer": _flags(0), "dup3": _flags(2),
    "pipe2": _flags(1), "eventfd2": ", ".join, "memfd_create": ", ".join, "clock_gettime": lambda a: re.sub(r"\d+", "N", a[0]),
    "fallocate": _flags(1), "fadvise64": _flags(3), "set_mempolicy": _flags(0), "mremap": _flags(3),
}  # fmt: skip


@dataclass
class Thread:
    """Calls of one thread in stretches: a new stretch begins with a new program and with a filter."""

    stretches: list[tuple[str, Counter[str]]] = field(default_factory=lambda: [("", Counter())])
    parent: tuple[int, int] | None = None


class Reading:
    """What strace writes, by thread.

    Attributes:
        threads: by number. Later threads inherit the role of the stretch in which their parent started them.
    """

    def __init__(self) -> None:
        self.threads: dict[int, Thread] = defaultdict(Thread)
        self._open: dict[tuple[int, str], tuple[str, int]] = {}  # calls that have not returned, and their stretch
        self._program: dict[int, str] = {}

    def take(self, line: str) -> None:
        if not (found := LINE.match(line)):
            return
        pid, call, rest, resumed = int(found[1]), found[2], found[3], found[4]
        thread = self.threads[pid]
        if resumed is None and rest.endswith("<unfinished ...>"):
            self._open[pid, call] = rest, len(thread.stretches) - 1
            return
        if resumed is None:
            arguments, stretch = rest, len(thread.stretches) - 1
        else:
            before, stretch = self._open.pop((pid, call), ("", len(thread.stretches) - 1))
            arguments, rest = before.replace("<unfinished ...>", "") + resumed, resumed
        self._count(pid, call, arguments, RESULT.search(rest), stretch)

    def _count(self, pid: int, call: str, arguments: str, result: re.Match[str] | None, stretch: int) -> None:
        thread = self.threads[pid]
        listed = split(arguments[: result.start()] if result and result.start() <= len(arguments) else arguments)
        if result is not None:
            listed = split(RESULT.sub("", arguments))
        told = call
        if call in DECIDING and listed:
            told += " " + DECIDING[call](listed)
        error = result[2] if result else None
        thread.stretches[stretch][1][told + (f" -> {error}" if error else "")] += 1
        if call == "execve" and not error:
            thread.stretches.append((f"{started_role(arguments)} unconfined", Counter()))
        elif "SECCOMP_SET_MODE_FILTER" in arguments or "PR_SET_SECCOMP" in arguments:
            thread.stretches.append(("confined", Counter()))
        elif call in STARTS and result and not error and result[1].isdigit():
            self.threads[int(result[1])].parent = pid, stretch

    def role(self, pid: int, stretch: int) -> str:
        """Return ``trace`` or ``run`` if the thread was confined in this stretch, or the same with ``unconfined``."""
        own = self.threads[pid].stretches[stretch][0]
        if own and own != "confined":
            return own
        if stretch > 0:
            before = self.role(pid, stretch - 1)
        else:
            parent = self.threads[pid].parent
            before = self.role(*parent) if parent else ""
        return before.removesuffix(" unconfined") if own else before

    def by_role(self) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for pid, thread in list(self.threads.items()):
            for at, (_, calls) in enumerate(thread.stretches):
                role = self.role(pid, at)
                if role in ("trace", "run"):
                    found[role] += calls
        return found


def started_role(arguments: str) -> str:
    """Return the role of a worker that an ``execve`` starts; empty for any other program."""
    if "start.py" not in arguments or "launcher.py" in arguments:
        return ""
    return next((role for role in ("trace", "run") if f'"{role}"' in arguments), "")


def split(arguments: str) -> list[str]:
    """Split at the commas that are in no bracket and no string."""
    found, depth, quoted, part = [], 0, False, ""
    for at, sign in enumerate(arguments):
        if sign == '"' and arguments[at - 1 : at] != "\\":
            quoted = not quoted
        if not quoted:
            depth += (sign in "[{(") - (sign in "]})")
        if sign == "," and not depth and not quoted:
            found.append(part.strip())
            part = ""
        else:
            part += sign
    return [*found, part.strip()]


def read(lines: Iterable[str]) -> dict[str, Counter[str]]:
    reading = Reading()
    for line in lines:
        reading.take(line.rstrip("\n"))
    return reading.by_role()


def measured(command: list[str], quick: bool) -> dict[str, Counter[str]]:
    """Run a command under strace and return the calls of its confined processes, by role."""
    which = ["--seccomp-bpf", "-e", f"trace=!{FREQUENT}"] if quick else []
    strace = ["strace", "-f", "-q", "-s", "80", "-o", "|cat >&3", *which, *command]
    with subprocess.Popen(["bash", "-c", 'exec 3>&1 1>&2; exec "$@"', "-", *strace], stdout=subprocess.PIPE, text=True,
                          errors="replace") as running:  # fmt: skip
        assert running.stdout is not None
        return read(running.stdout)


def rows(found: dict[str, Counter[str]]) -> Iterator[str]:
    for told in sorted({told for calls in found.values() for told in calls}):
        yield f"{found['trace'][told]:9} {found['run'][told]:9}  {told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    found = defaultdict(Counter, measured(args.command, args.quick))
    print("    trace       run  call", *rows(found), sep="\n")
    sys.exit(not any(found.values()))


if __name__ == "__main__":
    main()
