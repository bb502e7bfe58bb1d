"""The seccomp filter of confined processes: it allows the calls of ``calls.py``, and no others.

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
from functools import singledispatch

from grader.sandbox.calls import CALLS, ENOSYS, EPERM, NEWER, Null, OneOf, Own, Rule, SystemCall, Without

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
    """Limit this process and all its threads permanently to the calls in ``calls.py``.

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
