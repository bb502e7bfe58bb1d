"""Run the course's references on one device of this machine: check their values, and time matmuls.

    python bench/devices.py [gpu|tpu] [--only EXERCISE] [--no-times] [--out measured.json]

To check values, each call of each reference runs on a mesh whose axes all have size 1, which fits on one device. The
checks of the call are judged on this mesh with the tolerance of the device's arithmetic. Such a mesh proves nothing
about sharding, so no grade depends on it; it only tests the arithmetic. In the output, "worst" is each exercise's
largest error, divided by the tolerance. A reference may need several devices, such as a ring of 3. So if a call fails
on one simulated device, the script leaves the call out.

The time of a matmul is the median of seven rounds. A round calls ``a @ b`` twenty times, and then waits for the
results.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.course.config import CourseError
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.declared import AuthorError
from grader.exercise import Call, Exercise
from grader.expect import values
from grader.intake.submission import Chunk, Source
from grader.judging.judge import judge_checks
from grader.judging.plan import PUBLIC_SEED, Ask, inputs_of, rng
from grader.sandbox.tiers import best_tier
from grader.wings.devices.backends import backend_of
from grader.wings.devices.devices import NoDevices, RealDevices

ROOT = Path(__file__).resolve().parent.parent
SHAPES = [
    *((n, n, n, d) for d in ("bfloat16", "float32") for n in (1024, 2048, 4096, 8192)),
    (16384, 16384, 16384, "bfloat16"),
    (1024, 8192, 4096, "bfloat16"),  # a ring step of [8192, 8192] @ [8192, 32768] on eight devices: one device's matmul
    (8192, 8192, 4096, "bfloat16"),  # the matmuls of all eight ring steps of one device as a single matmul
]
TIMING = """
import json, statistics, sys, time
import jax, jax.numpy as jnp
found = []
for m, k, n, dtype in json.loads(sys.argv[1]):
    for precision in (None, "highest") if dtype == "float32" else (None,):
        a = jax.random.normal(jax.random.key(0), (m, k), dtype)
        b = jax.random.normal(jax.random.key(1), (k, n), dtype)
        product = jax.jit(lambda a, b: jnp.matmul(a, b, precision=precision))
        jax.block_until_ready([product(a, b) for _ in range(3)])
        rounds = []
        for _ in range(7):
            begun = time.perf_counter()
            for _ in range(20):
                c = product(a, b)
            jax.block_until_ready(c)
            rounds.append((time.perf_counter() - begun) / 20)
        low, typical, high = statistics.quantiles(rounds, n=4)
        found.append({"m": m, "k": k, "n": n, "dtype": dtype, "precision": precision or "default", "seconds": typical,
                      "spread": (high - low) / typical, "tflops": 2 * m * k * n / typical / 1e12})
device = jax.devices()[0]
print(json.dumps({"device": device.device_kind, "platform": device.platform, "jax": jax.__version__, "matmuls": found}))
"""


def asks_of(exercise: Exercise) -> list[Ask]:
    """Return requests for every call, with public and with hidden sizes, on a mesh whose axes all have size 1.

    Calls whose arrays do not fit a mesh of size 1 are left out.
    """
    asks = []
    for call in dict.fromkeys(c for check in exercise.checks.values() for c in check.calls):
        if not isinstance(call, Call) or call.timing:
            continue
        mesh = dict.fromkeys(call.meshes[0], 1)
        for hidden in (False, True):
            dims, static = call.sizes(mesh, hidden=hidden), call.keywords(hidden=hidden)
            with suppress(AuthorError, ValueError):
                inputs = list(inputs_of(call, mesh, dims, static, rng(PUBLIC_SEED, exercise.id)))
                asks.append(
                    Ask(
                        call,
                        mesh,
                        dims,
                        inputs,
                        static=static,
                        check_vma=call.task.modes[0],
                        hidden_sizes=hidden,
                        exercise=exercise.id,
                    )
                )
    return asks


def judged(course: Course, grader: Grader, names: list[str]) -> dict[str, Any]:
    """Judge the checks on meshes of size 1, and return counts of verdicts, the problems, and the largest errors."""
    counts, wrong, worst = Counter(), [], {}
    plain = values._close

    def close(got: Any, want: Any, terms: int, scale: float | None, dtype: str | None) -> None:
        if got.factors:
            with suppress(Exception):
                whole = values.wide(np.asarray(want))
                largest = scale if scale is not None else float(np.max(np.abs(whole), initial=0.0))
                error = float(np.max(np.abs(values.wide(got.value) - whole), initial=0.0))
                bound = values._tolerance(got.due, terms, scale, got.factors) * largest
                worst[name] = max(worst.get(name, 0.0), error / bound)
        plain(got, want, terms, scale, dtype)

    values._close = close
    for name in names:
        exercise = course.exercise(name)
        asks = asks_of(exercise)
        if not asks:
            continue
        source = Source(f"{name}.py", (Chunk(f"{name}.py", reference_source(exercise, {})),))
        with grader.pool.lent() as workers:
            answered, _ = collect(workers, source, asks)
        asked = {id(ask.of) for ask in asks}
        for result in judge_checks(exercise, answered, public=False):
            if not all(id(call) in asked for call in exercise.checks[result.name].calls):
                continue
            kind = "passed" if result.status == "passed" else "not run there" if result.unjudged else "left out"
            if "wrong on real ones" in result.reason:
                kind = "wrong"
            counts[kind] += 1
            if kind in ("wrong", "not run there"):
                wrong.append(f"{name}/{result.name}: {result.reason}")
    values._close = plain
    return {"checks": dict(counts), "problems": wrong, "worst": {n: round(w, 4) for n, w in sorted(worst.items())}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", nargs="?", default="cpu")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--isolation", default="none")
    asked = parser.parse_args()
    backend, course = backend_of(asked.backend), find_course(ROOT)
    try:
        names = course.asked(asked.only)
        devices = RealDevices(
            backend, best_tier(asked.isolation), course.config.limits, 1, tell=lambda text: print(f"note: {text}")
        )
    except (CourseError, NoDevices) as error:
        sys.exit(f"devices: {error}")
    with Grader(course, "none", devices=devices) as grader:
        found = judged(course, grader, names)
    print(f"{devices.text}: {found['checks']}")
    for line in found["problems"]:
        print(f"  {line}")
    print("worst:", ", ".join(f"{name} {ratio:.0%}" for name, ratio in found["worst"].items()) or "-")
    if asked.no_times:
        return
    shapes = SHAPES if asked.backend != "cpu" else [(512, 512, 512, "float32"), (1024, 1024, 1024, "float32")]
    done = subprocess.run([sys.executable, "-c", TIMING, json.dumps(shapes)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"devices: nothing was timed: {done.stderr.strip().splitlines()[-1]}")
    timed = json.loads(done.stdout.splitlines()[-1])
    for one in timed["matmuls"]:
        size = f"{one['m']} x {one['k']} x {one['n']}"
        print(
            f"  {size:22} {one['dtype']:9} {one['precision']:8} {one['seconds'] * 1e3:9.4f} ms {one['tflops']:8.2f} TFLOP/s, spread {one['spread']:.0%}"
        )
    if asked.out:
        about = {"date": date.today().isoformat(), "host": platform.machine(), "values": found}
        asked.out.write_text(json.dumps(timed | about, indent=1) + "\n")


if __name__ == "__main__":
    main()
