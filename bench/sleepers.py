"""Measure how much longer a class takes if one student of each module submits a function that sleeps forever.

    python bench/sleepers.py [--students 20] [--modules 01 02 ...] [--jobs 2] [--nbgrader]

For each module, the script makes the class of ``load.py``, and a copy of it in which the first function of one student
sleeps in an endless loop. It grades one class directly after the other, so that the load on the machine is similar.
With ``--nbgrader``, the classes are nbgrader assignments, and ``shardlings nbgrader grade`` grades them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The folder bench comes last: its nbgrader.py would hide the package nbgrader.
sys.path[:1] = [str(ROOT), str(ROOT / "tests")]
sys.path.append(str(ROOT / "bench"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

import classroom  # noqa: E402
import load  # noqa: E402

from grader.course.finding import find_course  # noqa: E402
from grader.course.loading import Course  # noqa: E402
from grader.integrations.nbgrader import folder  # noqa: E402

SLEEPER = "import time\n\n\ndef {task}(*args, **kwargs):\n    while True:\n        time.sleep(1)\n"


def make(course: Course, module: str, students: int, place: Path, as_notebooks: bool) -> tuple[Path, Path]:
    """Write a class below ``place``, and a copy in which one student's first function sleeps. Return both folders."""
    usual, slow = place / "usual", place / "slow"
    name = next(name for name, of in course.module_of.items() if of == module and course.exercise(name).tasks)
    task = next(iter(course.exercise(name).tasks))
    if as_notebooks:
        folder.init(course, usual)
        subprocess.run(["nbgrader", "generate_assignment", module], cwd=usual, capture_output=True, check=True)
        classroom.make_class(course, usual, module, students)
        shutil.copytree(usual, slow)
        path = slow / "submitted" / "student000" / module / f"{module}.ipynb"
        book = json.loads(path.read_text())
        for cell in book["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == folder.cell_name(name, task):
                cell["source"] = SLEEPER.format(task=task)
        path.write_text(json.dumps(book))
    else:
        load.make(course, module, students, 0.2, usual)
        shutil.copytree(usual, slow)
        (slow / "student00000" / f"{name}.py").write_text(SLEEPER.format(task=task))
    return usual, slow


def graded(work: Path, module: str, jobs: int, as_notebooks: bool) -> float:
    """Grade a class with an empty cache, and return the wall time in seconds."""
    words = ["nbgrader", "grade", str(work), module] if as_notebooks else ["grade", str(work), "--out", f"{work}.out"]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "grader", *words, "-j", str(jobs)],
        cwd=ROOT, env=os.environ | {"SHARDLINGS_CACHE": f"{work}.cache"}, capture_output=True, text=True,
    )  # fmt: skip
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
    parser.add_argument("--nbgrader", action="store_true")
    args = parser.parse_args()
    course = find_course(ROOT)
    more = 0.0
    for module in (m.id for m in course.config.modules if m.id.startswith(tuple(args.modules))):
        if not any(course.exercise(name).tasks for name in course.module(module).exercises):
            continue
        with tempfile.TemporaryDirectory() as place:
            usual, slow = (
                graded(work, module, args.jobs, args.nbgrader)
                for work in make(course, module, args.students, Path(place), args.nbgrader)
            )
        more += slow - usual
        load_ = os.getloadavg()[0]
        print(
            f"{module}: {usual:.1f} s, with a sleeper {slow:.1f} s, {slow - usual:+.1f} s (load {load_:.1f})",
            flush=True,
        )
    print(f"all modules: {more:+.1f} s")


if __name__ == "__main__":
    main()
