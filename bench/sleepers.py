"""Measure how much longer a class takes if one student of each module submits a function that sleeps forever.

    python bench/sleepers.py [--students 20] [--modules 01 02 ...] [--jobs 2]

For each module, the script makes the class of ``load.py``, and a copy of it in which the first function of one student
sleeps in an endless loop. It grades both right after each other, so that both meet a similar load: first with an empty
cache, then with the filled cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "bench")]
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import load  # noqa: E402

from grader.course.finding import find_course  # noqa: E402
from grader.course.loading import Course  # noqa: E402

SLEEPER = "import time\n\n\ndef {task}(*args, **kwargs):\n    while True:\n        time.sleep(1)\n"


def add_sleeper(course: Course, module: str, student: Path) -> bool:
    """Replace the student's file of the module's first exercise with functions. Return False if there is none."""
    names = [name for name, of in course.module_of.items() if of == module and course.exercise(name).tasks]
    if names:
        task = next(iter(course.exercise(names[0]).tasks))
        (student / f"{names[0]}.py").write_text(SLEEPER.format(task=task))
    return bool(names)


def graded(work: Path, out: Path, cache: Path, jobs: int) -> float:
    """Return the wall time of one run of ``grade`` in seconds."""
    command = [sys.executable, "-m", "grader", "grade", str(work), "--out", str(out), "-j", str(jobs), "--quiet"]
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"SHARDLINGS_CACHE": str(cache)}, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1):
        sys.exit(f"grade ended with {done.returncode}: {done.stderr[-2000:]}")
    return seconds


def main() -> None:
    """Print the wall times of both classes by module, and how much longer the classes with sleepers take in all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=20)
    parser.add_argument("--modules", nargs="*", default=[""], help="prefixes of modules; by default all modules")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    course = find_course(ROOT)
    more = {"empty": 0.0, "filled": 0.0}
    for number, module in enumerate(m.id for m in course.config.modules if m.id.startswith(tuple(args.modules))):
        with tempfile.TemporaryDirectory() as place:
            usual, slow = Path(place, "usual"), Path(place, "slow")
            load.make(course, module, args.students, 0.2, usual)
            shutil.copytree(usual, slow)
            if not add_sleeper(course, module, sorted(slow.iterdir())[number % args.students]):
                continue
            for state in more:
                seconds = [
                    graded(work, Path(place, f"{work.name} {state}"), Path(place, f"cache {work.name}"), args.jobs)
                    for work in (usual, slow)
                ]
                more[state] += seconds[1] - seconds[0]
                print(
                    f"{module}, cache {state}: {seconds[0]:.1f} s, with a sleeper {seconds[1]:.1f} s, "
                    f"{seconds[1] - seconds[0]:+.1f} s (load {os.getloadavg()[0]:.1f})",
                    flush=True,
                )
    print(", ".join(f"all modules, cache {state}: {seconds:+.1f} s" for state, seconds in more.items()))


if __name__ == "__main__":
    main()
