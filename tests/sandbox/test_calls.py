"""The filter allows and refuses system calls as its table says, in every sandbox and on every architecture."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from pathlib import Path

import pytest

from bench.system_calls import read as counted
from grader.batch.cost import Cost
from grader.batch.grade import Grader
from grader.batch.running import trace
from grader.course.finding import find_course
from grader.intake.submission import Chunk, Source
from grader.sandbox.calls import (
    ARCHITECTURES,
    CALLS,
    ENOSYS,
    EPERM,
    NEWER,
    Null,
    OneOf,
    Own,
    SystemCall,
    Without,
    filter_program,
)
from grader.sandbox.worker import Worker
from grader.wire.frames import decode
from tests.commands import ROOT
from tests.right import right_sources
from tests.sandbox.submissions import CONFINED, LIMITS, ask, processes_at, value

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="these are calls of Linux")
PID = 4711
ALL_ONES = (1 << 64) - 1
NUMBERS = [*range(601), *range(1000, 1010)]
NEVER_RETURN = {"exit", "exit_group", "rt_sigreturn"}
PROBES = {335, 336}
"""uretprobe and uprobe of x86_64. The kernel does not ask a filter about them, and kills processes that call them."""


# -- the filter, interpreted as the kernel does -----------------------------------------------


def answer(machine: str, number: int, arguments: list[int], architecture: int | None = None) -> int | str | None:
    """Return the filter's decision on a call: the error number, None if it allows the call, or ``killed``."""
    program = filter_program(machine, PID)
    lines = [struct.unpack("HBBI", program[i : i + 8]) for i in range(0, len(program), 8)]
    about = struct.pack("<IIQ6Q", number, architecture or ARCHITECTURES[machine][1], 0, *arguments)
    at, loaded = 0, 0
    while True:
        what, yes, no, given = lines[at]
        at += 1
        if what == 0x20:
            (loaded,) = struct.unpack_from("<I", about, given)
        elif what == 0x54:
            loaded &= given
        elif what == 0x06:
            return {0x7FFF0000: None, 0x80000000: "killed"}.get(given, given & 0xFFFF)
        else:
            held = {0x15: loaded == given, 0x35: loaded >= given, 0x45: bool(loaded & given)}[what]
            at += yes if held else no


def by_number(machine: str) -> dict[int, SystemCall]:
    column = ARCHITECTURES[machine][0]
    return {number: call for call in CALLS if (number := call.numbers[column]) is not None}


def by_table(machine: str, number: int) -> int | None:
    """Return the error that the table gives for a call, or None. The arguments have all bits set, so no rule fits."""
    call = by_number(machine).get(number)
    if call is None:
        return ENOSYS if number >= NEWER else EPERM
    return call.answer if call.answer is not None else EPERM if call.rules else None


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_filter_allows_the_calls_of_the_table_and_no_others(machine: str) -> None:
    for number in [*range(3000), 0x40000000, 0x40000001, (1 << 32) - 1]:
        assert answer(machine, number, [ALL_ONES] * 6) == by_table(machine, number), number
    assert answer(machine, 0, [0] * 6, architecture=0x40000003) == "killed"


def fulfilled(call: SystemCall) -> list[int]:
    arguments = [0] * 6
    for rule in call.rules:
        if isinstance(rule, OneOf):
            arguments[rule.argument] = rule.values[0]
        elif isinstance(rule, Own):
            arguments[rule.argument] = PID
    return arguments


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("call", [call for call in CALLS if call.rules], ids=lambda call: call.name)
def test_rules_on_arguments_of_system_calls_hold(machine: str, call: SystemCall) -> None:
    number = call.numbers[ARCHITECTURES[machine][0]]
    if number is None:
        pytest.skip("the architecture lacks the call")

    def answered(argument: int, given: int) -> int | str | None:
        arguments = fulfilled(call)
        arguments[argument] = given
        return answer(machine, number, arguments)

    assert answer(machine, number, fulfilled(call)) is None
    for rule in call.rules:
        if isinstance(rule, OneOf):
            allowed = {value | bits for value in rule.values for bits in (0, rule.ignoring)}
            tried = allowed | set(range(2000)) | {1 << bit for bit in range(32)}
            ignored = [given for given in tried if given & ~rule.ignoring in rule.values]
            assert [given for given in tried if answered(rule.argument, given) is None] == ignored
        elif isinstance(rule, Without):
            others = sum(one.bits for one in call.rules if isinstance(one, Without) and one is not rule)
            for bit in range(32):
                if not others >> bit & 1:
                    assert answered(rule.argument, 1 << bit) == (rule.error if rule.bits >> bit & 1 else None)
        elif isinstance(rule, Own):
            assert answered(rule.argument, 0) == (None if rule.or_zero else EPERM)
            assert {answered(rule.argument, given) for given in (1, PID + 1, ALL_ONES, ALL_ONES - PID + 1)} == {EPERM}
        else:
            assert isinstance(rule, Null)
            assert {answered(rule.argument, given) for given in (1, 1 << 32, ALL_ONES)} == {EPERM}


def test_numbers_are_those_of_libseccomp() -> None:
    try:
        resolve = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name_arch
    except OSError:
        pytest.skip("libseccomp is not installed")
    resolve.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
    for call in CALLS:
        for column, architecture, _ in ARCHITECTURES.values():
            assert call.numbers[column] == (n if (n := resolve(architecture, call.name.encode())) >= 0 else None), call


def test_the_table_has_the_calls_that_were_measured() -> None:
    """The table has all measured calls except ``clone3``. The filter refuses it, and the C library calls ``clone``."""
    rows = (ROOT / "bench" / "system_calls.txt").read_text().split(" call\n")[1].splitlines()
    measured = {row[22:].split()[0] for row in rows}
    assert len(measured) > 20 and measured - {call.name for call in CALLS} == {"clone3"}


TRACED = """\
1 execve("/usr/bin/python", ["python", "start.py", "wire", "serve", "trace"], 0x0) = 0
1 clone(child_stack=NULL, flags=SIGCHLD) = 7
7 prlimit64(0, RLIMIT_NOFILE, {rlim_cur=64, rlim_max=64}, NULL) = 0
7 brk(NULL) = 0x1
7 +++ exited with 0 +++
1 clone(child_stack=NULL, flags=SIGCHLD) = 7
7 wait4(-1, NULL, 0, NULL) = 8
"""


def test_calls_before_the_filter_are_not_counted_even_if_a_number_is_used_again() -> None:
    assert counted(TRACED.splitlines()) == {"trace": {"brk": 1}}


def test_a_machine_that_the_table_does_not_know_gets_no_filter() -> None:
    assert filter_program("riscv64", 1) == b""


# -- in every sandbox --------------------------------------------------------------------------

WALK = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
ones = [ctypes.c_long(-1)] * 6
def f():
    return [0 if libc.syscall(ctypes.c_long(n), *ones) != -1 else ctypes.get_errno() for n in {numbers}]
"""


def test_every_call_answers_as_the_table_says(confined: Worker) -> None:
    """A program tries calls 0 to 600 and some larger numbers. The filter also refuses calls that no kernel has yet."""
    machine = os.uname().machine
    known = by_number(machine)
    unasked = {n for n, call in known.items() if call.name in NEVER_RETURN} | (PROBES if machine == "x86_64" else set())
    numbers = [n for n in NUMBERS if n not in unasked]
    answers = decode(value(ask(WALK.format(numbers=numbers), confined)))
    wrong = {}
    for number, error in zip(numbers, answers, strict=True):
        expected = by_table(machine, number)
        if error != expected if expected is not None else error in (EPERM, ENOSYS):
            wrong[number] = (known[number].name if number in known else "", error, expected)
    assert wrong == {}


def filters_at(folder: str) -> set[int]:
    """Return the set of numbers: how many filters each thread of the workers in a folder has."""
    workers = [p for p in processes_at(folder) if b"start.py" in (p / "cmdline").read_bytes().split(b"\0")[4]]
    status = [(task / "status").read_text() for p in workers for task in (p / "task").iterdir()]
    return {int(line.split()[1]) for text in status for line in text.splitlines() if "Seccomp_filters" in line}


@pytest.mark.parametrize("tier", CONFINED)
def test_the_process_that_runs_programs_has_the_filter_in_all_threads(tier: str) -> None:
    """sandlock itself adds one filter. A worker that traces has no further filter; only its children have one."""
    own = {"sandlock": 1, "bwrap": 0}[tier]
    with Worker("run", tier, 2, LIMITS) as one:
        assert one.runs_own_test()
        assert filters_at(one.scratch) == {own + 1}
    with Worker("trace", tier, 2, LIMITS) as one:
        one.await_ready()
        assert filters_at(one.scratch) == {own}


@pytest.mark.parametrize("tier", CONFINED)
def test_the_process_that_parses_has_the_filter_in_all_threads(tier: str) -> None:
    own = {"sandlock": 1, "bwrap": 0}[tier]
    with Worker("parse", tier, 1, LIMITS) as one:
        one.await_ready()
        assert filters_at(one.scratch) == {own + 1}


# -- attacks -----------------------------------------------------------------------------------

ATTACKS = """
import ctypes, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
number = ctypes.c_long
x86 = os.uname().machine == "x86_64"
def call(on_x86, on_arm, *arguments):
    made = libc.syscall(number(on_x86 if x86 else on_arm), *arguments)
    return 0 if made != -1 else ctypes.get_errno()
def order(go, *arguments):
    try:
        go(*arguments)
        return 0
    except OSError as error:
        return error.errno
def f():
    own = os.open("own", os.O_RDWR | os.O_CREAT, 0o600)
    readable = os.open(os.__file__, os.O_RDONLY)
    inlet, outlet = os.pipe()
    attribute, size = (ctypes.c_uint64 * 4)(), number(32)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
    context, queue = ctypes.c_ulong(0), (ctypes.c_int * 2)()
    made = [
        ["a file's attributes by file_setattr", call(469, 469, own, b"", attribute, size, number(0x1000))],
        ["a file's attributes by SETFLAGS", order(fcntl.ioctl, own, 0x40086602, b"\\0" * 8)],
        ["a file's version by SETVERSION", order(fcntl.ioctl, own, 0x40087604, b"\\0" * 8)],
        ["a project's number by FSSETXATTR", order(fcntl.ioctl, own, 0x401C5820, b"\\0" * 28)],
        ["space beyond RLIMIT_FSIZE by fallocate", call(285, 47, own, number(1), number(0), number(48 << 20))],
        ["a lease on a library", order(fcntl.fcntl, readable, 1024, fcntl.F_RDLCK)],
        ["signals when a folder changes", order(fcntl.fcntl, os.open(".", os.O_RDONLY), 1026, 0)],
        ["a larger pipe", order(fcntl.fcntl, inlet, 1031, 1 << 20)],
        ["a lock on a library", order(fcntl.flock, readable, fcntl.LOCK_SH)],
        ["a lock on a range", order(fcntl.lockf, own, fcntl.LOCK_EX)],
        ["another user's message queue", call(241, 181, b"shardlings-none")],
        ["the machine's asynchronous requests", call(206, 0, number(128), ctypes.byref(context))],
        ["buffers of sockets", call(53, 199, number(1), number(1), number(0), queue)],
        ["a timer", call(222, 107, number(1), None, ctypes.byref(context))],
        ["a descriptor for timers", call(283, 85, number(1), number(0))],
        ["a descriptor for events", call(290, 19, number(0), number(0))],
        ["a descriptor without access", order(os.open, os.__file__, 0x200000)],
        ["reads past the page cache", order(os.open, os.__file__, os.O_DIRECT)],
        ["reads past the page cache, later", order(fcntl.fcntl, readable, fcntl.F_SETFL, os.O_DIRECT)],
        ["a queue of signals", order(os.kill, os.getpid(), signal.SIGRTMIN)],
    ]
    os.unlink("own")
    return made
"""


@LINUX
@pytest.mark.parametrize("tier", ["none", *CONFINED])
def test_calls_that_reach_beyond_the_process_are_refused(tier: str) -> None:
    """As a control, the tier "none" has no sandbox. There the kernel executes most of these calls."""
    with Worker("trace", tier, 2, LIMITS) as one:
        made = dict(decode(value(ask(ATTACKS, one))))
    refused = {name for name, error in made.items() if error in (errno.EPERM, errno.ENOSYS)}
    if tier != "none":
        assert refused == set(made)
    else:
        assert refused <= {"a file's attributes by file_setattr"}, "the kernel is older than the call"
        assert sum(error == 0 for error in made.values()) > len(made) / 2


SECRETS = """
import os
def f():
    told = []
    for look in (lambda: os.readlink({link!r}), lambda: os.getxattr({file!r}, "user.told"), lambda: os.listxattr({file!r})):
        try:
            told.append(repr(look()))
        except OSError as error:
            told.append(error.errno)
    return told
"""


@LINUX
@pytest.mark.parametrize("tier", ["none", *CONFINED])
def test_links_and_attributes_of_outside_files_cannot_be_read(tier: str, tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to("TOLD")
    try:
        os.setxattr(file, "user.told", b"TOLD")
    except OSError:
        pytest.skip("no extended attributes here")
    with Worker("trace", tier, 2, LIMITS) as one:
        told = decode(value(ask(SECRETS.format(link=str(link), file=str(file)), one)))
    assert told == (["'TOLD'", "b'TOLD'", "['user.told']"] if tier == "none" else [errno.EPERM] * 3)


# -- honest submissions ------------------------------------------------------------------------

HONEST = """
import json, logging, os, random, shutil, sys, tempfile, threading, time
import jax, jax.numpy as jnp, numpy as np
def f():
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * 1000)
        place = os.path.join(folder, "deep", "down")
        os.makedirs(place)
        with open(os.path.join(place, "a.json"), "w") as one:
            json.dump([1, 2], one)
        shutil.copyfile(os.path.join(place, "a.json"), "b.json")
        np.arange(5000.0).tofile("c.bin")
        np.save("d.npy", np.arange(5))
        read = [json.load(open("b.json")), float(np.fromfile("c.bin").sum()), np.load("d.npy").tolist(), os.listdir(place)]
        with open("e", "w+") as one:
            one.write("abc")
            one.truncate(1)
    threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(4)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    logging.getLogger("learner").warning("seen")
    print(os.path.realpath("b.json"), shutil.get_terminal_size(), sys.stdout.isatty(), os.cpu_count(), os.uname().sysname)
    key = jax.random.key(0)
    made = jax.jit(lambda x: (x @ x.T).sum())(jax.random.normal(key, (64, 32)))
    return [*read, bool(jnp.isfinite(made)), 0 <= random.random() < 1, float(jnp.linalg.norm(jnp.ones(9)))]
"""


def test_files_threads_and_jax_work_under_the_filter(confined: Worker) -> None:
    assert decode(value(ask(HONEST, confined))) == [[1, 2], 12497500.0, [0, 1, 2, 3, 4], ["a.json"], True, True, 3.0]


@pytest.mark.slow
@pytest.mark.parametrize("module", [module.id for module in find_course(ROOT).config.modules])
@pytest.mark.parametrize("tier", CONFINED[1:])
def test_references_are_traced_in_every_sandbox(tier: str, module: str) -> None:
    """``make verify`` grades references and alternatives in the default sandbox. This test uses the other sandboxes."""
    course = find_course(ROOT)
    names = [name for name in course.exercises if course.module_of[name] == module]
    lost, traced = list[str](), 0
    with Grader(course, tier, 2) as grader, grader.pool.lent() as workers:
        for name in names:
            source = Source(f"{name}.py", (Chunk(f"{name}.py", right_sources(course, name)[0]),))
            replies = trace(workers, source, grader.plan(name, public=False), Cost(workers.limits)).replies
            traced += len(replies)
            lost += [f"{name}: {reply.fault.message}" for reply in replies.values() if reply.fault]
    assert lost == [] and traced > len(names)
