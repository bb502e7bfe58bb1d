"""Compare otter-grader with stock nbgrader. Both graders get equal notebooks, test equal values and use no containers.

    python bench/otter.py [--students 10] [--module 03_matmuls] [--venv build/otter] [--json FILE]

The script creates an environment for otter if it is missing. The environment has the newest otter-grader on the package
index and our version of JAX. ``otter run`` grades one notebook at a time, as otter's documentation says.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def _beside() -> Any:
    """Import ``bench/nbgrader.py`` by its path, because a plain import gives the package ``nbgrader``."""
    spec = importlib.util.spec_from_file_location("bench_nbgrader", ROOT / "bench" / "nbgrader.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stock = _beside()

TESTS = """\
from otter.test_files import test_case
OK_FORMAT = False
name = {name!r}
{helpers}
_TESTS = [
    {tests},
]
"""
ONE = """
@test_case(name="{name} {number}", points={points})
def test_{number}(env):
    globals().update(env)
    _TESTS[{number}][1]()
"""


def otter(at: Path) -> Path:
    """Create the environment if it is missing, and return the folder of its programs."""
    if not (at / "bin" / "otter").is_file():
        venv.create(at, with_pip=True, clear=True)
        wanted = ["otter-grader>=7", f"jax=={version('jax')}", f"jaxlib=={version('jaxlib')}", "ipykernel"]
        subprocess.run([at / "bin" / "pip", "install", "--quiet", *wanted], check=True)
    return at / "bin"


def make_autograder(course: Any, module: str, programs: Path, place: Path) -> Path:
    """Make the zip for ``otter run``, and return its path."""
    tests = place / "tests"
    tests.mkdir(parents=True)
    for name in course.module(module).exercises:
        found = stock.stock_tests(course, name)
        text = TESTS.format(name=name, helpers=stock.STOCK_TESTS, tests=",\n    ".join(test for _, test in found))
        text += "".join(ONE.format(name=name, number=i, points=points) for i, (points, _) in enumerate(found))
        (tests / f"{name}.py").write_text(text)
    (place / "requirements.txt").write_text(f"jax=={version('jax')}\n")
    words = ["generate", "-t", "tests", "-o", "autograder.zip", "-r", "requirements.txt"]
    subprocess.run([programs / "otter", *words], cwd=place, check=True, capture_output=True)
    return place / "autograder.zip"


def graded(programs: Path, autograder: Path, notebook: Path, out: Path) -> tuple[float, float]:
    """Run ``otter run`` once, and return its wall time and the points. Raises SystemExit if otter fails."""
    out.mkdir(parents=True)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "XLA_FLAGS")}
    env["PATH"] = f"{programs}{os.pathsep}{env['PATH']}"
    start = time.perf_counter()
    words = [programs / "otter", "run", "-a", autograder, "-o", out, "--no-logo", notebook]
    done = subprocess.run(words, cwd=out, env=env, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    results = out / "results.json"
    if done.returncode or not results.is_file():
        sys.exit(f"otter run ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    tests = json.loads(results.read_text())["tests"]
    return seconds, float(sum(test.get("score") or 0 for test in tests))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--module", default="03_matmuls")
    parser.add_argument("--venv", type=Path, default=ROOT / "build" / "otter")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    programs = otter(args.venv.absolute())
    told = "import importlib.metadata as m; print(m.version('otter-grader'))"
    which = subprocess.run([programs / "python", "-c", told], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        exercises = list(stock.find_course(ROOT).module(args.module).exercises)
        course = stock.classroom.copied(work / "course", **{args.module: exercises})
        root = stock.prepared(course, work, "stock", args.module, args.students)
        autograder = make_autograder(course, args.module, programs, work / "otter")
        notebooks = sorted(root.glob(f"submitted/*/{args.module}/{args.module}.ipynb"))
        found = [graded(programs, autograder, book, work / f"out{i}") for i, book in enumerate(notebooks)]
    seconds = [took for took, _ in found]
    if not any(points for _, points in found):
        sys.exit("otter gave no student a point: these tests measure nothing")
    print(
        f"otter-grader {which}, otter run: {sum(seconds) / len(seconds):.2f} s a submission, {len(seconds)} submissions"
    )
    if args.json:
        points = [points for _, points in found]
        args.json.write_text(json.dumps({"version": which, "seconds": seconds, "points": points}, indent=2) + "\n")


if __name__ == "__main__":
    main()
