"""Compare three ways to grade an nbgrader assignment.

1. Stock nbgrader runs hidden tests.
2. ``nbgrader autograde`` calls our grader.
3. ``shardlings nbgrader grade`` grades in parallel.

    python bench/nbgrader.py [--students 60] [--jobs 2] [--module 03_matmuls] [--kills 50]

The class is generated from a seed, from the course's own solutions and misconceptions. Stock nbgrader gets the plain
tests that an instructor would write, on the same meshes, shapes and number of inputs, without isolation.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Replace the first entry, which is the folder bench: its nbgrader.py would hide the package nbgrader.
sys.path[:1] = [str(ROOT), str(ROOT / "tests")]
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

import classroom  # noqa: E402
import nbformat  # noqa: E402

from grader.course.finding import find_course  # noqa: E402
from grader.course.loading import Course  # noqa: E402
from grader.exercise import Call, Cases, Exercise, Quantity  # noqa: E402
from grader.integrations.nbgrader import folder  # noqa: E402
from grader.judging.answers import params_for  # noqa: E402
from grader.judging.plan import rng  # noqa: E402

STOCK_SETUP = """\
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
def check(name): pass
"""

# A hidden test cell as an instructor would write it: run, compare, look at the sharding, count collectives.
STOCK_TESTS = """
import re as _re, functools as _ft, math as _m
import numpy as _np, jax as _jax
from jax.sharding import PartitionSpec as P, NamedSharding as _NS, AxisType as _AT
def _mesh(sizes):
    n = _m.prod(sizes.values())
    return _jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(_AT.Auto,) * len(sizes), devices=_jax.devices()[:n])
def _traced(task, meshes, args, spec, want):
    good = [0, 0, 0]
    for sizes in meshes:
        mesh = _mesh(sizes)
        fn = _jax.jit(_ft.partial(task, mesh=mesh))
        for seed in range(3):
            rng = _np.random.default_rng(seed)
            host = [rng.standard_normal(shape).astype("float32") for shape, _ in args]
            out = fn(*(_jax.device_put(h, _NS(mesh, P(*s))) for h, (_, s) in zip(host, args)))
            _np.testing.assert_allclose(_np.asarray(out), host[0].astype("float64") @ host[1], rtol=1e-4, atol=1e-4)
            assert out.sharding.is_equivalent_to(_NS(mesh, P(*spec)), out.ndim) or spec == "any"
        text = fn.lower(*(_jax.ShapeDtypeStruct(sh, "float32", sharding=_NS(mesh, P(*s))) for sh, s in args)).as_text()
        found = sorted(set(_re.findall(r"stablehlo\\.(all_gather|all_reduce|reduce_scatter|collective_permute)", text)))
        assert want is None or found == want, found
def _called(task, cases):
    for args, want in cases:
        assert task(**args) == want, args
def _points(tests):
    total = 0.0
    for worth, test in tests:
        try:
            test()
            total += worth
        except Exception as error:
            print(type(error).__name__, str(error)[:200])
    return float(total)
def _near(x, want):
    assert abs(float(x) - want) <= 0.02 * abs(want)
"""


def stock_tests(course: Course, name: str) -> list[tuple[float, str]]:
    """Return (points, source code) of each hidden test of one exercise.

    The source code is an expression for a tuple (points, function). The function raises an error for a wrong answer.
    """
    exercise = course.exercise(name)
    tests = [t for task in exercise.tasks for t in _task_tests(exercise, task)]
    asked = [q for q in exercise.questions.values() if isinstance(q.answer, Quantity)]
    for question in asked:
        params = params_for(question, seed=course.config.variants.seed, student=None)
        want = float(classroom.in_unit(question, question(**params)))
        tests.append((question.points, f"({question.points}, lambda: _near({question.name}, {want!r}))"))
    return tests


def stock_cell(course: Course, name: str) -> str:
    """Return the hidden test cell of one exercise for stock nbgrader."""
    exercise = course.exercise(name)
    tests = stock_tests(course, name)
    body = ",\n    ".join(text for _, text in tests)
    asked = [q for q in exercise.questions.values() if isinstance(q.answer, Quantity)]
    total = sum(c.points for c in exercise.checks.values()) + sum(q.points for q in asked)
    return f"### BEGIN HIDDEN TESTS\n{STOCK_TESTS}\nmin({total}, _points([\n    {body}\n]))\n### END HIDDEN TESTS"


def _task_tests(exercise: Exercise, task: str) -> list[tuple[float, str]]:
    checks = [c for c in exercise.checks.values() if c.call.task.name == task]
    worth = sum(c.points for c in checks)
    call = next((c.call for c in checks if isinstance(c.call, Call)), None)
    if call is None:
        asked = {id(c.call): c.call for c in checks if isinstance(c.call, Cases)}.values()
        drawn = [a for c in asked for a in (*c.public, *(c.hidden(rng("stock", task)) if c.hidden else ()))]
        cases = [(args, exercise.tasks[task](**args)) for args in drawn]
        return [(worth, f"({worth}, lambda: _called({task}, {cases!r}))")]
    args = [(array.sized(call.hidden_dims), tuple(array.spec)) for array in call.args.values()]
    return [(worth, f"({worth}, lambda: _traced({task}, {[dict(m) for m in call.meshes]!r}, {args!r}, 'any', None))")]


def make_stock(course: Course, root: Path, module: str) -> None:
    """Write our notebook of the module for stock nbgrader, with hidden tests in its grade cells."""
    book = nbformat.reads(folder.source_notebook(course, module), as_version=4)
    of_cell = {folder.check_cell(e): e for e in course.module(module).exercises}
    for cell in book.cells:
        marks = cell.metadata.get("nbgrader", {})
        if cell.source.startswith("# Run this first"):
            cell.source = STOCK_SETUP
        if marks.get("grade"):
            cell.source += "\n" + stock_cell(course, of_cell[marks["grade_id"]])
            marks["points"] = max(marks["points"], course.exercise(of_cell[marks["grade_id"]]).points)
        elif marks.get("solution"):
            cell.source = f"### BEGIN SOLUTION\n{cell.source}\n### END SOLUTION"
    place = root / "source" / module
    place.mkdir(parents=True)
    (place / f"{module}.ipynb").write_text(nbformat.writes(book))
    (root / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'stock'\n")


def nbgrader(root: Path, *args: str) -> float:
    """Run an nbgrader command, and return its wall time."""
    start = time.perf_counter()
    env = os.environ | {"SHARDLINGS_CACHE": str(root / ".store")}
    done = subprocess.run(["nbgrader", *args], cwd=root, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        sys.exit(f"nbgrader {' '.join(args)} ended with {done.returncode}: {done.stderr[-3000:]}")
    return time.perf_counter() - start


def command(root: Path, module: str, jobs: int) -> list[str]:
    return [sys.executable, "-m", "grader", "nbgrader", "grade", str(root), module, "-j", str(jobs), "--json"]


def shardlings(root: Path, module: str, jobs: int) -> float:
    start = time.perf_counter()
    env = os.environ | {"SHARDLINGS_CACHE": str(root / ".store")}  # a new cache, so that no earlier result is used
    done = subprocess.run(command(root, module, jobs), capture_output=True, text=True, check=False, cwd=ROOT, env=env)
    if done.returncode:
        sys.exit(f"shardlings nbgrader grade ended with {done.returncode}: {done.stderr[-3000:]}")
    return time.perf_counter() - start


def rows(root: Path, module: str) -> list[tuple]:
    """Return every score and comment in the gradebook."""
    from nbgrader.api import Gradebook

    found: list[tuple] = []
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        for one in gradebook.assignment_submissions(module):
            who: Any = one.student.id
            found.append((who, str(one.timestamp), one.score, one.max_score, one.needs_manual_grade))
            for book in one.notebooks:
                found.append((who, book.name, book.late_submission_penalty, book.score))
                for g in book.grades:
                    found.append((who, g.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade))
                for c in book.comments:
                    found.append((who, c.name, c.auto_comment, c.manual_comment))
    return sorted(found, key=repr)


def prepared(course: Course, work: Path, name: str, module: str, students: int) -> Path:
    root = work / name
    if name == "stock":
        make_stock(course, root, module)
    else:
        folder.init(course, root)
    nbgrader(root, "generate_assignment", module)
    classroom.make_class(course, root, module, students)
    return root


def kill_test(course: Course, work: Path, module: str, students: int, jobs: int, kills: int, want: list[tuple]) -> bool:
    """Kill batches (kill -9) ``kills`` times at random moments, resume them, and compare the gradebooks to ``want``."""
    rng, root, done = random.Random(0), work / "killed", 0
    seconds = 1.0
    while done < kills:
        if root.exists():
            shutil.rmtree(root)
        prepared(course, work, "killed", module, students)
        while done < kills:
            start = time.perf_counter()
            batch = subprocess.Popen(
                command(root, module, jobs), cwd=ROOT, start_new_session=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=os.environ | {"SHARDLINGS_CACHE": str(root / ".store")},
            )  # fmt: skip
            try:
                batch.wait(rng.uniform(1.5, 3 + seconds))
                seconds = max(1.0, time.perf_counter() - start)
                break
            except subprocess.TimeoutExpired:
                os.killpg(batch.pid, signal.SIGKILL)
                batch.wait()
                done += 1
        shardlings(root, module, jobs)
        if rows(root, module) != want:
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--stock-students", type=int, default=0, help="fewer for stock, which is slow; 0: all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--module", default="03_matmuls")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        exercises = list(find_course(ROOT).module(args.module).exercises)
        course = classroom.copied(work / "course", **{args.module: exercises})
        stock_class = args.stock_students or args.students
        took: dict[str, float] = {}
        root = prepared(course, work, "stock", args.module, stock_class)
        took["stock nbgrader autograde"] = nbgrader(root, "autograde", args.module) / stock_class
        theirs = prepared(course, work, "theirs", args.module, args.students)
        took["nbgrader autograde, ours"] = nbgrader(theirs, "autograde", args.module) / args.students
        ours = prepared(course, work, "ours", args.module, args.students)
        took[f"shardlings grade -j {args.jobs}"] = shardlings(ours, args.module, args.jobs) / args.students
        took["again, nothing changed"] = shardlings(ours, args.module, args.jobs) / args.students
        stock = took["stock nbgrader autograde"]
        print(f"{args.students} students, module {args.module} ({os.cpu_count()} cores)")
        for name, seconds in took.items():
            print(f"  {name:34} {seconds:7.3f} s a submission   {stock / seconds:6.1f}x")
        want = rows(ours, args.module)
        print(f"  equal gradebooks: {rows(theirs, args.module) == want} ({len(want)} rows)")
        if args.kills:
            equal = kill_test(course, work, args.module, args.students, args.jobs, args.kills, want)
            print(f"  after {args.kills} kills, resumed, equal: {equal}")
        found = {
            "students": args.students,
            "stock_students": stock_class,
            "seconds": took,
            "equal": rows(theirs, args.module) == want,
        }
        if args.json:
            args.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
