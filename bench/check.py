"""Compare ``check`` with tracing, compiling and running the same functions by hand.

``check`` and the work by hand use the functions, meshes, shapes and inputs of module 03_matmuls. Each round measures
``check`` and the work by hand, one after the other.

warm  One process has imported JAX and started its devices before the timing begins.
      By hand, it jits, lowers, compiles and runs the functions. The grader does all of ``check`` (read, trace, lower,
      admit, compile, run, judge) with warm workers, and takes no results from the cache.
cold  Each round starts a new process. By hand, the process imports JAX and does the work of the warm case.
      The grader's process is ``shardlings check``.

The script prints seconds and ratios, as medians over the rounds, because the machine is noisy.
"""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grader.batch import grade
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.exercise import Call
from grader.intake.submission import Chunk, Source, Submission
from grader.judging import plan
from grader.wire.meshes import make_mesh

ROUNDS = 7
MODULE = "03_matmuls"
ROOT = Path(__file__).resolve().parent.parent


def by_hand(course: Course) -> int:
    """Trace, compile and run every public call on every mesh, as a learner would do without the grader."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    jax.clear_caches()
    done = 0
    for name in course.module(MODULE).exercises:
        for ask in plan.plan(course.exercise(name), public=True, seed=""):
            if not isinstance(ask.of, Call):
                continue
            mesh, task, static = make_mesh(dict(ask.mesh)), ask.of.task.fn, ask.of.static
            shardings = [NamedSharding(mesh, PartitionSpec(*a.spec)) for a in ask.of.args.values()]

            def function(*args: Any, task=task, mesh=mesh, static=static) -> Any:
                return task(*args, mesh=mesh, **static)

            for values in ask.arrays():
                placed = [jax.device_put(v, s) for v, s in zip(values, shardings, strict=True)]
                jax.block_until_ready(jax.jit(function).lower(*placed).compile()(*placed))
                done += 1
    return done


def perfect(course: Course) -> Submission:
    names = course.module(MODULE).exercises
    sources = {n: Source(f"{n}.py", (Chunk(f"{n}.py", reference_source(course.exercise(n), {})),)) for n in names}
    return Submission("bench", sources, (), "")


def alternate(rounds: int, *sides: Callable[[int], object]) -> list[float]:
    """Return the median seconds of each function in ``sides``. Each round calls all functions, one after the other."""
    times: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        for side, kept in zip(sides, times, strict=True):
            start = time.perf_counter()
            side(number)
            kept.append(time.perf_counter() - start)
    return [statistics.median(t) for t in times]


def warm(course: Course) -> None:
    submission, names = perfect(course), list(course.module(MODULE).exercises)
    with grade.Grader(course, "none") as grader:

        def ours(number: int) -> None:
            plan.PUBLIC_SEED = f"bench {number}"  # a new seed makes new inputs, so no result comes from the cache
            grader._plans.clear()
            report = grader.grade(submission, names, public=True)
            assert all(r.status == "passed" for e in report.exercises for r in e.results if r.kind == "check")

        ours(-1)
        count = by_hand(course)
        hand, check = alternate(ROUNDS, lambda _: by_hand(course), ours)
    print(f"warm  {count} programs   by hand {hand:.2f} s   check {check:.2f} s   ratio {check / hand:.2f}")


def cold(course: Course) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, source in perfect(course).sources.items():
            (Path(folder) / f"{name}.py").write_text(source.chunks[0].text)
        clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}

        def ours(number: int) -> None:
            command = [sys.executable, "-m", "grader", "check", "--work", folder, "--json", MODULE]
            subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, check=True)

        def hand(number: int) -> None:
            subprocess.run([sys.executable, __file__, "--by-hand"], cwd=ROOT, env=clean, check=True)

        def jax_only(number: int) -> None:
            subprocess.run([sys.executable, "-c", "import jax"], cwd=ROOT, env=clean, check=True)

        importing, by, check = alternate(3, jax_only, hand, ours)
    print(f"cold  import jax {importing:.2f} s   by hand {by:.2f} s   check {check:.2f} s   ratio {check / by:.2f}")


if __name__ == "__main__":
    here = find_course(ROOT)
    if "--by-hand" in sys.argv:
        by_hand(here)
    else:
        warm(here)
        cold(here)
