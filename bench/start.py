"""Measure the time until a command shows something, and compare it with `import jax` in the same round.

first   `grade` of the examples, until the first report is on disk, with an empty cache. The grader grades the solutions
        before it grades submissions for the first time. So the script measures `grade` twice: with ungraded solutions,
        and after the solutions were graded.
check   `check` of one exercise in a new process, compared with a process that imports JAX and multiplies one sharded
        matrix by hand.
watch   from a save of the file to the result that a running `watch` prints. CPU seconds: of the processes of `watch`.
help, list   `check --help` and `list`, the first commands that a learner types.

The commands of a round run one after another, so that other load on the machine affects all of them. CPU seconds
include all processes that a command starts. The script prints medians and ratios; --json FILE writes all numbers.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "bench")]

from spending import CLEAN, Took, of_processes, whole  # noqa: E402

from grader.common.files import write_atomic  # noqa: E402
from grader.course.finding import find_course  # noqa: E402
from grader.course.reference import answers, reference_source  # noqa: E402

MODULE, EXERCISE = "03_matmuls", "c3_contracting"
RESULT = b"checked at "
BY_HAND = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
a, b = (np.random.default_rng(0).normal(size=s).astype("float32") for s in ((48, 32), (32, 40)))
one = jax.device_put(a, NamedSharding(mesh, P(None, "x")))
two = jax.device_put(b, NamedSharding(mesh, P("x", None)))
scatter = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)
product = jax.jit(jax.shard_map(scatter, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x")))
assert np.allclose(product(one, two), a @ b, atol=1e-4)
"""


def first_report(known: Path, isolation: str) -> Took:
    """Run ``grade`` until there is a report. ``known``: the folder that remembers which solutions were graded."""
    with tempfile.TemporaryDirectory() as place:
        out, words = Path(place, "out"), ["--only", MODULE, "--isolation", isolation, "--out", str(Path(place, "out"))]
        command = [sys.executable, "-m", "grader", "grade", str(ROOT / "examples" / "submissions"), *words]
        env = CLEAN | {"XDG_CACHE_HOME": str(known), "SHARDLINGS_CACHE": str(Path(place, "store"))}
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not any((out / "reports").glob("[!.]*.json")):
            time.sleep(0.002)
        took = time.perf_counter() - start
        process.send_signal(signal.SIGINT)
        if process.wait() not in (0, 130):
            sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return took, 0.0


def save(file: Path) -> Took:
    """Run ``watch`` on the file, save the file, and return the cost from the save to the result.

    At the end, the file has its first contents again.
    """
    command = [sys.executable, "-u", "-m", "grader", "watch", file.stem, "--work", str(file.parent)]
    text = file.read_text(encoding="utf-8")
    none, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=CLEAN, stdin=none, stdout=pipe, stderr=none) as process:
        assert process.stdout
        results = (line for line in process.stdout if RESULT in line)
        next(results)
        before, start = of_processes(process.pid), time.perf_counter()
        file.write_text(f"{text}\n# {start}\n", encoding="utf-8")
        next(results)
        took = time.perf_counter() - start, of_processes(process.pid) - before
        process.send_signal(signal.SIGINT)
    file.write_text(text, encoding="utf-8")
    return took


def sides(place: Path, isolation: str) -> dict[str, Callable[[], Took]]:
    """Return the measured commands, each with its name, in the order in which a round runs them."""
    course, work = find_course(ROOT), place / "work"
    work.mkdir()
    exercise = course.exercise(EXERCISE)
    text = reference_source(exercise, answers(course, exercise, "me"))
    (work / f"{EXERCISE}.py").write_text(text, encoding="utf-8")
    grader = (sys.executable, "-m", "grader")
    known = [place / "known"]

    def never() -> Took:
        known[0] = Path(tempfile.mkdtemp(dir=place))
        return first_report(known[0], isolation)

    return {
        "import jax": lambda: whole(sys.executable, "-c", "import jax"),
        "by hand": lambda: whole(sys.executable, "-c", BY_HAND),
        "check": lambda: whole(*grader, "check", EXERCISE, "--work", str(work)),
        "check, confined": lambda: whole(*grader, "check", EXERCISE, "--work", str(work), "--isolation", isolation),
        "watch": lambda: save(work / f"{EXERCISE}.py"),
        "first report, with ungraded solutions": never,
        "first report, with graded solutions": lambda: first_report(known[0], isolation),
        "check --help": lambda: whole(*grader, "check", "--help"),
        "list": lambda: whole(*grader, "list"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-first", action="store_true", help="leave out the first reports, which take longest")
    parser.add_argument("--isolation", default="auto")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        every = sides(Path(place), args.isolation)
        measured = {name: of for name, of in every.items() if not (args.without_first and name.startswith("first"))}
        found: dict[str, list[Took]] = {name: [] for name in measured}
        for _ in range(args.rounds):
            for name, side in measured.items():
                found[name].append(side())
    for name, times in found.items():
        seconds, cpu = (statistics.median(part) for part in zip(*times, strict=True))
        base = "by hand" if name.startswith("check") and "help" not in name else "import jax"
        clock = int(cpu > 0)  # compare CPU seconds if known: on a busy machine they vary less than wall time
        ratio = statistics.median(t[clock] / b[clock] for t, b in zip(times, found[base], strict=True)) if cpu else 0.0
        wall = statistics.median(t[0] / b[0] for t, b in zip(times, found[base], strict=True))
        also = f"   CPU {cpu:5.2f} s, {ratio:4.2f} times" if cpu else ""
        print(f"{name:36} {seconds:6.2f} s, {wall:5.2f} times {base}{also}")
    if args.json:
        write_atomic(args.json, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
