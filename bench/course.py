"""How long does the whole course take: ``verify``, and grading one perfect submission of all modules?

Cold: the command, from its start, with fresh workers. Warm: the same submission again with the workers it left
(programs are remembered), as in the middle of a batch. Ratios of one run, side by side. What a submission takes warm is, most of it,
JAX tracing and lowering its programs in its own process: those CPU seconds are shown beside it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from grader.batch import workers
from grader.batch.grade import Grader
from grader.course.answers import answers
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.intake.reading import read
from grader.sandbox.tiers import best_tier

ROOT = Path(__file__).resolve().parent.parent


def perfect(course: Course, folder: Path) -> Path:
    """All references with all answers, as a student would hand them in."""
    for name, exercise in course.exercises.items():
        text = reference_source(exercise, answers(course, exercise, "perfect"))
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def command(*words: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "grader.cli", *words], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


def tracing_told(to: list[float]) -> None:
    """From now on the CPU seconds of each learner's process go there."""
    own = workers.Workers._one_child

    def one_child(self: workers.Workers, *about: Any) -> tuple[bool, str, float]:
        ended = own(self, *about)
        to.append(ended[2])
        return ended

    workers.Workers._one_child = one_child  # pyright: ignore[reportAttributeAccessIssue]


def main() -> None:
    course, traced = find_course(ROOT), []
    tracing_told(traced)
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "perfect"
        work.mkdir()
        perfect(course, work)
        cold = command("grade", str(work), "--out", str(Path(place) / "out"), "-j", "1")
        submission = read(work, "perfect", course.module_of)
        with Grader(course, best_tier()) as grader:
            for _ in range(2):
                traced.clear()
                start = time.perf_counter()
                report = grader.grade(submission, list(course.module_of))
                warm = time.perf_counter() - start
        whole = sum(e.points for e in report.exercises)
        assert report.earned == whole, f"{report.earned} of {whole}"
    print(f"one perfect submission, {len(course.module_of)} exercises, {whole:g} points")
    print(f"  cold {cold:6.1f} s   warm {warm:6.1f} s   {cold / warm:.1f}x")
    print(f"  of the warm one {sum(traced):6.1f} CPU s in {len(traced)} learner's processes")
    print(f"  verify -j 2 {command('verify', '-j', '2'):6.1f} s")


if __name__ == "__main__":
    main()
