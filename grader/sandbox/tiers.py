"""Isolation tiers (kinds of sandboxes): whether a tier works on this machine, and how to start workers in a tier.

Tiers, strongest first:
    sandlock: Landlock and seccomp (Linux with Landlock ABI 6), with a Landlock domain for each child.
    bwrap: namespaces and read-only mounts (bubblewrap), for kernels without Landlock ABI 6.
    none: limits on time, memory and the scratch folder only. Use this tier only for your own code.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader import Mistake
from grader.sandbox import needs
from grader.sandbox.calls import ARCHITECTURES
from grader.wire.limits import (
    MAX_PROCESSES,
    MAX_SCRATCH,
    MAX_SCRATCH_FILES,
    MAX_THREADS,
    MIB,
    STUCK_SECONDS,
    WARN_SECONDS,
)

TIERS = ("sandlock", "bwrap", "none")
# The subfolders of ``grader`` that workers of each role can read.
ROOMS = {
    "trace": ("wire", "sandbox", "learner"),
    "run": ("wire", "sandbox", "common", "runner"),
    "parse": ("wire", "sandbox", "common", "intake"),
}
# The module that answers the requests of each role.
SERVES = {"trace": "grader.learner.child", "run": "grader.runner.serve", "parse": "grader.intake.serve"}
# Size of a scratch folder's own file system: a little above the quota, so that the keeper process can see an excess.
SCRATCH_SIZE, SCRATCH_FILES = MAX_SCRATCH + MIB, MAX_SCRATCH_FILES + 16
HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent


@dataclass(frozen=True)
class Extra:
    """Additional access for a worker that runs programs or parses files. A worker that runs learner Python gets none.

    Attributes:
        platform: the platform on which JAX looks for devices.
        rooms: additional subfolders of the package ``grader`` that the worker may read.
        serves: a module that answers requests in place of the usual module in SERVES.
        readable, writable: additional files and folders that the worker may read or write.
        settings: environment variables.
        unlimited: whether the worker's address space is unlimited, because device drivers reserve much of it.
    """

    platform: str = "cpu"
    rooms: tuple[str, ...] = ()
    serves: str = ""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    unlimited: bool = False


NO_EXTRA = Extra()


class NoIsolation(Mistake):
    """No sandbox works on this machine. The message says what to do."""


@cache
def available(tier: str) -> str:
    """Return "" if the tier (kind of sandbox) works on this machine, else one line with the reason."""
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
    # Under bwrap, only the seccomp filter protects the keeper from its child. The filter needs one of these
    # architectures.
    if platform.machine() not in ARCHITECTURES:
        return f"bwrap needs one of {', '.join(ARCHITECTURES)}, this is {platform.machine()}"
    probe = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, timeout=20)
    return "" if done.returncode == 0 else f"bwrap does not work here: {done.stderr.strip()[:200]}"


@cache
def _bwrap_limits_sizes() -> bool:
    return "--size" in subprocess.run(["bwrap", "--help"], capture_output=True, text=True, timeout=20).stdout


def best_tier(asked: str = "auto") -> str:
    """Return the tier (kind of sandbox) to use.

    Raises NoIsolation if the requested tier is unavailable, or if "auto" finds neither sandlock nor bwrap available.
    """
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


def environment(devices: int, stuck_seconds: float = STUCK_SECONDS, extra: Extra = NO_EXTRA) -> dict[str, str]:
    """Return all environment variables of a worker.

    Args:
        stuck_seconds: wall time after which XLA ends a program whose devices wait for each other.
    """
    flags = f"--xla_force_host_platform_device_count={devices}"
    flags += f" --xla_cpu_collective_call_warn_stuck_timeout_seconds={WARN_SECONDS}"
    if stuck_seconds < STUCK_SECONDS:
        flags += f" --xla_cpu_collective_call_terminate_timeout_seconds={math.ceil(stuck_seconds)}"
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "JAX_PLATFORMS": extra.platform,
        "XLA_FLAGS": flags,
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",  # NumPy's threads wait actively, which would count as CPU time of the submission
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "MALLOC_ARENA_MAX": "4",  # by default, glibc reserves too much memory for many threads on many cores
        "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",  # allows forks on macOS, which are safe before JAX has a backend
    } | dict(extra.settings)


def package(role: str, extra: Extra = NO_EXTRA) -> list[str]:
    """Return the paths in the package ``grader`` that a worker of this role must be able to read."""
    return [str(PACKAGE / "__init__.py"), *(str(PACKAGE / room) for room in (*ROOMS[role], *extra.rooms))]


def command(tier: str, role: str, scratch: str, memory_mib: int, extra: Extra = NO_EXTRA) -> list[str]:
    """Return the command line that starts a worker.

    Raises ValueError if the tier is unknown, or if a worker that runs learner Python would get additional access.
    """
    if tier not in TIERS:
        raise ValueError(f"unknown tier {tier!r}; the tiers are {', '.join(TIERS)}")
    if role == "trace" and extra != NO_EXTRA:
        raise ValueError("a process that runs learner Python gets no extra access")
    python = [sys.executable, "-P", "-s", "-B"]
    memory = "0" if extra.unlimited else str(memory_mib)
    rooms, serves = ":".join([*ROOMS[role], *extra.rooms]), extra.serves or SERVES[role]
    calls = "listed" if (role == "parse" or (role == "run" and extra == NO_EXTRA)) and tier != "none" else "any"
    command = [*python, str(HERE / "start.py"), rooms, serves, role, memory, calls]
    if tier == "none":
        return command
    if tier == "sandlock":  # learner code may read fewer paths than the worker that starts it
        command += [":".join(needs.readable())] if role == "trace" else []
        readable = ":".join([*needs.listable(), *package(role, extra), *extra.readable])
        writable = ":".join([scratch, *extra.writable])
        most = [str(MAX_PROCESSES), str(MAX_THREADS), str(SCRATCH_SIZE), str(SCRATCH_FILES)]
        return [*python, str(HERE / "launcher.py"), writable, readable, *most, *command]
    return [*_bwrap(scratch, package(role, extra), extra), *command]


def _bwrap(scratch: str, package: list[str], extra: Extra) -> list[str]:
    """Return bwrap's command line. Only the scratch folder and the paths ``extra.writable`` are writable."""
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
    for path in extra.readable:
        command += ["--ro-bind", path, path] if path != "/proc" else []
    for path in extra.writable:
        command += ["--dev-bind", path, path]
    quota = ["--size", str(SCRATCH_SIZE), "--tmpfs", scratch] if _bwrap_limits_sizes() else ["--bind", scratch, scratch]
    command += [*quota, "--chdir", scratch]
    for mount in (*holes, "/proc", "/dev", "/"):
        command += ["--remount-ro", mount]
    return [*command, "--"]
