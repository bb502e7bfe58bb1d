"""The cost of commands and processes: wall seconds, and CPU seconds including those of child processes."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "bench")]

from grader.batch.grade import Grader  # noqa: E402
from grader.sandbox.launcher import children  # noqa: E402

Took = tuple[float, float]
"""Wall seconds, and CPU seconds of all processes; the latter are 0 for a command that was stopped."""
CLEAN = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS", "PYTHONDONTWRITEBYTECODE")}


def whole(*words: str, env: dict[str, str] | None = None) -> Took:
    """Run a command to its end, and return its cost. Raises SystemExit if the command fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(words, cwd=ROOT, env=CLEAN | (env or {}), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_processes(*pids: int) -> float:
    """Return the CPU seconds of these processes and of all their descendants, including those that have ended."""
    used, todo = 0.0, list(pids)
    while todo:
        pid = todo.pop()
        todo += children(pid)
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK")
    return used


def by_role(grader: Grader) -> dict[str, float]:
    """Return the CPU seconds so far of this process (``parent``) and of the grader's workers, by role."""
    workers = {worker for host in grader.worker_sets for worker in host.each_worker}
    found: dict[str, float] = defaultdict(float, parent=time.process_time())
    for pid, role in [(worker.process.pid, worker.role) for worker in workers if worker.process]:
        found[role] += of_processes(pid)
    return found
