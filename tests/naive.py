"""A grader of the usual kind: it runs a submission in its own process, together with the tests and the answers.

It is the positive control for ``tests/submissions/hostile``: every attack must gain something here.

Run the file as a program. For each input line ``FOLDER<tab>FILE``, the program forks a new grader. The grader forks
again for the submission in FOLDER, with limits and a few seconds of time. Then the grader kills all remaining
processes, so that the machine stays unchanged, and writes one JSON line about the submission to FILE. At last the
program prints ``done``. Never run this grader on other submissions than those of the corpus.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

SECONDS = 5.0
STATE = {"earlier_submission": "CANARY-of-bob: twice = lambda n: n + n", "scores": []}
TABLE = {"reference_of": "twice", "fn": lambda n: 2 * n}


def reference_twice(n: int) -> int:
    return 2 * n


def twice_is_right(fn) -> bool:
    n = 123457
    want = 2 * n
    return fn(n) == want


def grade(folder: Path) -> float:
    """Grade a submission in this process: import its file, call its functions, compare results, add up points."""
    import jax
    import numpy as np

    score = 0.0
    space: dict[str, Any] = {"__name__": "h1_total"}
    source = (folder / "h1_total.py").read_text(encoding="utf-8")
    exec(compile(source, "h1_total.py", "exec"), space)
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    a = np.random.default_rng(4711).normal(size=(12, 10)).astype("float32")
    if "total" in space:
        placed = jax.device_put(a, jax.NamedSharding(mesh, jax.P("x")))
        function = jax.jit(lambda a: space["total"](a, mesh=mesh))
        np.testing.assert_allclose(function(placed), a.sum(0), rtol=1e-4, atol=1e-4)
        score += 2
        score += function.lower(placed).as_text().count('"stablehlo.all_reduce"') == 1
    if "twice" in space and twice_is_right(space["twice"]):
        score += 1
    if "megabytes" in space and abs(space["megabytes"] - 10) <= 0.2:
        score += 1
    return score


# -- protection of this machine ----------------------------------------------------------------


def run(folder: Path) -> dict:
    """Grade one submission in a fork, and return ``{"name", "score", "output", "died", "survivors"}``."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as home:
        pid = os.fork()
        if pid == 0:
            _inside(folder, output.fileno(), home)
        ended = _wait(pid, time.monotonic() + SECONDS)
        left = [c for c in _children() if c != pid]
        _kill_all(pid)
        output.seek(max(0, output.seek(0, 2) - 100_000))
        text = output.read().decode("utf-8", "replace")
    scores = [line for line in text.splitlines() if line.startswith("SCORE ")]
    score = float(scores[-1].split()[1]) if scores else 0.0
    return {"name": folder.name, "score": score, "output": text[-4000:], "survivors": len(left),
            "died": not ended or not scores}  # fmt: skip


def _inside(folder: Path, output: int, home: str) -> None:
    os.setsid()
    os.chdir(home)
    for fd in (1, 2):
        os.dup2(output, fd)
    for what, limit in ((resource.RLIMIT_AS, 4 << 30), (resource.RLIMIT_FSIZE, 16 << 20), (resource.RLIMIT_CORE, 0),
                        (resource.RLIMIT_CPU, 10)):  # fmt: skip
        resource.setrlimit(what, (limit, limit))
    sys.stdout = sys.stderr = os.fdopen(1, "w")
    score = 0.0
    try:
        score = grade(folder)
    except Exception as error:
        print(type(error).__name__, error)
        traceback.print_exc(limit=-1)
    print("SCORE", score, flush=True)
    sys.exit(0)


def _wait(pid: int, until: float) -> bool:
    while time.monotonic() < until:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return True
        time.sleep(0.02)
    return False


def _children() -> list[int]:
    return [int(n) for n in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def _kill_all(pid: int) -> None:
    """Kill all descendants. This process is a subreaper, so orphaned descendants become its children."""
    for _ in range(2000):
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def grader(folder: Path, answer: Path) -> None:
    """Grade a submission, and write the result to the file ``answer``. The submission may end this process."""
    libc = ctypes.CDLL(None)
    libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    libc.strdup(b"CANARY-in-the-memory-of-the-grader")
    with open(answer, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        print(json.dumps(run(folder)), flush=True)


def main() -> None:
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    import jax  # noqa: F401  once; no backend starts before the forks

    for line in sys.stdin:
        folder, answer = map(Path, line.rstrip("\n").split("\t"))
        pid = os.fork()
        if pid == 0:
            return grader(folder, answer)  # the process must end normally, because some attacks wait for its end
        os.waitpid(pid, 0)
        print("done", flush=True)
    return None


if __name__ == "__main__":
    main()
