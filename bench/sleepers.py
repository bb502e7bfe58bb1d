"""Measure how much longer a class takes if one student of each module submits a function that sleeps forever.

    python bench/sleepers.py [--students 20] [--modules 01 02 ...] [--rounds 2] [--jobs 2]

The class is that of ``load.py``, with all given modules in each student's folder. In a copy of it, one student of each
module has a file whose first function sleeps in an endless loop. Each round grades both classes with an empty cache,
then both again with the filled cache. The copies are graded right after each other, so that they meet a similar load.
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


def make(course: Course, modules: list[str], students: int, to: Path) -> None:
    """Write a class's submissions of all these modules below ``to``."""
    for module in modules:
        load.make(course, module, students, 0.2, to / module)
        shutil.copytree(to / module, to / "all", dirs_exist_ok=True)
        shutil.rmtree(to / module)


def add_sleepers(course: Course, modules: list[str], students: list[Path]) -> int:
    """Replace one student's file in each module that has a function, and return the number of replaced files."""
    replaced = 0
    for number, module in enumerate(modules):
        names = [name for name, of in course.module_of.items() if of == module and course.exercise(name).tasks]
        if names:
            task = next(iter(course.exercise(names[0]).tasks))
            (students[number % len(students)] / f"{names[0]}.py").write_text(SLEEPER.format(task=task))
            replaced += 1
    return replaced


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
    """Print the wall times of both classes, and how much longer the class with sleepers takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=20)
    parser.add_argument("--modules", nargs="*", default=[""], help="prefixes of modules; by default all modules")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    course = find_course(ROOT)
    modules = [m.id for m in course.config.modules if m.id.startswith(tuple(args.modules))]
    with tempfile.TemporaryDirectory() as place:
        usual, slow = Path(place, "usual"), Path(place, "slow")
        make(course, modules, args.students, usual)
        shutil.copytree(usual, slow)
        sleepers = add_sleepers(course, modules, sorted((slow / "all").iterdir()))
        print(f"{args.students} students, {len(modules)} modules, {sleepers} sleepers, -j {args.jobs}")
        for number in range(args.rounds):
            for state in ("empty", "filled"):
                usual_s, slow_s = (
                    graded(
                        work / "all",
                        Path(place, f"{work.name} {number} {state}"),
                        Path(place, f"cache {work.name} {number}"),
                        args.jobs,
                    )
                    for work in (usual, slow)
                )
                print(
                    f"cache {state}: {usual_s:.1f} s, with sleepers {slow_s:.1f} s, {slow_s - usual_s:+.1f} s "
                    f"(load {os.getloadavg()[0]:.1f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
