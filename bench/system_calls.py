"""List the system calls that Python, NumPy and JAX make over the whole course, to compare with ``sandbox/calls.py``.

    python bench/system_calls.py [--quick] [--students N] [--minutes N] [--isolation TIER] [--only MODULE ...]

The script needs ``strace``. It grades the reference and every alternative of each exercise. By default it uses neither
a sandbox nor a filter, so that no call is refused. With ``--isolation`` it uses this tier's sandbox and filter, and the
table shows the error of each refused call. It counts the calls of two kinds of processes: ``trace``, in which
learner code runs, and ``run``, which compiles and executes programs. In each process, it counts only calls after the
point at which the filter would be installed. If the arguments decide whether a call is allowed, the table shows the
arguments. A star marks calls that ``calls.py`` does not list, and calls that the filter answers in place of the kernel.
The first lines of the output name the versions and the number of programs. ``system_calls.txt`` is the output of an
earlier run.

``--quick`` leaves out the calls that take most of strace's time, such as ``futex`` and ``read``. ``--students`` grades
only the first N students of ``tests/right.py``; the first student hands in every reference. ``--minutes`` grades no
further program after N minutes; the first programs are from all modules. ``--only`` names modules or exercises.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

from grader.batch.grade import Grader  # noqa: E402
from grader.batch.reporting import versions  # noqa: E402
from grader.course.config import CourseError  # noqa: E402
from grader.course.finding import find_course  # noqa: E402
from grader.intake.reading import read as read_submission  # noqa: E402
from grader.sandbox.calls import CALLS  # noqa: E402
from tests.right import right_class  # noqa: E402

FREQUENT = "futex,read,write,mmap,munmap,madvise,mprotect,close,lseek,clock_nanosleep,sched_yield,getrusage"
LINE = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)(?:\((.*)| resumed>(.*))$")
END = re.compile(r"^(\d+) +\+\+\+ ")
INNER_PID = re.compile(r"\d+ /\* (\d+) in strace's PID NS \*/")  # bwrap numbers the sandbox's processes anew.
RESULT = re.compile(r"\) += (-?\d+|\?)(?: (E[A-Z]+\d*))?[^=]*$")
# For each role of a worker, the last system call before the seccomp filter applies. For "trace" the call is in
# confine.py, which sets limits; for "run" it is in main.py, which hides the process's memory.
BEGINS = {"trace": ("prlimit64", "RLIMIT_NOFILE, {"), "run": ("prctl", "PR_SET_DUMPABLE, SUID_DUMP_DISABLE")}
STARTS = ("clone", "clone3", "fork", "vfork")


def _flags(at: int) -> Callable[[list[str]], str]:
    return lambda arguments: arguments[at] if at < len(arguments) else "?"


# By system call: a function that returns the arguments by which the seccomp filter allows or refuses the call.
DECIDING: dict[str, Callable[[list[str]], str]] = {
    "fcntl": _flags(1), "ioctl": _flags(1), "prctl": _flags(0), "arch_prctl": _flags(0), "futex": _flags(1),
    "open": _flags(1), "openat": _flags(2), "mmap": lambda a: f"{a[2]} {a[3]}", "mprotect": _flags(2),
    "madvise": _flags(2), "socket": ", ".join, "socketpair": ", ".join, "setsockopt": ", ".join, "kill": _flags(1),
    "tgkill": _flags(2), "prlimit64": lambda a: f"{'self' if a[0] == '0' else 'pid'} {a[1]} {'set' if a[2] != 'NULL' else 'get'}",
    "clone": lambda a: next((x for x in a if "flags=" in x), a[0]), "membarrier": _flags(0), "getrandom": _flags(2),
    "rt_sigaction": lambda a: f"{a[0]} {'set' if a[1] != 'NULL' else 'get'}", "setitimer": _flags(0), "dup3": _flags(2),
    "pipe2": _flags(1), "eventfd2": ", ".join, "memfd_create": ", ".join, "clock_gettime": lambda a: re.sub(r"0x\w+.*", "CPU time of a process", a[0]),
    "fallocate": _flags(1), "fadvise64": _flags(3), "set_mempolicy": _flags(0), "mremap": _flags(3),
}  # fmt: skip


@dataclass
class Thread:
    """The calls of one thread. A new stretch of calls begins when the thread starts a program or installs a filter."""

    stretches: list[tuple[str, Counter[str]]] = field(default_factory=lambda: [("", Counter())])
    parent: tuple[Thread, int] | None = None


class Reading:
    """The output of strace, by thread.

    Attributes:
        threads: the living threads by number. A thread starts with its parent's current role.
        ended: the threads that have ended. Later threads may have their numbers.
    """

    def __init__(self) -> None:
        self.threads: dict[int, Thread] = defaultdict(Thread)
        self.ended: list[Thread] = []
        # (thread, call) -> for a call that has not returned: its arguments, and its index in the thread's ``stretches``
        self._open: dict[tuple[int, str], tuple[str, int]] = {}

    def take(self, line: str) -> None:
        if found := END.match(line):
            self.ended.append(self.threads.pop(int(found[1]), Thread()))
            return
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
            thread.stretches.append((f"{started_role(arguments)} before", Counter()))
        elif any(call == name and text in arguments for name, text in BEGINS.values()):
            thread.stretches.append((told, Counter()))
        elif call in STARTS and result and not error and result[1].isdigit():
            self.threads[int(result[1])].parent = thread, stretch

    def role(self, thread: Thread, stretch: int) -> str:
        """Return a thread's role in one stretch of its calls.

        The role ends in " before" if the filter was not yet installed.
        """
        own = thread.stretches[stretch][0]
        if own.endswith(" before"):
            return own
        before = (thread, stretch - 1) if stretch > 0 else thread.parent
        earlier = self.role(*before) if before else ""
        role = earlier.removesuffix(" before")
        return role if role in BEGINS and own.startswith(BEGINS[role][0]) else earlier

    def by_role(self) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for thread in (*self.ended, *self.threads.values()):
            for at, (_, calls) in enumerate(thread.stretches):
                role = self.role(thread, at)
                if role in BEGINS:
                    found[role] += calls
        return found


def started_role(arguments: str) -> str:
    """Return the role of a worker that an ``execve`` starts; empty for any other program."""
    if "start.py" not in arguments or "launcher.py" in arguments:
        return ""
    return next((role for role in ("trace", "run") if f'"{role}"' in arguments), "")


def split(arguments: str) -> list[str]:
    """Split at the commas outside of brackets and strings."""
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
        reading.take(INNER_PID.sub(r"\1", line.rstrip("\n")))
    return reading.by_role()


def measured(command: list[str], quick: bool, tier: str) -> tuple[dict[str, Counter[str]], str]:
    """Run a command under strace. Return the calls of its workers, by role, and the command's output."""
    which = ["-e", f"trace=!{FREQUENT}"] if quick else []
    if tier == "none":
        which += ["--seccomp-bpf"] if quick else []  # Faster, but hides the calls that a filter refuses.
    else:
        which += ["--pidns-translation"]
    inlet, outlet = os.pipe()
    strace = ["strace", "-f", "-q", "-s", "80", "-o", f"/proc/self/fd/{outlet}", *which, *command]
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(strace, pass_fds=[outlet], stdout=output), open(inlet, errors="replace") as lines:
            os.close(outlet)
            found = read(lines)
        output.seek(0)
        return found, output.read().strip()


def grade(students: int, minutes: float, names: list[str], tier: str) -> None:
    """Grade the class of right submissions with one worker of each role, and print the number of graded programs."""
    course, until, graded = find_course(ROOT), time.monotonic() + 60 * minutes, 0
    modules = list(course.module_of.values())
    rank = {name: modules[:at].count(module) for at, (name, module) in enumerate(course.module_of.items())}
    chosen = sorted(course.select(names), key=lambda name: rank[name])
    with tempfile.TemporaryDirectory() as place, Grader(course, tier, 1) as grader:
        right = right_class(course, Path(place))[:students]
        read = [read_submission(Path(place, student), student, course.module_of) for student in right]
        due = [(submission, name) for submission in read for name in chosen if name in submission.sources]
        for submission, name in due:
            if time.monotonic() > until:
                break
            report, graded = grader.grade(submission, [name]), graded + 1
            points = f"{report.earned} of {sum(one.points for one in report.exercises)} points"
            print(f"{submission.student} {name}: {points}", file=sys.stderr, flush=True)
    print(f"{graded} of {len(due)} references and alternatives of {len({name for _, name in due})} exercises")


def heading(programs: str, tier: str) -> str:
    kernel = ".".join(platform.release().split(".")[:2])
    packages = ", ".join(f"{name} {version}" for name, version in versions().items() if name != "shardlings")
    return f"Python {platform.python_version()}, {packages}, Linux {kernel} {platform.machine()}, isolation {tier}\n{programs}"


def rows(found: dict[str, Counter[str]]) -> Iterator[str]:
    made = {call.name for call in CALLS if call.answer is None}
    for told in sorted({told for calls in found.values() for told in calls}):
        star = " " if told.split()[0] in made else "*"
        yield f"{found['trace'][told]:9} {found['run'][told]:9} {star} {told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--students", type=int, default=99)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--isolation", default="none", choices=["none", "bwrap", "sandlock"])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--grade", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        find_course(ROOT).select(args.only)
    except CourseError as error:
        sys.exit(f"system_calls: {error}")
    if args.grade:
        grade(args.students, args.minutes, args.only, args.isolation)
        return
    command = [sys.executable, __file__, "--grade", "--students", str(args.students), "--isolation", args.isolation]
    command += ["--minutes", str(args.minutes), "--only", *args.only]
    calls, programs = measured(command, args.quick, args.isolation)
    found = defaultdict(Counter, calls)
    print(heading(programs, args.isolation), "", "    trace       run    call", *rows(found), sep="\n")
    sys.exit(not any(found.values()))


if __name__ == "__main__":
    main()
