"""The worker process: reads asks from its standard input, answers on its standard output.

Started by ``sandbox.start`` as a script, confined before it runs. Two roles:

trace: imports JAX, starts no backend (a fork is sound only until one exists), and forks a keeper per
    submission, which forks the child before it reads a word of the submission. So no child ever finds
    an earlier submission in its memory. The child is confined once more, to its own scratch folder; it
    can neither signal nor read its keeper, and what it leaves running is killed.
run: compiles and executes programs, one after another; learner Python never comes here.

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
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from grader import wire

GRACE = 2.0
MAX_ANSWER = 16 << 20
PR_SET_CHILD_SUBREAPER = 36
PR_SET_DUMPABLE = 4


def main(role: str) -> None:
    asks, answers = _own_streams()
    if role == "trace":  # all that a confined child needs, before it is confined, and no more
        from grader import trace  # noqa: F401
    else:
        from grader import run  # noqa: F401

    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    send = _sender(answers)
    send({"ready": True}, [])
    while os.read(asks, 1):
        if role == "run":
            _run(*wire.read_frame(_reader(asks)), send)
            continue
        keeper = os.fork()
        if keeper == 0:
            try:
                _keep(asks, send)
            finally:
                os._exit(0)
        os.waitpid(keeper, 0)


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

    program, *rest = blobs
    try:
        answer, out = run.run(header["ask"], program, run.unpack_inputs(header, rest))
    except Exception as error:  # XLA refuses some programs only while compiling; not our crash
        message = f"XLA could not compile or run it: {type(error).__name__}: {str(error)[:300]}"
        answer, out = {"fault": {"kind": "compile", "message": message, "line": None, "file": "", "type": ""}}, []
    send(answer, out)


# -- trace -------------------------------------------------------------------------------------


def _keep(asks: int, send: Callable) -> None:
    """Fork the child, hand it the request, relay its answers, and say how it ended; nothing survives."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    inlet, to_child = os.pipe()
    out, outlet = os.pipe()
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
    header, _ = wire.read_frame(_reader(asks))
    scratch = os.path.join(header["scratch"], "work")
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    with contextlib.suppress(BrokenPipeError), os.fdopen(to_child, "wb") as stream:
        stream.write(wire.pack(header | {"scratch": scratch}))
    ended = _relay(out, pid, header["limits"], send)
    _kill_all(pid)
    shutil.rmtree(scratch, ignore_errors=True)
    send({"end": ended}, [])


def _child(inlet: int, outlet: int) -> None:
    """Learner code runs below this frame."""
    inlet, outlet = _close_all_but(inlet, outlet)
    header, _ = wire.read_frame(_reader(inlet))
    os.close(inlet)
    limits, scratch = header["limits"], header["scratch"]
    os.chdir(scratch)
    os.environ.clear()
    os.environ.update(header["env"] | {"HOME": scratch, "TMPDIR": scratch})
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_FSIZE, int(limits["file_mib"]) << 20)
    _cap(resource.RLIMIT_AS, int(limits["memory_mib"]) << 20)
    _cap(resource.RLIMIT_CPU, int(limits["total_seconds"]) + 5)
    if header["confine"]:
        _prctl(PR_SET_DUMPABLE, 0)
        _confine(header["readable"], scratch)
    from grader import trace

    _hide_grader()
    with os.fdopen(outlet, "wb") as stream:
        stream.write(wire.pack({"started": True}))
        stream.flush()
        program = trace.load(header["source"], limits["trace_seconds"])
        stream.write(wire.pack({"loaded": True, "faults": program.faults[:20]}))
        stream.flush()
        for number, ask in enumerate(header["asks"]):
            answer, blobs = trace.answer(ask, program, limits["trace_seconds"])
            stream.write(wire.pack({"number": number} | answer, blobs))
            stream.flush()


def _hide_grader() -> None:
    """This package holds formulas and layouts that learners are asked for; it is not theirs to import."""
    for name in [n for n in sys.modules if n.split(".")[0] == "grader"]:
        del sys.modules[name]
    sys.modules["grader"] = None  # type: ignore[assignment]


def _confine(readable: list[str], scratch: str) -> None:
    """A second Landlock domain: only this scratch folder is writable, the parent cannot be signalled."""
    from sandlock import Sandbox, confine

    confine(Sandbox(fs_readable=readable, fs_writable=[scratch, "/dev/null"]))


def _close_all_but(inlet: int, outlet: int) -> tuple[int, int]:
    """Descriptors 10 and 11 are the way in and out; 0, 1 and 2 lead nowhere; all others are closed."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(inlet, 10)
    os.dup2(outlet, 11)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, 10)
    os.closerange(12, 65536)
    return 10, 11


def _cap(what: int, limit: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # a lower hard limit is fine
        resource.setrlimit(what, (limit, limit))


def _relay(out: int, pid: int, limits: dict[str, float], send: Callable) -> str:
    """Pass the child's frames on; says how it ended: done, timeout, flood, garbage or died."""
    received = 0
    deadline = time.monotonic() + limits["total_seconds"]

    def read(n: int) -> bytes:
        nonlocal received
        received += n
        if received > MAX_ANSWER:
            raise wire.BadFrame("flood")
        data = b""
        while len(data) < n:
            left = min(frame_deadline, deadline) - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                raise TimeoutError
            part = os.read(out, n - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    sent = 0
    while True:
        frame_deadline = time.monotonic() + limits["trace_seconds"] + GRACE
        try:
            header, blobs = wire.read_frame(read, max_header=MAX_ANSWER, max_blobs=MAX_ANSWER)
        except TimeoutError:
            return "timeout"
        except EOFError:
            return "done" if _exit_status(pid) == 0 else _how_it_died(pid)
        except wire.BadFrame as error:
            return "flood" if str(error) == "flood" else "garbage"
        sent += 1
        if sent > 100_000:
            return "flood"
        send({"from": "child", "body": header}, blobs)


_statuses: dict[int, int] = {}


def _exit_status(pid: int) -> int:
    """The child's wait status, waiting a moment for it; a child that lingers is killed."""
    until = time.monotonic() + 1.0
    while pid not in _statuses:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            _statuses[pid] = status
        elif time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        else:
            time.sleep(0.001)
    return _statuses[pid]


def _how_it_died(pid: int) -> str:
    status = _exit_status(pid)
    if os.WIFSIGNALED(status):
        return f"died of signal {os.WTERMSIG(status)}"
    return f"exited with {os.WEXITSTATUS(status)}"


def _kill_all(pid: int) -> None:
    """Kill every descendant: orphans come to us, because we are their subreaper."""
    for _ in range(1000):
        for child in _children() or [pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(0.002)
    _statuses.pop(pid, None)


def _children() -> list[int]:
    """Direct children; deeper ones reach us as these die."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as listing:
            return [int(n) for n in listing.read().split()]
    except OSError:  # macOS, or a kernel without this file
        return []


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(sys.argv[1])
