"""How long does the whole course take: ``verify``, and grading one perfect submission of all modules?

Cold: the command, from its start, with fresh workers. Warm: the same submission again with the workers it left
(programs are remembered), as in the middle of a batch. Ratios of one run, side by side.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main() -> None:
    course = find_course(ROOT)
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "perfect"
        work.mkdir()
        perfect(course, work)
        cold = command("grade", str(work), "--out", str(Path(place) / "out"), "-j", "1")
        submission = read(work, "perfect", course.module_of)
        with Grader(course, best_tier()) as grader:
            for _ in range(2):
                start = time.perf_counter()
                report = grader.grade(submission, list(course.module_of))
                warm = time.perf_counter() - start
        whole = sum(e.points for e in report.exercises)
        assert report.earned == whole, f"{report.earned} of {whole}"
    print(f"one perfect submission, {len(course.module_of)} exercises, {whole:g} points")
    print(f"  cold {cold:6.1f} s   warm {warm:6.1f} s   {cold / warm:.1f}x")
    print(f"  verify -j 2 {command('verify', '-j', '2'):6.1f} s")


if __name__ == "__main__":
    main()
