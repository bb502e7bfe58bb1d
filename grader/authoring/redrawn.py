"""Draw all inputs again in another process, because a class must get equal inputs from every grader.

``python -m grader.authoring.redrawn COURSE NAME ...`` prints a JSON object with the digests of each exercise's inputs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.course.config import CourseError
from grader.course.loading import Course, load_course
from grader.exercise import AuthorError, Exercise
from grader.judging.plan import plan

SEED = "verify"


class Redrawn:
    """The digests of exercises' inputs that another process draws. The other process starts on first use."""

    def __init__(self, course: Course, names: Sequence[str]) -> None:
        self._course, self._names = course, names
        self._found: dict[str, list[str]] | None = None
        self._lock = threading.Lock()

    def problems(self, exercise: Exercise) -> Iterator[str]:
        """Yield a problem for each task whose inputs differ between this process and the other process."""
        with self._lock:
            if self._found is None:
                self._found = self._drawn()
        if exercise.id not in self._found:
            return
        pairs = zip(plan(exercise, public=False, seed=SEED), self._found[exercise.id], strict=False)
        for task in dict.fromkeys(ask.task for ask, digest in pairs if ask.digest != digest):
            yield f"{task}: each process draws other inputs: draw only with the given rng"

    def _drawn(self) -> dict[str, list[str]]:
        command = [
            sys.executable,
            "-m",
            "grader.authoring.redrawn",
            str(self._course.root / "course.yaml"),
            *self._names,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()) as process:
            out, err = process.communicate()
        if process.returncode:
            raise CourseError(f"inputs could not be drawn in another process: {err.decode(errors='replace')[-300:]}")
        return json.loads(out.splitlines()[-1])


def _environment() -> dict[str, str]:
    """Return this process's environment with a changed hash seed, so that sets have a different order."""
    return {**os.environ, "PYTHONHASHSEED": "2718", "PYTHONPATH": os.pathsep.join(sys.path)}


def _digests(course: Course, names: Sequence[str]) -> dict[str, list[str]]:
    found = {}
    for name in course.usable(names)[0]:
        try:
            found[name] = [ask.digest for ask in plan(course.exercise(name), public=False, seed=SEED)]
        except AuthorError:  # the parent process reports this error
            continue
    return found


if __name__ == "__main__":
    print(json.dumps(_digests(load_course(Path(sys.argv[1])), sys.argv[2:])))
