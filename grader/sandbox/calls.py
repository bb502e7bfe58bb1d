"""The system calls that confined processes may make: one table for all sandboxes, and the seccomp filter of the table.

The table has the calls that Python, NumPy and JAX make for the course (measured by ``bench/system_calls.py``) and their
equivalents in other C libraries. All other calls fail with EPERM, or with ENOSYS if their number is at least ``NEWER``.
After ENOSYS, a C library makes an older call instead.

This module writes the filter in the kernel's format. sandlock's own filter is unsuitable for two reasons:
- It lists the refused calls, not the allowed calls.
- It is equal for a worker and the worker's child, but only the worker may fork.

libseccomp is unsuitable, because it must be installed separately.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

EPERM, EXDEV, ENOSYS, EOPNOTSUPP = 1, 18, 38, 95
NEWER = 424
"""System calls with this number or a higher one are new, and have equal numbers on all architectures."""

# Values of arguments of system calls.
MAP_LOCKED, MAP_HUGETLB = 0x2000, 0x40000
MADVICE = (3, 4, 8, 14, 15, 16)  # madvise: WILLNEED, DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE and DONTDUMP
PTHREAD = (0x3D0F00, 0x7D0F00)  # clone: the flags of pthread_create for a new thread, in glibc and in musl
FUTEX, FUTEX_PRIVATE, FUTEX_CLOCK_REALTIME = (0, 1, 9, 10), 128, 256  # futex: WAIT, WAKE, WAIT_BITSET, WAKE_BITSET
O_PATH, O_TMPFILE = 0x200000, 0x400000
# Reads and writes with O_DIRECT bypass the page cache. They are not allowed, because a process that waits for a disk
# uses neither CPU time nor idle time, which are limited. The flag's value depends on the architecture.
O_DIRECT = getattr(os, "O_DIRECT", 0x4000)
# Commands that duplicate a descriptor, read its flags, or set whether a new program gets it. Commands for locks,
# leases, owners and sizes are not allowed, nor is F_SETFL, which can set O_DIRECT.
FCNTL = (0, 1, 2, 3, 1030)
# TCGETS and TCGETS2 (to ask if a file is a terminal), TIOCGWINSZ (to ask for its size), FIONCLEX, FIOCLEX, FIONBIO
IOCTL = (0x5401, 0x802C542A, 0x5413, 0x5450, 0x5451, 0x5421)
PR_SET_NAME, PR_GET_NAME = 15, 16
# Real-time signals have higher numbers. They are not allowed, because the kernel would queue them, and all processes of
# a user share one limit on queued signals.
SIGNALS = tuple(range(32))


@dataclass(frozen=True)
class OneOf:
    """A condition on a system call: one argument of the call has one of these values.

    Attributes:
        argument: the argument's position, from 0.
        ignoring: bits of the argument that may have any value.
    """

    argument: int
    values: Sequence[int]
    ignoring: int = 0


@dataclass(frozen=True)
class Without:
    """A condition on a system call: none of these bits is set in one argument of the call.

    Otherwise the call fails with the error number ``error``.
    """

    argument: int
    bits: int
    error: int = EPERM


@dataclass(frozen=True)
class Own:
    """A condition on a system call: one argument is the calling process's number.

    If ``or_zero`` is True, the argument may also be 0.
    """

    argument: int
    or_zero: bool = False


@dataclass(frozen=True)
class Null:
    """A condition on a system call: one argument of the call, a pointer, is NULL."""

    argument: int


Rule = OneOf | Without | Own | Null


@dataclass(frozen=True, init=False)
class SystemCall:
    """A system call that is allowed, or that gets a special answer.

    Attributes:
        numbers: the call's number on x86_64 and on aarch64; None if the architecture lacks the call.
        why: why the call is allowed, or why it gets ``answer``.
        rules: conditions on the arguments. All of them must be met.
        answer: None allows the call. 0 lets the call succeed without any effect. Any other number is the error with
            which the call fails.
    """

    name: str
    numbers: tuple[int | None, int | None]
    why: str
    rules: tuple[Rule, ...]
    answer: int | None

    def __init__(
        self, name: str, x86_64: int | None, aarch64: int | None, why: str, *rules: Rule, answer: int | None = None
    ) -> None:
        values = {"name": name, "numbers": (x86_64, aarch64), "why": why, "rules": rules, "answer": answer}
        for field, value in values.items():
            object.__setattr__(self, field, value)


CALLS = (
    SystemCall("brk", 12, 214, "memory"),
    SystemCall("mmap", 9, 222, "memory", Without(3, MAP_LOCKED | MAP_HUGETLB)),
    SystemCall("munmap", 11, 215, "memory"),
    SystemCall("mprotect", 10, 226, "memory"),
    SystemCall("mremap", 25, 216, "memory"),
    SystemCall("madvise", 28, 233, "memory", OneOf(2, MADVICE)),
    SystemCall("clone", 56, 220, "its threads", OneOf(0, PTHREAD)),
    SystemCall("futex", 202, 98, "its threads", OneOf(1, FUTEX, ignoring=FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME)),
    SystemCall("set_robust_list", 273, 99, "its threads"),
    SystemCall("rseq", 334, 293, "its threads"),
    SystemCall("rt_sigprocmask", 14, 135, "its threads"),
    SystemCall("gettid", 186, 178, "its threads"),
    SystemCall("sched_yield", 24, 124, "its threads"),
    SystemCall("exit", 60, 93, "its threads"),
    SystemCall("exit_group", 231, 94, "its threads"),
    SystemCall("open", 2, None, "files it may read", Without(1, O_PATH | O_DIRECT), Without(1, O_TMPFILE, EOPNOTSUPP)),
    SystemCall(
        "openat", 257, 56, "files it may read", Without(2, O_PATH | O_DIRECT), Without(2, O_TMPFILE, EOPNOTSUPP)
    ),
    SystemCall("close", 3, 57, "files it may read"),
    SystemCall("close_range", 436, 436, "files it may read"),
    SystemCall("read", 0, 63, "files it may read"),
    SystemCall("pread64", 17, 67, "files it may read"),
    SystemCall("readv", 19, 65, "files it may read"),
    SystemCall("lseek", 8, 62, "files it may read"),
    SystemCall("stat", 4, None, "files it may read"),
    SystemCall("lstat", 6, None, "files it may read"),
    SystemCall("fstat", 5, 80, "files it may read"),
    SystemCall("newfstatat", 262, 79, "files it may read"),
    SystemCall("access", 21, None, "files it may read"),
    SystemCall("faccessat", 269, 48, "files it may read"),
    SystemCall("getdents64", 217, 61, "files it may read"),
    SystemCall("getcwd", 79, 17, "files it may read"),
    SystemCall("chdir", 80, 49, "files it may read"),
    SystemCall("write", 1, 64, "answers, scratch folder"),
    SystemCall("pwrite64", 18, 68, "answers, scratch folder"),
    SystemCall("writev", 20, 66, "answers, scratch folder"),
    SystemCall("ftruncate", 77, 46, "answers, scratch folder"),
    SystemCall("mkdir", 83, None, "answers, scratch folder"),
    SystemCall("mkdirat", 258, 34, "answers, scratch folder"),
    SystemCall("pipe", 22, None, "its descriptors"),
    SystemCall("pipe2", 293, 59, "its descriptors"),
    SystemCall("dup", 32, 23, "its descriptors"),
    SystemCall("dup2", 33, None, "its descriptors"),
    SystemCall("dup3", 292, 24, "its descriptors"),
    SystemCall("fcntl", 72, 25, "its descriptors", OneOf(1, FCNTL)),
    SystemCall("ioctl", 16, 29, "its descriptors", OneOf(1, IOCTL)),
    SystemCall("poll", 7, None, "its descriptors"),
    SystemCall("ppoll", 271, 73, "its descriptors"),
    SystemCall("select", 23, None, "its descriptors"),
    SystemCall("pselect6", 270, 72, "its descriptors"),
    SystemCall("rt_sigaction", 13, 134, "signals to itself"),
    SystemCall("rt_sigreturn", 15, 139, "signals to itself"),
    SystemCall("sigaltstack", 131, 132, "signals to itself"),
    SystemCall("kill", 62, 129, "signals to itself", Own(0), OneOf(1, SIGNALS)),
    SystemCall("tgkill", 234, 131, "signals to itself", Own(0), OneOf(2, SIGNALS)),
    SystemCall("setitimer", 38, 103, "signals to itself"),
    SystemCall("getitimer", 36, 102, "signals to itself"),
    SystemCall("restart_syscall", 219, 128, "signals to itself"),
    SystemCall("clock_gettime", 228, 113, "clocks"),
    SystemCall("clock_getres", 229, 114, "clocks"),
    SystemCall("gettimeofday", 96, 169, "clocks"),
    SystemCall("time", 201, None, "clocks"),
    SystemCall("clock_nanosleep", 230, 115, "clocks"),
    SystemCall("nanosleep", 35, 101, "clocks"),
    SystemCall("times", 100, 153, "clocks"),
    SystemCall("getrusage", 98, 165, "clocks"),
    SystemCall("getpid", 39, 172, "facts about itself"),
    SystemCall("getppid", 110, 173, "facts about itself"),
    SystemCall("getuid", 102, 174, "facts about itself"),
    SystemCall("geteuid", 107, 175, "facts about itself"),
    SystemCall("getgid", 104, 176, "facts about itself"),
    SystemCall("getegid", 108, 177, "facts about itself"),
    SystemCall("uname", 63, 160, "facts about itself"),
    SystemCall("sysinfo", 99, 179, "facts about itself"),
    SystemCall("getcpu", 309, 168, "facts about itself"),
    SystemCall("sched_getaffinity", 204, 123, "facts about itself"),
    SystemCall("sched_getparam", 143, 121, "facts about itself"),
    SystemCall("sched_getscheduler", 145, 120, "facts about itself"),
    SystemCall("getrlimit", 97, 163, "facts about itself"),
    SystemCall("prlimit64", 302, 261, "facts about itself", Own(0, or_zero=True), Null(2)),
    SystemCall("prctl", 157, 167, "facts about itself", OneOf(0, (PR_SET_NAME, PR_GET_NAME))),
    SystemCall("getrandom", 318, 278, "random numbers"),
    SystemCall("unlink", 87, None, "deletions only appear to work", answer=0),
    SystemCall("rmdir", 84, None, "deletions only appear to work", answer=0),
    SystemCall("unlinkat", 263, 35, "deletions only appear to work", answer=0),
    SystemCall("rename", 82, None, "a file must not replace another file", answer=EXDEV),
    SystemCall("renameat", 264, 38, "a file must not replace another file", answer=EXDEV),
    SystemCall("renameat2", 316, 276, "a file must not replace another file", answer=EXDEV),
    SystemCall("statx", 332, 291, "libc calls newfstatat instead", answer=ENOSYS),
)


# -- the filter --------------------------------------------------------------------------------

PR_SET_NO_NEW_PRIVS = 38
ARCHITECTURES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
"""By architecture: index into ``SystemCall.numbers``, number of the architecture, number of the call ``seccomp``."""
SET_MODE_FILTER, ALL_THREADS = 1, 1

# One instruction of a seccomp filter: the opcode, the number of instructions to skip if the test is true, the number to
# skip if the test is false, and the operand.
Line = tuple[int, int, int, int]
LOAD, AND, EQUAL, AT_LEAST, ANY_BIT, ANSWER = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL = (ANSWER, 0, 0, 0x7FFF0000), (ANSWER, 0, 0, 0x80000000)
# Byte offsets in struct seccomp_data. An argument consists of two halves, the lower half first.
NUMBER, ARCH, ARGUMENTS = 0, 4, 16


def filter_program(machine: str, pid: int) -> bytes:
    """Return the filter as bytes, or b"" for an architecture that is not in ARCHITECTURES.

    Args:
        pid: the process that installs the filter. It may send signals only to itself, and read only its own limits.
    """
    if machine not in ARCHITECTURES:
        return b""
    column, architecture, _ = ARCHITECTURES[machine]
    code = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, architecture), KILL, (LOAD, 0, 0, NUMBER)]
    # Calls without rules come last. The kernel remembers that these calls are always allowed, and seldom runs the
    # filter for them.
    for call in sorted(CALLS, key=lambda call: not call.rules):
        if (number := call.numbers[column]) is not None:
            lines = _lines(call, pid)
            code += [(EQUAL, 0, len(lines), number), *lines]
    code += [(AT_LEAST, 0, 1, NEWER), _error(ENOSYS), _error(EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in code)


def _lines(call: SystemCall, pid: int) -> list[Line]:
    if call.answer is not None:
        return [_error(call.answer)]
    return [line for rule in call.rules for line in _test(rule, pid)] + [ALLOW]


def _error(number: int) -> Line:
    return ANSWER, 0, 0, 0x50000 | number


def _low(argument: int) -> Line:
    return LOAD, 0, 0, ARGUMENTS + 8 * argument


@singledispatch
def _test(rule: Rule, pid: int) -> list[Line]:
    """Return instructions that return an error if a call breaks the rule, and otherwise do nothing."""
    raise TypeError(rule)


@_test.register
def _one_of(rule: OneOf, pid: int) -> list[Line]:
    masked = [(AND, 0, 0, 0xFFFFFFFF ^ rule.ignoring)] if rule.ignoring else []
    equal = [(EQUAL, len(rule.values) - at, 0, value) for at, value in enumerate(rule.values)]
    return [_low(rule.argument), *masked, *equal, _error(EPERM)]


@_test.register
def _without(rule: Without, pid: int) -> list[Line]:
    return [_low(rule.argument), (ANY_BIT, 0, 1, rule.bits), _error(rule.error)]


@_test.register
def _own(rule: Own, pid: int) -> list[Line]:
    return _one_of(OneOf(rule.argument, (pid, 0) if rule.or_zero else (pid,)), pid)


@_test.register
def _null(rule: Null, pid: int) -> list[Line]:
    low, high = _low(rule.argument), (LOAD, 0, 0, ARGUMENTS + 8 * rule.argument + 4)
    return [low, (EQUAL, 0, 2, 0), high, (EQUAL, 1, 0, 0), _error(EPERM)]


def install_filter() -> None:
    """Limit this process and all its threads permanently to the calls in ``CALLS``.

    Raises OSError if the kernel refuses the filter.
    """
    machine = platform.machine()
    program = filter_program(machine, os.getpid())
    if not program:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program, len(program))

    class FilterProgram(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    about = FilterProgram(len(program) // 8, ctypes.addressof(code))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(ARCHITECTURES[machine][2], SET_MODE_FILTER, ALL_THREADS, ctypes.byref(about)) != 0:
        raise OSError(ctypes.get_errno(), "cannot install the system call filter")
