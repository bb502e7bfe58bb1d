"""Compute all inputs, right answers and texts again in other processes: they must be equal on every machine.

Values must not depend on the order of a set, the day, the folder or the number of processors. So the other processes
change all four. The processes have limits of time and memory, because an exercise's code may never end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.authoring import inputs
from grader.authoring.drawing import CONSTANT, CPU_SECONDS, DIGEST, Drawn, drawn_of, too_large, too_long
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import AuthorError, Exercise
from grader.sandbox.temporary import home

HASH_SEEDS = ("2718", "31415", "4669")
"""The hash seeds of the other processes. The order of a set depends on the hash seed: two processes often agree on the
order of a small set, and four processes rarely do.
"""
DEPENDS = "the order of a set, hash(), random numbers, the time, the folder or the machine"


@dataclass(frozen=True)
class Drawing:
    """The values that another process computed for an exercise. ``problem`` says why the process failed, if it did."""

    drawn: list[Drawn] = field(default_factory=list)
    problem: str = ""


class Redrawn:
    """The values that other processes compute for exercises. The processes start on first use.

    Args:
        hash_seeds: the hash seed of each process, which decides the order of sets.
        seconds: limit of CPU time for one exercise.
    """

    def __init__(
        self,
        course: Course,
        names: Sequence[str],
        hash_seeds: Sequence[str] = HASH_SEEDS,
        seconds: float = CPU_SECONDS,
    ) -> None:
        self._course, self._names, self._hash_seeds, self._seconds = course, names, hash_seeds, seconds
        self._found: list[dict[str, Drawing]] = []
        self._lock = threading.Lock()

    def stopped(self, exercise: Exercise) -> str:
        """Return why the exercise's inputs and right answers cannot be computed within limits; '' if they can be."""
        return next((one.problem for one in self._drawings(exercise) if one.problem), "")

    def problems(self, exercise: Exercise) -> Iterator[str]:
        """Yield a problem for each value that this process and the other processes compute differently.

        A differing constant of the author's file is reported only if no other value differs.
        """
        here = {(what, where): value for what, where, value in drawn_of(exercise)}
        found: dict[str, str] = {}
        for other in self._drawings(exercise):
            for what, where, value in other.drawn:
                if (one := here.get((what, where), value)) != value:
                    found.setdefault(what, _problem(what, where, one, value))
        if len(found) > 1:
            found.pop(CONSTANT, None)
        yield from found.values()

    def _drawings(self, exercise: Exercise) -> list[Drawing]:
        with self._lock:
            if not self._found:
                with ThreadPoolExecutor() as pool:
                    self._found = list(pool.map(self._drawn, self._hash_seeds))
        return [of_process[exercise.id] for of_process in self._found if exercise.id in of_process]

    def _drawn(self, hash_seed: str) -> dict[str, Drawing]:
        left, found = list(self._names), dict[str, Drawing]()
        while left:
            lines, ended = self._process(left, hash_seed)
            for line in lines:
                if "name" in line:
                    found[line["name"]] = Drawing(line.get("drawn", []), line.get("problem", ""))
            if not ended:
                break
            if not lines:
                raise CourseError(f"a second process could not draw the inputs: {ended}")
            found[lines[-1].get("began") or lines[-1]["name"]] = Drawing(problem=ended)
            left = [name for name in left if name not in found]
        return found

    def _process(self, names: Sequence[str], hash_seed: str) -> tuple[list[dict[str, Any]], str]:
        """Run a process. Return the JSON objects that it prints, and why it ended early ('' if it did not)."""
        with tempfile.TemporaryDirectory(dir=home()) as folder:
            course = Path(folder) / "course"
            course.symlink_to(self._course.root.resolve(), target_is_directory=True)
            command = [sys.executable, "-m", "grader.authoring.drawing"]
            command += [str(course / "course.yaml"), str(self._seconds), *names]
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, env=_environment(folder, hash_seed)
            )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines, self._ended(done.returncode, done.stderr.decode(errors="replace"))

    def _ended(self, code: int, errors: str) -> str:
        if code in (-signal.SIGXCPU, -signal.SIGALRM):
            return too_long(self._seconds)
        if code < 0:
            name = signal.Signals(-code).name
            return f"the process that computes inputs and answers ended with {name}; perhaps {too_large()}"
        return (errors.strip().splitlines() or [f"the process ended with status {code}"])[-1][-300:] if code else ""


def differences(exercise: Exercise, redrawn: Redrawn) -> Iterator[str]:
    """Yield a problem for each result that other processes compute differently, or for code that never ends."""
    if stopped := redrawn.stopped(exercise):
        yield stopped
        return
    try:
        yield from list(inputs.undecided_draws(exercise)) or redrawn.problems(exercise)
    except AuthorError as error:
        yield str(error)


def _problem(what: str, where: str, one: str, two: str) -> str:
    if what.endswith(": inputs"):
        return f"{what.removesuffix(': inputs')}: each process draws different inputs: draw only with the given rng"
    if what == CONSTANT:
        what, where = f"the constant {where}", ""
    at = f" with {where}" if where else ""
    both = "" if one.startswith(DIGEST) else f" ({one} in one, {two} in the other)"
    return f"{what}{at} differs between two processes{both}: it must not depend on {DEPENDS}"


def _environment(folder: str, hash_seed: str) -> dict[str, str]:
    # Drop XLA_FLAGS, because these flags may set a number of devices. JAX_NUM_CPU_DEVICES sets the number here.
    kept = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    changed = {"HOME": folder, "PWD": folder, "TMPDIR": folder, "USER": "another", "LOGNAME": "another"}
    changed["JAX_NUM_CPU_DEVICES"] = "3"
    return {**kept, **changed, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
