"""What this machine can do: devices, isolation, versions, and what to install."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
import sys
from dataclasses import dataclass

from grader.sandbox import TIERS, Limits, Worker, WorkerDied, available

OLDEST_JAX = (0, 10, 0)


@dataclass(frozen=True)
class Line:
    """One thing looked at. ``needed``: nothing works without it."""

    name: str
    ok: bool
    told: str
    needed: bool = False


def jax_problem(version: str | None = None) -> str:
    """Empty, or one line when JAX is missing or too old."""
    oldest = ".".join(map(str, OLDEST_JAX))
    try:
        version = version or importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:
        return f"JAX is not installed; pip install 'jax>={oldest}'"
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    return "" if numbers >= OLDEST_JAX else f"JAX {version} is too old; pip install 'jax>={oldest}'"


def examine(devices: int) -> list[Line]:
    """Look at everything. Starts one worker to count simulated devices."""
    lines = [Line("Python", sys.version_info >= (3, 11), platform.python_version(), needed=True)]
    problem = jax_problem()
    lines.append(Line("JAX", not problem, problem or importlib.metadata.version("jax"), needed=True))
    if not problem:
        lines.append(count_devices(devices))
    for tier in TIERS[:2]:
        trouble = available(tier)
        lines.append(Line(f"isolation {tier}", not trouble, trouble or "works"))
    for package, what in (("nbgrader", "grading notebooks: pip install 'shardlings[nbgrader]'"),):
        try:
            lines.append(Line(package, True, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            lines.append(Line(package, False, f"not installed; for {what}"))
    if shutil.which("git") is None:
        lines.append(Line("git", False, "not installed; only the course's authors need it"))
    return lines


def count_devices(devices: int) -> Line:
    """Whether as many devices can be simulated as the course asks for."""
    source = {"name": "probe.py", "chunks": [["probe.py", "import jax\ndef count(): return jax.device_count()\n"]]}
    ask = {"kind": "function", "task": "count", "cases": [{"dict": []}]}
    found = 0
    with Worker("trace", "none", devices, Limits()) as worker:
        try:
            for frame, _ in worker.trace(source, [ask]):
                for value in frame.get("body", {}).get("values", []):
                    found = value.get("value", 0)
        except WorkerDied as died:
            return Line("devices", False, f"the worker ended: {died.stderr[-200:]}", needed=True)
    told = (
        f"{found} simulated devices"
        if found >= devices
        else f"{found} simulated devices, the course asks for {devices}"
    )
    return Line("devices", found >= devices, told, needed=True)
