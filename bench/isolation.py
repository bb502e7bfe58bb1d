"""Measure the cost of isolation: the CPU time that each sandbox tier adds to a batch of honest submissions, in percent.

The target is that isolation adds at most 15 % to a batch. Results are medians over alternating rounds. Each round is a
whole batch with fresh workers and inputs of its own, so that no result is cached. The output lists the time of starting
the workers as well: its share gets smaller as a batch gets larger. CPU seconds are those of all processes, and vary
less than wall time on a busy machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "bench")]

from spending import Took, of_processes  # noqa: E402

from grader.batch.grade import Grader  # noqa: E402
from grader.common.files import write_atomic  # noqa: E402
from grader.course.finding import find_course  # noqa: E402
from grader.course.loading import Course  # noqa: E402
from grader.course.reference import reference_source  # noqa: E402
from grader.intake.submission import Chunk, Source, Submission  # noqa: E402
from grader.sandbox.tiers import TIERS, available  # noqa: E402

MODULE = "03_matmuls"
STUDENTS, ROUNDS, JOBS = 20, 3, 2


def students(course: Course, names: list[str], count: int) -> list[Submission]:
    """Return submissions with full marks. A comment makes each source unique."""
    found = []
    for number in range(count):
        sources = {}
        for name in names:
            text = reference_source(course.exercise(name), {}) + f"\n# {number}\n"
            sources[name] = Source(f"{name}.py", (Chunk(f"{name}.py", text),))
        found.append(Submission(f"s{number}", sources, (), str(number)))
    return found


def batch(course: Course, tier: str, work: list[Submission], names: list[str], seed: str) -> Took:
    course.config = course.config.model_copy(update={"seed": seed})
    failed: list[Exception] = []

    def done(student: str, report: object) -> None:
        if isinstance(report, Exception):
            failed.append(report)

    start, before = time.perf_counter(), of_processes(os.getpid())
    with Grader(course, tier, JOBS) as grader:
        grader.warm()
        if work:
            by_student = {one.student: one for one in work}
            grader.batch(by_student, by_student.__getitem__, names, done)
        workers = [worker for host in grader.worker_sets for worker in getattr(host, "processes", [])]
        for worker in workers:
            worker.await_ready()
        # Measure while the workers live. The CPU time of ended processes in bubblewrap is lost, because bubblewrap does
        # not wait for them.
        took, used = time.perf_counter() - start, of_processes(os.getpid()) - before
    if failed:
        raise failed[0]
    return took, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=STUDENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    course = find_course(ROOT)
    names = list(course.module(MODULE).exercises)
    work = students(course, names, args.students)
    tiers = [tier for tier in TIERS if not available(tier)]
    found: dict[str, dict[str, list[Took]]] = {tier: {"start": [], "batch": []} for tier in tiers}
    for number in range(args.rounds):
        for tier in tiers:
            for what, of in (("start", []), ("batch", [dataclasses.replace(w) for w in work])):
                found[tier][what].append(batch(course, tier, of, names, f"{tier} {number}"))
    print(
        f"{args.students} submissions of {MODULE}, {JOBS} at a time, {args.rounds} rounds; seconds include starting workers"
    )
    for tier in tiers:
        for what, times in found[tier].items():
            seconds, used = (statistics.median(part) for part in zip(*times, strict=True))
            shares = [(t[1] / n[1] - 1) * 100 for t, n in zip(times, found["none"][what], strict=True)]
            print(
                f"{tier:9} {what:6} {seconds:6.2f} s   CPU {used:6.2f} s, {statistics.median(shares):+4.0f} % of none"
            )
    if args.json:
        write_atomic(args.json, json.dumps({"students": args.students, "tiers": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
