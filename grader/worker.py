"""The worker process: reads asks from its standard input, answers on its standard output.

Started by ``sandbox.start`` as a script, confined before it runs. Two roles:

trace: imports JAX, starts no backend (a fork is sound only until one exists), and forks a keeper per
    submission, which forks the child before it reads a word of the submission. So no child ever finds
    an earlier submission in its memory. The child is confined once more, and loses the system calls with which one process changes another or a file that it cannot write; what it
    deletes only seems to be gone, so that it counts. It can neither signal nor read its keeper, which hands out the asks
    in stages and keeps its limits. What it leaves, running or written, is ended and deleted; where that fails, the
    worker ends as well, and with it its sandbox.
run: admits, compiles and executes programs, one after another; learner Python never comes here.

Every answer is a frame with ``from``: ``child`` is untrusted (it passed through learner hands),
``worker`` is ours.
"""

from __future__ import annotations

if __name__ == "__main__":  # started by path: make the package importable without listing its folder
    import importlib.util
    import sys
    from pathlib import Path

    here = Path(__file__).parent
    sys.path[:] = [p for p in sys.path if p != str(here)]
    spec = importlib.util.spec_from_file_location(
        "grader", here / "__init__.py", submodule_search_locations=[str(here)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["grader"] = package
    spec.loader.exec_module(package)

import contextlib
import ctypes
import fcntl
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import pkgutil
import platform
import resource
import secrets
import select
import signal
import struct
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from grader import wire

GRACE = 2.0  # after its limit a task is interrupted; what cannot be is killed so many seconds (of CPU time) later
MAX_ANSWER = 16 << 20
MAX_HEADER = 2 << 20
MAX_STRAY = 1000  # frames that nobody asked for
MAX_SCRATCH = 64 << 20
MAX_SCRATCH_FILES = 1000
LOOK_SECONDS = 0.1
MAX_OPEN = 64
MAX_THREADS = 1024
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
PR_SET_CHILD_SUBREAPER = 36
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38


def backstop(seconds: float) -> float:
    """Seconds of wall time in which anything has its seconds of CPU time, on a machine that others load as well."""
    return 10 * seconds + 10


class Allowance:
    """CPU seconds that a process of ours may use from now on. Wall time only ends what sleeps, or waits for ever."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid, self._cpu, self._wall = pid, cpu_seconds(pid) + seconds, time.monotonic() + backstop(seconds)

    @property
    def over(self) -> bool:
        return cpu_seconds(self._pid) > self._cpu or time.monotonic() > self._wall


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all its threads, by the clock that Linux has for each; else, or when it is gone, 0."""
    try:
        return time.clock_gettime(-8 * (pid + 1) + 2)
    except (OSError, AttributeError):
        return 0.0


def main(role: str, memory_mib: int, readable: str = "") -> None:
    """Answer until there is nothing more to read; under sandlock with what learner code may read, joined by colons."""
    asks, answers = _own_streams()
    # JAX would look for plugins of other hardware in every installed package, twice; a worker has its processors.
    importlib.metadata.distributions = lambda **about: iter(())
    if role == "trace":  # all that a confined child needs, before it is confined, and no more
        from jaxlib.mlir.dialects import builtin, mhlo  # noqa: F401  else every child imports them

        from grader import trace

        trace.prepare()

        if readable:
            _confine(readable.split(":"))
    else:
        _cap(resource.RLIMIT_AS, memory_mib << 20)
        from grader import run  # noqa: F401

    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_DUMPABLE, 0)  # bwrap: no Landlock keeps a child from our memory
    send = _sender(answers)
    send({"ready": True}, [])
    while os.read(asks, 1):
        if role == "run":
            _run(*wire.read_frame(_reader(asks)), send)
            continue
        keeper = os.fork()
        if keeper == 0:
            code = 1
            try:
                _keep(asks, send)
                code = 0
            finally:
                os._exit(code)
        if os.waitpid(keeper, 0)[1] != 0:  # something may be left behind: with us the whole sandbox ends
            return  # and whoever asks next begins anew


def _own_streams() -> tuple[int, BinaryIO]:
    """Our pipes on fresh descriptors; what anybody prints goes to standard error."""
    asks, answers = os.dup(0), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return asks, answers


def _sender(stream: BinaryIO) -> Callable[[dict, list[bytes]], None]:
    def send(header: dict[str, Any], blobs: list[bytes]) -> None:
        stream.write(wire.pack({"from": "worker"} | header, blobs))
        stream.flush()

    return send


def _reader(fd: int) -> Callable[[int], bytes]:
    def read(n: int) -> bytes:
        parts = []
        while n:
            part = os.read(fd, min(n, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    return read


# -- run ---------------------------------------------------------------------------------------


def _run(header: dict[str, Any], blobs: list[bytes], send: Callable) -> None:
    from grader import run
    from grader.trace import one_line

    if header.get("ours"):
        send({"runs": run.runs()}, [])
        return
    program, *rest = blobs
    run.on_phase = lambda phase: send({"phase": phase}, [])
    signal.setitimer(signal.ITIMER_PROF, header["seconds"])  # ends this process, whatever it is doing
    before = time.process_time()
    try:
        answer, out = run.run(header["ask"], program, run.unpack_inputs(header, rest))
    except Exception as error:  # what is the learner's, ``run`` says in its answer: this is ours
        answer, out = {"broken": f"{type(error).__name__}: {run.without_marks(one_line(error))[:300]}"}, []
    signal.setitimer(signal.ITIMER_PROF, 0)
    send(answer | {"cpu": time.process_time() - before}, out)


# -- trace -------------------------------------------------------------------------------------


class Stages:
    """What a child is given, and when: its source, and once that is loaded one list of asks after the other.

    A later list comes only after the last answer to the earlier ones, so that no error of theirs can tell of it. Answers
    count in order, each once: whoever forges one, to see more, has given it.

    Args:
        to_child: the end of a pipe, which does not block: the child reads when it likes.
        first: bytes to begin with.
        later: lists of asks: how many answers each takes, and its bytes.
    """

    def __init__(self, to_child: int, first: bytes, later: list[tuple[int, bytes]]) -> None:
        self.to_child: int | None = to_child
        self._waiting, self._later, self._numbered = bytearray(first), later, 0
        self._due: deque[tuple[str, bool | int]] = deque([("started", True), ("loaded", True)])

    @property
    def begun(self) -> bool:
        """Whether the child has said its first word; learner code runs only after that."""
        return not self._due or self._due[0][0] != "started"

    @property
    def done(self) -> bool:
        return not self._due

    def takes(self, body: dict[str, Any]) -> bool:
        """Whether this frame is the one that is due; the last one of a stage sets the next stage free."""
        if not self._due:
            return False
        key, value = self._due[0]
        if type(body.get(key)) is not type(value) or body[key] != value:
            return False
        self._due.popleft()
        while not self._due and self._later:
            count, data = self._later.pop(0)
            self._due += [("number", self._numbered + i) for i in range(count)]
            self._numbered += count
            self._waiting += data if count else b""
        return True

    def hand_out(self) -> None:
        """Write what the pipe takes now, and close it when nothing more comes."""
        if self.to_child is None:
            return
        try:
            del self._waiting[: os.write(self.to_child, self._waiting)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._waiting.clear()
            self._later.clear()
        if not self._waiting and not self._later:
            os.close(self.to_child)
            self.to_child = None

    @property
    def writable(self) -> list[int]:
        """What to wait for: a pipe that has room again."""
        return [self.to_child] if self.to_child is not None and self._waiting else []


def _keep(asks: int, send: Callable) -> None:
    """Fork the child, hand it the request, relay its answers, and say how it ended; nothing survives."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    inlet, to_child = os.pipe()
    out, outlet = os.pipe()
    os.set_blocking(to_child, False)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _child(inlet, outlet)
            code = 0
        finally:
            os._exit(code)
    os.close(inlet)
    os.close(outlet)
    header, (source, *later) = wire.read_frame(_reader(asks))
    scratch = header["scratch"]
    stages = Stages(to_child, wire.pack(header) + source, list(zip(header["counts"], later, strict=True)))
    ended = _relay(out, pid, header["limits"], scratch, stages, send)
    used = cpu_seconds(pid)
    clean = _kill_all(pid) and empty(scratch)
    send({"end": ended, "cpu": used, "clean": clean}, [])


def _child(inlet: int, outlet: int) -> None:
    """Learner code runs below this frame."""
    inlet, outlet = _close_all_but(inlet, outlet)
    read = _reader(inlet)
    header, _ = wire.read_frame(read)
    source, _ = wire.read_frame(read)
    limits, scratch = header["limits"], header["scratch"]
    _settle_imports(header["packages"])
    os.chdir(scratch)
    os.environ.clear()
    os.environ.update(header["env"] | {"HOME": scratch, "TMPDIR": scratch})
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_FSIZE, int(limits["file_mib"]) << 20)
    _cap(resource.RLIMIT_AS, int(limits["memory_mib"]) << 20)
    _cap(resource.RLIMIT_CPU, int(limits["total_seconds"]) + 5, 5)
    _cap(resource.RLIMIT_NOFILE, MAX_OPEN)
    if header["tier"] == "sandlock":
        _confine(["/"])
    if header["tier"] != "none":
        forbid_calls()
    from grader import trace

    _hide_grader()
    with os.fdopen(outlet, "wb") as stream, trace.tolerant_jax():
        stream.write(wire.pack({"started": True}))
        stream.flush()
        program = trace.load(source, limits["trace_seconds"])
        stream.write(wire.pack({"loaded": True, "faults": program.faults[:20]}))
        stream.flush()
        hung: dict[str, trace.Reply] = {}  # a task that hangs on one mesh is not tried on the next
        for number, ask in enumerate(_asks(read)):
            answer, blobs = hung.get(ask["task"]) or trace.answer(ask, program, limits["trace_seconds"])
            if answer.get("fault", {}).get("kind") == "timeout":
                hung[ask["task"]] = answer, blobs
            stream.write(wire.pack({"number": number} | answer, blobs))
            stream.flush()


def _asks(read: Callable[[int], bytes]) -> Iterator[dict[str, Any]]:
    """All asks, stage by stage: none is in this process before those of the earlier stages were answered."""
    while True:
        try:
            stage, _ = wire.read_frame(read)
        except EOFError:
            return
        yield from stage["asks"]


class Packages:
    """Finds the packages that learners may import, of all those that are installed."""

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        place = self.places.get(name)
        if place is None:
            return None
        if os.path.isdir(place):
            init = os.path.join(place, "__init__.py")
            return importlib.util.spec_from_file_location(name, init, submodule_search_locations=[place])
        return importlib.util.spec_from_file_location(name, place)


def _settle_imports(packages: dict[str, str]) -> None:
    """The standard library and these packages can be imported, in every tier the same.

    The folder of the standard library holds a folder of packages, so that it cannot be listed later: what is in it
    is remembered, for good.
    """
    sys.path[:] = [path for path in sys.path if os.path.basename(path) not in ("site-packages", "dist-packages")]
    for path in sys.path:
        finder = pkgutil.get_importer(path)
        if isinstance(finder, importlib.machinery.FileFinder):
            finder.find_spec("antigravity")  # any name: now the folder has been looked into
            finder.invalidate_caches = lambda: None
    sys.meta_path.append(Packages(packages))  # type: ignore[arg-type]


def _hide_grader() -> None:
    """This package holds formulas and layouts that learners are asked for; it is not theirs to import.

    Notebooks call ``check`` below each exercise, ours or the one that nbgrader releases: here that does nothing.
    """
    for name in [n for n in sys.modules if n.split(".")[0] == "grader"]:
        del sys.modules[name]
    for place in ("grader.notebook", "grader.integrations.nbgrader.check"):
        parts = place.split(".")
        for name in (".".join(parts[: n + 1]) for n in range(len(parts))):
            module = sys.modules.setdefault(name, types.ModuleType(name))
            module.__path__ = []
            parent, _, own = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], own, module)
        sys.modules[place].check = lambda *args, **kwargs: None  # type: ignore[attr-defined]


def _confine(readable: Sequence[str]) -> None:
    """One Landlock domain more, inside of all before: only these paths are readable, only this folder is writable, and
    who is in none but those before cannot be signalled.

    The paths are looked up once, by the worker before its first child: there are hundreds, and a sandbox looks at each.
    """
    from sandlock import Sandbox, confine

    confine(Sandbox(fs_readable=readable, fs_writable=[os.getcwd(), "/dev/null"]))


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


def filter_program(machine: str, pid: int) -> bytes:
    """The seccomp filter as bytes; empty on a machine whose numbers we do not know.

    Threads may be started, processes not. Signals and limits reach this process alone.
    """
    if machine not in ARCHITECTURES:
        return b""
    column, architecture = ARCHITECTURES[machine]
    load, equal, at_least, any_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, kill = 0x7FFF0000, 0x80000000
    number, arch, first, second, third = (
        0,
        4,
        16,
        24,
        32,
    )  # offsets in struct seccomp_data; of an argument its lower half
    refuse = (answer, 0, 0, 0x50000 | EPERM)
    code = [(load, 0, 0, arch), (equal, 1, 0, architecture), (answer, 0, 0, kill), (load, 0, 0, number)]
    if machine == "x86_64":  # the x32 numbers
        code += [(at_least, 0, 1, 0x40000000), refuse]
    for numbers in FORBIDDEN_CALLS.values():
        if (call := numbers[column]) is not None:
            code += [(equal, 0, 1, call), refuse]
    for numbers, error in [
        *((n, 0) for n in SEEM.values()),
        *((n, EXDEV) for n in REPLACE.values()),
        (OPENAT2, ENOSYS),
        (CLONE3, ENOSYS),
    ]:  # fmt: skip  libc falls back to openat and clone
        if (call := numbers[column]) is not None:
            code += [(equal, 0, 1, call), (answer, 0, 0, 0x50000 | error)]
    for numbers, flags in ((OPEN, second), (OPENAT, third)):
        if (call := numbers[column]) is not None:
            code += [(equal, 0, 4, call), (load, 0, 0, flags), (any_bit, 0, 1, NAMELESS),
                     (answer, 0, 0, 0x50000 | EOPNOTSUPP), (answer, 0, 0, allow)]  # fmt: skip
    code += [(equal, 0, 4, CLONE[column]), (load, 0, 0, first), (any_bit, 1, 0, CLONE_THREAD), refuse,
             (answer, 0, 0, allow)]  # fmt: skip
    for numbers, orders in OWNERS.values():
        code += [(equal, 0, 2 + 2 * len(orders), numbers[column]), (load, 0, 0, second)]
        for order in orders:
            code += [(equal, 0, 1, order), refuse]
        code.append((answer, 0, 0, allow))
    for name, numbers in SELF_ONLY.items():
        code += [(equal, 0, 5, numbers[column]), (load, 0, 0, first), (equal, 2, 0, pid)]
        code += [(equal, 1, 0, 0 if name == "prlimit64" else pid), refuse, (answer, 0, 0, allow)]
    code.append((answer, 0, 0, allow))
    return b"".join(struct.pack("HBBI", *line) for line in code)


def forbid_calls() -> None:
    """Install the filter; there is no way back. Where seccomp is refused, so is the submission."""
    program = filter_program(platform.machine(), os.getpid())
    if not program:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    about = Program(len(program) // 8, ctypes.addressof(code))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(about), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot install the system call filter")


def _close_all_but(inlet: int, outlet: int) -> tuple[int, int]:
    """Descriptors 10 and 11 are the way in and out; 0, 1 and 2 lead nowhere; all others are closed."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):  # first: any of these numbers may be 10 or 11
        os.dup2(null, fd)
    inlet, outlet = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (inlet, outlet))
    os.dup2(inlet, 10)
    os.dup2(outlet, 11)
    os.closerange(3, 10)
    os.closerange(12, 65536)
    return 10, 11


def _cap(what: int, limit: int, more: int = 0) -> None:
    with contextlib.suppress(ValueError, OSError):  # a lower hard limit is fine
        resource.setrlimit(what, (limit, limit + more))


def _relay(out: int, pid: int, limits: dict[str, float], scratch: str, stages: Stages, send: Callable) -> str:
    """Pass the child's frames on; says how it ended: done, timeout, flood, disk, threads, garbage or what it died of."""
    received, looked = 0, time.monotonic()
    in_all = Allowance(pid, limits["total_seconds"])

    def read(n: int) -> bytes:
        nonlocal received, looked
        received += n
        if received > MAX_ANSWER:
            raise wire.BadFrame("flood")
        data = bytearray()
        while len(data) < n:
            # Until its first word is read it is nobody's fault; the word waits, however late we are.
            if stages.begun and time.monotonic() > looked + LOOK_SECONDS:
                looked = time.monotonic()
                if is_over_quota(scratch):
                    raise wire.BadFrame("disk")
                if _threads(pid) > MAX_THREADS:
                    raise wire.BadFrame("threads")
            readable, writable, _ = select.select([out], stages.writable, [], LOOK_SECONDS)
            if (stages.begun or not readable) and (this_one.over or in_all.over):
                raise TimeoutError
            if writable:
                stages.hand_out()
            if not readable:
                continue
            part = os.read(out, n - len(data))
            if not part:
                raise EOFError
            data += part
        raw.extend(data)
        return bytes(data)

    stray = 0
    while True:
        this_one = Allowance(pid, limits["trace_seconds"] + GRACE)
        raw = bytearray()  # the frame as it came: made anew, its header could outgrow what a frame may have
        try:
            body, _ = wire.read_frame(read, max_header=MAX_HEADER, max_blobs=MAX_ANSWER)
        except TimeoutError:
            return "timeout"
        except EOFError:
            if stages.begun and is_over_quota(scratch):  # however fast it was
                return "disk"
            return "done" if stages.done else _how_it_ended(pid)
        except wire.BadFrame as error:
            return str(error) if str(error) in ("flood", "disk", "threads") else "garbage"
        if stages.takes(body):
            stages.hand_out()
            send({"from": "child"}, [bytes(raw)])
        elif (stray := stray + 1) > MAX_STRAY:
            return "flood"


def _how_it_ended(pid: int) -> str:
    """What a child that says no more died of, without collecting it; ``silent`` for one that lives on."""
    wait = Allowance(pid, GRACE)
    while not (ended := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
        if wait.over:
            return "silent"
        time.sleep(0.001)
    if ended.si_code == os.CLD_EXITED:
        return f"exited with {ended.si_status}"
    return "timeout" if ended.si_status == signal.SIGXCPU else f"died of signal {ended.si_status}"


def _kill_all(pid: int) -> bool:
    """Kill every descendant: orphans come to us, because we are their subreaper. False when some are left."""
    for _ in range(15_000):
        for child in _children() or [pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        time.sleep(0.002)
    return False


def _children() -> list[int]:
    """Direct children; deeper ones reach us as these die."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listing:
            return [int(n) for n in listing.read().split()]
    except OSError:  # macOS, or a sandbox without /proc: there the one child cannot fork
        return []


def _threads(pid: int) -> int:
    """Threads of a process; 0 where /proc is not to be had (there the launcher counts)."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) for line in status if line.startswith("Threads:")), 0)
    except OSError:
        return 0


# -- the scratch folder ------------------------------------------------------------------------


def is_over_quota(folder: str) -> bool:
    """More than MAX_SCRATCH bytes or MAX_SCRATCH_FILES entries, or a folder that cannot be looked into."""
    size, entries, folders = 0, 0, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as listing:
                for entry in listing:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if size > MAX_SCRATCH or entries > MAX_SCRATCH_FILES:
                        return True
        except FileNotFoundError:  # deleted while we looked
            continue
        except OSError:
            return True
    return False


def empty(root: str) -> bool:
    """Delete what is in a folder that others filled: of any depth and names, with folders that may not be listed.

    What is in a folder is moved up before the folder goes: no path grows longer than a system, or a sandbox that
    resolves paths, can take. Returns whether all is gone; never raises.
    """
    try:
        os.chmod(root, 0o700)
        top = os.open(root, FOLDER)
    except OSError:
        return False
    try:
        todo = _folders_left(top)
        while todo:
            with contextlib.suppress(OSError):  # what is left is seen in the end
                todo += _move_up(todo.pop(), top)
        return not os.listdir(top)
    except OSError:
        return False
    finally:
        os.close(top)


def _move_up(name: str, top: int) -> list[str]:
    """Delete a folder of ``top``; the folders that were in it, now in ``top`` by names that nobody could take before."""
    os.chmod(name, 0o700, dir_fd=top)
    inner = os.open(name, FOLDER, dir_fd=top)
    moved = []
    try:
        for folder in _folders_left(inner):
            os.chmod(folder, 0o700, dir_fd=inner)  # who moves a folder writes to it: ".." changes
            moved.append(secrets.token_hex(16))
            os.rename(folder, moved[-1], src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return moved


def _folders_left(fd: int) -> list[str]:
    """Delete the files of a folder; the names of the folders in it."""
    folders = []
    for name in os.listdir(fd):
        try:
            os.unlink(name, dir_fd=fd)
        except OSError:  # a folder, or what cannot be deleted: opening it will tell
            folders.append(name)
    return folders


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
