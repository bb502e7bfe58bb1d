"""Starts, talks to and kills the worker processes, confined by the strongest tier at hand.

Tiers:
    sandlock: Landlock and seccomp (Linux with Landlock ABI 6), and a Landlock domain for each child.
    bwrap: namespaces and read-only mounts (bubblewrap), for other kernels.
    none: limits on time, memory and the scratch folder only. For one's own work.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grader import needs, wire, worker

TIERS = ("sandlock", "bwrap", "none")
HERE = Path(__file__).resolve().parent
START_SECONDS = 600.0
GONE_SECONDS = 30.0
MAX_STDERR = 64 << 10
# Launchers die with the *thread* that started them (PR_SET_PDEATHSIG): this one lives as long as we do.
_starter = ThreadPoolExecutor(1, thread_name_prefix="starter")


class NoIsolation(Exception):
    """No sandbox works on this machine; the message says what to do."""


class WorkerDied(Exception):
    """The worker ended or went silent.

    Attributes:
        reason: timeout, died or garbage.
        stderr: its last words.
        phase: what it was doing: ``starting``; ``asked`` (nothing of the submission was touched yet), ``traced`` (learner
            code was running); of a program ``asked`` (it was being read), ``compiling`` or ``executing``.
        ours: nothing works here, not even what is ours; True until somebody has tried (``Runner.run``).
    """

    def __init__(self, reason: str, stderr: str = "", phase: str = "") -> None:
        super().__init__(reason)
        self.reason, self.stderr, self.phase, self.ours = reason, stderr, phase, True


@dataclass(frozen=True)
class Limits:
    """Bounds: seconds of CPU time, MiB.

    ``trace_seconds`` are for loading, and for each task; ``total_seconds`` for all that one submission does, its files
    together; ``run_seconds`` for one program, ``total_run_seconds`` for all programs of one submission.
    """

    trace_seconds: float = 20.0
    total_seconds: float = 120.0
    run_seconds: float = 60.0
    total_run_seconds: float = 180.0
    memory_mib: int = 6144
    file_mib: int = 16

    def as_dict(self) -> dict[str, float]:
        return dict(vars(self))


# -- tiers -------------------------------------------------------------------------------------


@cache
def available(tier: str) -> str:
    """Empty when the tier works here, else one line saying why not."""
    if tier == "none":
        return ""
    if sys.platform != "linux":
        return f"{tier} needs Linux, this is {platform.system()}"
    return _sandlock_problem() if tier == "sandlock" else _bwrap_problem()


def _sandlock_problem() -> str:
    try:
        import sandlock
    except (ImportError, OSError) as error:
        return f"sandlock is not installed ({error}); pip install sandlock"
    have, need = sandlock.landlock_abi_version(), sandlock.min_landlock_abi()
    if have < need:
        return f"sandlock needs Landlock ABI {need}, this kernel has {have if have > 0 else 'none'}"
    return ""


def _bwrap_problem() -> str:
    if shutil.which("bwrap") is None:
        return "bwrap is not installed; apt-get install bubblewrap"
    if platform.machine() not in worker.ARCHITECTURES:  # only the filter keeps a child from its keeper
        return f"bwrap needs one of {', '.join(worker.ARCHITECTURES)}, this is {platform.machine()}"
    probe = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=20)
    return "" if done.returncode == 0 else f"bwrap does not work here: {done.stderr.strip()[:200]}"


def best_tier(asked: str = "auto") -> str:
    """The tier to use. Raises NoIsolation when the one asked for, or any, is not to be had."""
    if asked != "auto":
        if asked not in TIERS:
            raise NoIsolation(f"unknown isolation {asked!r}; choose one of {', '.join(TIERS)}")
        if problem := available(asked):
            raise NoIsolation(f"isolation {asked} is not available: {problem}")
        return asked
    for tier in ("sandlock", "bwrap"):
        if not available(tier):
            return tier
    raise NoIsolation(
        "no sandbox works here, so other people's code is not run: "
        f"{available('sandlock')}; {available('bwrap')}. "
        "See `shardlings doctor`, or pass --isolation none for code you trust"
    )


def environment(devices: int) -> dict[str, str]:
    """What a worker's environment holds, and nothing else."""
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "PYTHONHASHSEED": "0",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "MALLOC_ARENA_MAX": "4",  # else a process of many threads, on many processors, reserves more than it may
        "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",  # macOS: we fork before there is a backend
    }


def _package(role: str) -> list[str]:
    """The files of this package that a worker of this role needs before learner code starts."""
    if role == "run":
        return [str(HERE)]
    return [
        str(HERE / f"{name}.py") for name in ("__init__", "absent", "looks", "tolerance", "trace", "wire", "worker")
    ]


def _command(tier: str, role: str, scratch: str, memory_mib: int) -> list[str]:
    command = [sys.executable, "-P", "-s", "-B", str(HERE / "worker.py"), role, str(memory_mib)]
    if tier == "none":
        return command
    if tier == "sandlock":  # what learner code may read is less than what a start takes
        command += [":".join(needs.readable())] if role == "trace" else []
        launcher = [sys.executable, "-P", "-s", "-B", str(HERE / "launcher.py")]
        return [*launcher, scratch, ":".join([*needs.listable(), str(HERE)]), str(memory_mib), *command]
    return [*_bwrap(scratch, _package(role)), *command]


def _bwrap(scratch: str, package: list[str]) -> list[str]:
    """Nothing can be written but the scratch folder, which is emptied after each submission."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
               "--proc", "/proc", "--dev", "/dev"]  # fmt: skip
    library = needs.library()
    holes = [str(library / name) for name in needs.INSTALLED if (library / name).is_dir()]
    for path in [str(library), *holes, *needs.readable(), *package]:
        if path in holes:
            command += ["--tmpfs", path]
        elif os.path.islink(path) and path in needs.interpreter():
            command += ["--symlink", os.readlink(path), path]
        elif not path.startswith(("/dev", "/proc")) and Path(path).parent != library:
            command += ["--ro-bind", path, path]
    command += ["--bind", scratch, scratch, "--chdir", scratch]
    for mount in (*holes, "/proc", "/dev", "/"):
        command += ["--remount-ro", mount]
    return [*command, "--"]


# -- one worker --------------------------------------------------------------------------------


class Worker:
    """A worker process of one role, started when first needed and again after it died."""

    def __init__(self, role: str, tier: str, devices: int, limits: Limits) -> None:
        self.role, self.tier, self.devices, self.limits = role, tier, devices, limits
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch = ""
        self._phase = "starting"
        self._stderr: Any = None
        self._told = 0  # length of standard error when the current request was made

    def start(self) -> None:
        """Start the process without waiting until it is ready, so that several start side by side."""
        if self._process is not None:
            return
        self._scratch = tempfile.mkdtemp(prefix="shardlings-")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed in kill()
        self._process = _starter.submit(
            subprocess.Popen,
            _command(self.tier, self.role, self._scratch, self.limits.memory_mib),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment(self.devices) | {"HOME": self._scratch, "TMPDIR": self._scratch},
            cwd=self._scratch,
            start_new_session=True,
        ).result()
        self._ready, self._told, self._phase = False, 0, "starting"

    def _await_ready(self) -> None:
        self.start()
        if not self._ready:
            header, _ = self._read(time.monotonic() + START_SECONDS)
            if not header.get("ready"):
                raise WorkerDied("garbage", self.last_words(), self._phase)
            self._ready = True
        self._phase = "asked"

    def trace(
        self, source: dict[str, Any], asks: Sequence[dict[str, Any]], secret: Sequence[dict[str, Any]] = ()
    ) -> Iterator[tuple[dict, list[bytes]]]:
        """Frames of a fresh child: untrusted ``{"from": "child", "body": ...}``, then our ``{"end": how}``.

        Bodies come in order, each once: ``{"started": True}``, ``{"loaded": True, ...}``, ``{"number": 0, ...}`` and so
        on, those of ``secret`` after those of ``asks``. The child gets ``asks`` when its source is loaded, and
        ``secret`` when all of ``asks`` are answered.
        """
        try:
            yield from self._frames(source, asks, secret)
        except WorkerDied as died:
            if died.phase != "traced" or not self.answers():
                raise
            # The submission has done it: others are answered.
            yield (
                {"from": "worker", "end": "timeout" if died.reason == "timeout" else "died of signal 9", "cpu": 0.0},
                [],
            )

    def answers(self) -> bool:
        """Whether a fresh worker answers a submission of our own."""
        self.kill()
        source = {"name": "ours", "chunks": [["ours", "def go():\n    return 1"]]}
        ask = {"kind": "function", "task": "go", "cases": [{"dict": []}]}
        try:
            bodies = [header.get("body", {}) for header, _ in self._frames(source, [ask], ())]
        except WorkerDied:
            return False
        return any(body.get("values") == [{"value": 1}] for body in bodies)

    def _frames(
        self, source: dict[str, Any], asks: Sequence[dict[str, Any]], secret: Sequence[dict[str, Any]]
    ) -> Iterator[tuple[dict, list[bytes]]]:
        self._await_ready()
        request = {
            "limits": self.limits.as_dict(),
            "env": environment(self.devices),
            "scratch": self._scratch,
            "tier": self.tier,
            "packages": needs.packages(),
            "counts": [len(asks), len(secret)],
        }
        deadline = time.monotonic() + worker.backstop(self.limits.total_seconds) + START_SECONDS
        stages = [wire.pack({"asks": list(stage)}) for stage in (asks, secret)]
        self._write(b"!" + wire.pack(request, [wire.pack(source), *stages]))
        while True:
            header, blobs = self._read(deadline)
            if header.get("from") == "child":
                self._phase = "traced"  # its first word is that it begins
                header["body"], blobs = wire.read_frame(io.BytesIO(blobs[0]).read)
            if "end" in header and not header.pop("clean"):  # before it is told: who is told may ask no further
                self.kill()
            yield header, blobs
            if "end" in header:
                return

    def run(self, ask: dict[str, Any], program: bytes, inputs: list[list[Any]]) -> tuple[dict, list[bytes]]:
        """One program's facts and outputs, and the ``cpu`` seconds that it took."""
        packed = [[wire.pack_array(a) for a in one] for one in inputs]
        about = [[about for about, _ in one] for one in packed]
        header = {"ask": ask, "inputs": about, "seconds": self.limits.run_seconds}
        self._await_ready()
        self._write(b"!" + wire.pack(header, [program, *(data for one in packed for _, data in one)]))
        deadline = time.monotonic() + worker.backstop(self.limits.run_seconds)
        while True:
            header, blobs = self._read(deadline)
            if "phase" not in header:
                return header, blobs
            self._phase = header["phase"]

    def runs(self) -> bool:
        """Whether a fresh worker runs a program of our own, on all devices."""
        self.kill()
        try:
            self._await_ready()
            self._write(b"!" + wire.pack({"ours": True, "seconds": self.limits.run_seconds}))
            return self._read(time.monotonic() + worker.backstop(self.limits.run_seconds))[0].get("runs") is True
        except WorkerDied:
            return False

    # pipes

    def _write(self, data: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._told = os.fstat(self._stderr.fileno()).st_size
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError:
            words = self.last_words()
            self.kill()
            raise WorkerDied("died", words, self._phase) from None

    def _read(self, deadline: float) -> tuple[dict, list[bytes]]:
        assert self._process is not None and self._process.stdout is not None
        fd = self._process.stdout.fileno()

        def read(n: int) -> bytes:
            parts, have = [], 0
            while have < n:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([fd], [], [], left)[0]:
                    raise TimeoutError
                part = os.read(fd, min(n - have, 1 << 20))
                if not part:
                    raise EOFError
                parts.append(part)
                have += len(part)
            return b"".join(parts)

        try:
            return wire.read_frame(read)
        except (TimeoutError, EOFError, wire.BadFrame) as error:
            if isinstance(error, EOFError):  # it has ended, or is about to: it will tell of what
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(GONE_SECONDS)
            words = self.last_words()
            kinds = {TimeoutError: "timeout", EOFError: "died", wire.BadFrame: "garbage"}
            reason = "timeout" if self.kill() == signal.SIGPROF else kinds[type(error)]
            raise WorkerDied(reason, words, self._phase) from None

    def last_words(self) -> str:
        """The end of what the worker wrote to standard error."""
        if self._stderr is None:
            return ""
        size = os.fstat(self._stderr.fileno()).st_size
        start = max(self._told, size - MAX_STDERR)  # nothing that was said about an earlier submission
        return os.pread(self._stderr.fileno(), MAX_STDERR, start).decode("utf-8", "replace")

    def kill(self) -> int:
        """End the process and all it started; the next request starts a fresh one.

        Returns the signal of which it had died, if it had: SIGPROF ends what used up its CPU time.
        """
        process, self._process = self._process, None
        if process is None:
            return 0
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        if self.tier == "sandlock":  # the launcher ends its sandbox, orphans included
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        self._stderr.close()
        self._stderr = None
        worker.empty(self._scratch)
        with contextlib.suppress(OSError):
            os.rmdir(self._scratch)
        return -code if code < 0 else max(0, code - 128)  # as launchers tell it

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
