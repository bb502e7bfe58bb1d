"""The system calls that learner code may not make, as a seccomp filter.

Written down as the kernel takes it. sandlock's own filter is for a whole sandbox, whose worker needs what its child may
not have (it forks). libseccomp would be one more library of the machine's, which knows the calls of its year and not
those refused here that came later, by way of bindings (pyseccomp) that nobody has released since 2021. An allow-list is
not workable: what XLA and Python call differs with the C library and the processor, and what is missing ends honest
work.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator

PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
# Landlock stops neither of these, and no solution of an exercise needs them: system call numbers on x86_64 and
# aarch64 (None: not there). What a process may do to itself stays; see ``filter_program``.
FORBIDDEN_CALLS: dict[str, tuple[int | None, int | None]] = {
    # another file's mode, owner, times and attributes
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    "mknod": (133, None), "mknodat": (259, 33), "inotify_add_watch": (254, 27), "fanotify_init": (300, 262),
    # another process's priority, processors and memory; signals that do not go through kill
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "sched_setattr": (314, 274), "sched_setaffinity": (203, 122),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # more processes, other programs, sessions
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "setsid": (112, 157), "setpgid": (109, 154), "unshare": (272, 97), "setns": (308, 268), "chroot": (161, 51),
    # networks, memory that no limit counts, the machine
    "socket": (41, 198), "io_uring_setup": (425, 425), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "shmget": (29, 194), "shmat": (30, 196), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "syslog": (103, 116), "clock_settime": (227, 112),
    "settimeofday": (164, 170), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
}  # fmt: skip
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# A descriptor's owner gets a signal of one's choice when there is something to read.
OWNERS = {"fcntl": ((72, 25), (8, 10, 15)), "ioctl": ((16, 29), (0x8901, 0x8902))}
SELF_ONLY = {"kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261)}
# Deleting a file only seems to: while all that a child made can be seen, what it holds can be counted. What replaces a
# file is refused as if between two disks; whoever asks for a file without a name is told to take one with a name.
SEEM = {"unlink": (87, None), "rmdir": (84, None), "unlinkat": (263, 35)}
REPLACE = {"rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276)}
OPEN, OPENAT, OPENAT2, NAMELESS = (2, None), (257, 56), (437, 437), 0x400000
CLONE, CLONE3, CLONE_THREAD = (56, 220), (435, 435), 0x10000
EPERM, EXDEV, ENOSYS, EOPNOTSUPP = 1, 18, 38, 95

# Instructions as the kernel takes them: what to do, how many lines to skip if so and if not, and a number.
Line = tuple[int, int, int, int]
LOAD, EQUAL, AT_LEAST, ANY_BIT, ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
FAIL = 0x50000  # with the number of an error
ALLOW, KILL, REFUSE = (ANSWER, 0, 0, 0x7FFF0000), (ANSWER, 0, 0, 0x80000000), (ANSWER, 0, 0, FAIL | EPERM)
# Offsets in struct seccomp_data; of an argument its lower half.
NUMBER, ARCH, FIRST, SECOND, THIRD = 0, 4, 16, 24, 32


def filter_program(machine: str, pid: int) -> bytes:
    """The seccomp filter as bytes; empty on a machine whose numbers we do not know.

    Threads may be started, processes not. Signals and limits reach this process alone.
    """
    if machine not in ARCHITECTURES:
        return b""
    column, architecture = ARCHITECTURES[machine]
    code: list[Line] = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, architecture), KILL, (LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":  # the x32 numbers
        code += [(AT_LEAST, 0, 1, 0x40000000), REFUSE]
    code += [*_whole_calls(column), *_calls_by_flags(column), *_calls_by_whom_they_reach(column, pid), ALLOW]
    return b"".join(struct.pack("HBBI", *line) for line in code)


def _whole_calls(column: int) -> Iterator[Line]:
    """Calls that are refused, or that only seem to be made, whatever their arguments are."""
    answers = [(numbers, EPERM) for numbers in FORBIDDEN_CALLS.values()]
    answers += [(numbers, 0) for numbers in SEEM.values()]
    answers += [(numbers, EXDEV) for numbers in REPLACE.values()]
    answers += [(OPENAT2, ENOSYS), (CLONE3, ENOSYS)]  # libc falls back to openat and clone
    for numbers, error in answers:
        if (call := numbers[column]) is not None:
            yield from [(EQUAL, 0, 1, call), (ANSWER, 0, 0, FAIL | error)]


def _calls_by_flags(column: int) -> Iterator[Line]:
    """No file without a name; threads and no processes."""
    for numbers, flags in ((OPEN, SECOND), (OPENAT, THIRD)):
        if (call := numbers[column]) is not None:
            yield from [(EQUAL, 0, 4, call), (LOAD, 0, 0, flags), (ANY_BIT, 0, 1, NAMELESS),
                        (ANSWER, 0, 0, FAIL | EOPNOTSUPP), ALLOW]  # fmt: skip
    yield from [(EQUAL, 0, 4, CLONE[column]), (LOAD, 0, 0, FIRST), (ANY_BIT, 1, 0, CLONE_THREAD), REFUSE, ALLOW]


def _calls_by_whom_they_reach(column: int, pid: int) -> Iterator[Line]:
    """Owners of descriptors are nobody; signals and limits are for this process."""
    for numbers, orders in OWNERS.values():
        yield from [(EQUAL, 0, 2 + 2 * len(orders), numbers[column]), (LOAD, 0, 0, SECOND)]
        for order in orders:
            yield from [(EQUAL, 0, 1, order), REFUSE]
        yield ALLOW
    for name, numbers in SELF_ONLY.items():
        yield from [(EQUAL, 0, 5, numbers[column]), (LOAD, 0, 0, FIRST), (EQUAL, 2, 0, pid)]
        yield from [(EQUAL, 1, 0, 0 if name == "prlimit64" else pid), REFUSE, ALLOW]


def forbid_calls() -> None:
    """Install the filter; there is no way back. Where seccomp is refused, so is the submission."""
    program = filter_program(platform.machine(), os.getpid())
    if not program:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program, len(program))

    class FilterProgram(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    about = FilterProgram(len(program) // 8, ctypes.addressof(code))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(about), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot install the system call filter")
