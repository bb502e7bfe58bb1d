"""Measure classes of 10 to 10,000 students: time per submission, memory, size of the class page, cost of a regrade.

    python bench/load.py [--students 10 100 1000] [--module 03_matmuls] [--duplicates 0.2] [--jobs 2] [--without]
        [--json FILE]
    python bench/load.py --make FOLDER --students 1000

A class is made from a seed: the course's solutions, misconceptions and stubs, each in a style of its own. A fraction of
the students (``--duplicates``) submits an earlier student's files, byte for byte. For each class, the command measures
three whole runs of ``grade``: with an empty cache, again without any change, and after a change of one check's
tolerance (in a copy of the course). ``--without`` adds a fourth run without the cache, and compares its files with the
files of the third run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "tests")]
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import classroom  # noqa: E402

from grader.course.finding import find_course  # noqa: E402
from grader.course.loading import Course  # noqa: E402
from grader.course.reference import answers, reference_source  # noqa: E402
from grader.exercise import Task  # noqa: E402

# Run the command, then write the CPU seconds of all its processes and the peak memory of its main process in MiB.
COMMAND = """
import resource, sys
from grader.cli import app
told = sys.argv.pop(1)
try:
    app()
finally:
    own, workers = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(one.ru_utime + one.ru_stime for one in (own, workers))
    print(cpu, own.ru_maxrss / 1024, file=open(told, "w"))
"""
# ``another_tolerance`` changes the first line of a module that contains this text.
CHECKED = "    expect_close(seen.out, seen.a @ seen.b)"


@dataclass(frozen=True)
class Measured:
    """The cost of one run of ``grade``.

    Attributes:
        seconds: wall time.
        cpu: CPU seconds of all processes of the run, which vary less than wall time on a busy machine.
        parent_mib: the peak memory of the command's own process, without workers.
    """

    seconds: float
    cpu: float
    parent_mib: float


def make(course: Course, module: str, students: int, duplicates: float, to: Path) -> None:
    """Write ``students`` folders below ``to``. Equal arguments give equal folders."""
    rng = random.Random(f"load {students} {duplicates}")
    texts: dict[tuple[str, str], str] = {}
    made: list[Path] = []
    for number in range(students):
        place = to / f"student{number:05}"
        if made and rng.random() < duplicates:
            shutil.copytree(rng.choice(made), place)
            continue
        place.mkdir(parents=True)
        for name, choice in classroom.drawn(course, module, number).items():
            if choice != classroom.LEFT:
                if (name, choice) not in texts:
                    texts[name, choice] = _work(course, name, choice)
                (place / f"{name}.py").write_text(f"# take {rng.randrange(10**9)}\n{texts[name, choice]}")
        made.append(place)


def _work(course: Course, name: str, choice: str) -> str:
    exercise = course.exercise(name)
    misconception = exercise.misconceptions.get(choice)
    found = answers(course, exercise, "load")
    if misconception is not None and not isinstance(misconception.of, Task):
        found |= classroom.answers(course, exercise, misconception, None)
    return reference_source(
        exercise, found, misconception if misconception and isinstance(misconception.of, Task) else None
    )


def graded(course: Path, module: str, work: Path, out: Path, store: Path | None, jobs: int, *more: str) -> Measured:
    """Run ``grade`` once from its start to its end. ``store``: the folder of the cache; None for no cache."""
    words = [
        "grade", str(work), "--only", module, "--course", str(course / "course.yaml"), "--out", str(out), "-j", str(jobs),
        "--json", *more, *([] if store else ["--no-store"]),
    ]  # fmt: skip
    env = os.environ | {"SHARDLINGS_CACHE": str(store or "off"), "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as place:
        told = Path(place, "mib")
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, str(told), *words], cwd=ROOT, env=env, capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            sys.exit(f"grade ended with {done.returncode}: {done.stderr[-2000:]}")
        return Measured(seconds, *map(float, told.read_text().split()))


def another_tolerance(course: Path, module: str) -> str:
    """Change the tolerance of one check, and return the check's exercise."""
    path = next(p for p in sorted((course / "solutions" / module).glob("*.py")) if CHECKED in p.read_text())
    path.write_text(path.read_text().replace(CHECKED, CHECKED.replace(")", ", terms=2048)"), 1))
    return path.stem


def reports_of(out: Path) -> dict[str, bytes]:
    """Return, by path, the contents of the files in ``out`` that a second grading of the class must not change."""
    # Files that depend on the time, or on earlier gradings into ``out``.
    left_out = (".lock", "grades.sqlite", "changes.csv", "changes.html")
    files = (p for p in out.rglob("*") if p.is_file() and p.name not in left_out and not p.name.startswith(".tmp-"))
    return {str(p.relative_to(out)): p.read_bytes() for p in files}


def one_class(module: str, students: int, duplicates: float, jobs: int, place: Path, without: bool) -> dict[str, Any]:
    """Make one class, grade it several times, and return all measurements."""
    course, work, out, store = place / "course", place / "work", place / "out", place / "store"
    for part in ("solutions", "exercises"):
        shutil.copytree(ROOT / part, course / part)
    shutil.copy(ROOT / "course.yaml", course)
    make(find_course(course), module, students, duplicates, work)
    runs: dict[str, Measured] = {}

    def run(what: str, to: Path, remember: Path | None = store) -> None:
        runs[what] = graded(course, module, work, to, remember, jobs)
        print(f"{students} students, {what}: {runs[what]}", file=sys.stderr)

    run("first", out)
    run("unchanged", out)
    changed = another_tolerance(course, module)
    run("another tolerance", out)
    found: dict[str, Any] = {"students": students, "duplicates": duplicates, "changed": changed}
    if without:
        run("without a store", place / "again", None)
        found["equal without a store"] = reports_of(out) == reports_of(place / "again")
    found |= {
        "seconds": {what: run.seconds for what, run in runs.items()},
        "cpu": {what: run.cpu for what, run in runs.items()},
        "parent_mib": {what: run.parent_mib for what, run in runs.items()},
        "store_mib": sum(p.stat().st_size for p in store.iterdir()) / 2**20,
        "class_page_mib": (out / "index.html").stat().st_size / 2**20,
    }
    return found


def show(found: dict[str, Any]) -> None:
    students, first, cpu = found["students"], found["seconds"]["first"], found["cpu"]
    print(f"{students} students, {found['duplicates']:.0%} duplicates; changed: one tolerance of {found['changed']}")
    for what, seconds in found["seconds"].items():
        print(
            f"  {what:18} {seconds:8.2f} s  {seconds / students:7.4f} s a submission  {first / seconds:6.1f}x  "
            f"CPU {cpu[what]:7.1f} s {cpu['first'] / cpu[what]:6.1f}x  parent {found['parent_mib'][what]:5.0f} MiB"
        )
    print(f"  store {found['store_mib']:.1f} MiB, class page {found['class_page_mib']:.2f} MiB", end="")
    print(f", equal without a store: {found['equal without a store']}" if "equal without a store" in found else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--module", default="03_matmuls")
    parser.add_argument("--duplicates", type=float, default=0.2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--without", action="store_true", help="grade once more without a store, and compare")
    parser.add_argument("--make", type=Path, help="only make the first class, in this folder")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.make:
        make(find_course(ROOT), args.module, args.students[0], args.duplicates, args.make)
        return
    every = []
    for students in args.students:
        with tempfile.TemporaryDirectory() as place:
            every.append(one_class(args.module, students, args.duplicates, args.jobs, Path(place), args.without))
        show(every[-1])
    if args.json:
        args.json.write_text(json.dumps(every, indent=2) + "\n")


if __name__ == "__main__":
    main()
