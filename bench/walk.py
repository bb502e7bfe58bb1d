"""List the files that one submission passes through inside ``grade_batch``, and count the changes between files.

    python bench/walk.py [--functions]

The script counts calls of functions in the grader's own process, in all threads, and the templates of pages. It does
not count calls in confined processes, or imports of modules. The script grades two submissions of one exercise
each: d7 with one answered question, and c3 of ``examples`` with a misconception. No result comes from the cache. The
grader grades the references before the counting begins.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = f"{ROOT / 'grader'}/"
sys.path[:1] = [str(ROOT)]
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from grader.batch import canary  # noqa: E402
from grader.batch.folder import Folder, grade_batch  # noqa: E402
from grader.batch.grade import Grader  # noqa: E402
from grader.course.finding import find_course  # noqa: E402
from grader.course.loading import Course  # noqa: E402
from grader.course.reference import answers, reference_source  # noqa: E402
from grader.intake.reading import read  # noqa: E402
from grader.sandbox.tiers import best_tier  # noqa: E402

CHEN = ROOT / "examples" / "submissions" / "chen" / "c3_contracting.py"


class Walk:
    """Counts calls by file, and changes from one file to another.

    Attributes:
        calls: how often each function was called, by file; the files are in the order of their first calls.
        changes: how often two successive calls of a thread were of functions in different files.
    """

    def __init__(self) -> None:
        self.calls: dict[str, Counter[str]] = {}
        self.changes = 0
        self._last = threading.local()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name == "<module>" or not code.co_filename.startswith(PACKAGE):
            return
        name = code.co_filename.removeprefix(PACKAGE)
        if name != getattr(self._last, "file", ""):
            self._last.file = name
            self.changes += 1
        self.calls.setdefault(name, Counter())[code.co_qualname] += 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the calls in this thread and in all threads that it starts."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def one_answer(course: Course, name: str) -> str:
    """Return a submission that answers only the first question of an exercise."""
    exercise = course.exercise(name)
    first = list(answers(course, exercise, "ada").items())[:1]
    return reference_source(exercise, dict(first))


def walked(course: Course, name: str, text: str, place: Path) -> Walk:
    """Grade a submission of one exercise, and return how often each of the grader's functions was called."""
    place.mkdir()
    (place / f"{name}.py").write_text(text)
    walk = Walk()
    with Grader(course, best_tier()) as grader, Folder(place / "out", course) as folder:
        work = {"ada": read(place, "ada", course.module_of, course.handed_out)}
        canary.prove(grader, [name])
        with walk.counting():
            grade_batch(grader, folder, work, [name], lambda total, what: nullcontext(lambda text: None))
    return walk


def show(name: str, walk: Walk, functions: bool) -> None:
    print(f"{name}: {len(walk.calls)} files, {walk.changes} changes of file")
    for number, (file, calls) in enumerate(walk.calls.items(), 1):
        print(f"  {number:3} {file:40} {len(calls):3} functions, {sum(calls.values()):6} calls")
        if functions:
            print(*(f"        {called:60} {count:6}" for called, count in calls.items()), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true", help="list the functions of each file as well")
    functions = parser.parse_args().functions
    course = find_course(ROOT)
    works = {"d7_bus_bandwidth": one_answer(course, "d7_bus_bandwidth"), "c3_contracting": CHEN.read_text()}
    with tempfile.TemporaryDirectory() as folder:
        # With an empty cache, the grader first grades its own solutions (the canary), so workers start before the count.
        os.environ["XDG_CACHE_HOME"] = folder
        for name, text in works.items():
            show(name, walked(course, name, text, Path(folder, name)), functions)


if __name__ == "__main__":
    main()
