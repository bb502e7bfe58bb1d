"""What does isolation cost? One batch of honest submissions in every tier, alternately, as ratios.

Target: isolation adds at most 15 % to the time of a batch. Medians of alternating
rounds; each round is a whole batch with fresh workers and different inputs, so nothing is remembered.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from pathlib import Path

from grader.batch.grade import Grader
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.intake.submission import Chunk, Source, Submission
from grader.sandbox.tiers import TIERS, available

ROOT = Path(__file__).resolve().parent.parent
MODULE = "03_matmuls"
STUDENTS, ROUNDS, JOBS = 60, 3, 2


def students(course: Course, names: list[str], count: int) -> list[Submission]:
    """Full marks, with a comment that makes every source another one."""
    found = []
    for number in range(count):
        sources = {}
        for name in names:
            text = reference_source(course.exercise(name), {}) + f"\n# {number}\n"
            sources[name] = Source(f"{name}.py", (Chunk(f"{name}.py", text),))
        found.append(Submission(f"s{number}", sources, (), str(number)))
    return found


def batch(course: Course, tier: str, work: list[Submission], names: list[str], seed: str) -> float:
    course.config = course.config.model_copy(update={"seed": seed})
    failed: list[Exception] = []

    def done(student: str, report: object) -> None:
        if isinstance(report, Exception):
            failed.append(report)

    start = time.perf_counter()
    with Grader(course, tier, JOBS) as grader:
        grader.warm()
        grader.batch({one.student: lambda one=one: one for one in work}, names, done)
        took = time.perf_counter() - start
    if failed:
        raise failed[0]
    return took


def main() -> None:
    course = find_course(ROOT)
    names = list(course.module(MODULE).exercises)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else STUDENTS
    work = students(course, names, count)
    tiers = [tier for tier in TIERS if not available(tier)]
    times: dict[str, list[float]] = {tier: [] for tier in tiers}
    for number in range(ROUNDS):
        for tier in tiers:
            times[tier].append(batch(course, tier, [dataclasses.replace(w) for w in work], names, f"{tier} {number}"))
    base = statistics.median(times["none"])
    print(f"{count} submissions of {MODULE}, {JOBS} at a time, {ROUNDS} rounds; seconds include starting workers")
    for tier in tiers:
        middle = statistics.median(times[tier])
        print(
            f"{tier:9} {middle:6.2f} s  {middle / base:5.2f} times none   rounds {', '.join(f'{t:.2f}' for t in times[tier])}"
        )


if __name__ == "__main__":
    main()
