"""Measure the whole course: ``verify``, and grading one perfect submission of all modules.

    python bench/course.py [--rounds 2] [--without-verify] [--json FILE]

The cold case is ``shardlings grade`` in a new process, with fresh workers. The warm case grades the submission again
with the same workers, which have cached the programs, as in the middle of a batch. The warm case is measured with one
set of workers, which grades one file after another, and with two sets. The output has wall seconds, and CPU seconds of
all processes by role.

The output includes the CPU seconds of the work by hand (``limit.py``). By hand, one warm process without isolation
loads, traces, lowers, reads, runs and judges the submission. The process runs no program twice.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "bench")]

import limit  # noqa: E402
from spending import by_role, whole  # noqa: E402

from grader.batch.grade import Grader  # noqa: E402
from grader.course.finding import find_course  # noqa: E402
from grader.course.loading import Course  # noqa: E402
from grader.course.reference import answers, reference_source  # noqa: E402
from grader.intake.reading import read  # noqa: E402
from grader.intake.submission import Submission  # noqa: E402
from grader.sandbox.tiers import best_tier  # noqa: E402

HOSTS = (1, 2)
GRADER = (sys.executable, "-m", "grader")


def perfect(course: Course, folder: Path) -> Path:
    """Write all references with all answers, as a student would submit them, and return the folder."""
    for name, exercise in course.exercises.items():
        text = reference_source(exercise, answers(course, exercise, "perfect"))
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def warm(course: Course, submission: Submission, hosts: int, rounds: int) -> list[dict[str, float]]:
    """Return, for each round, ``seconds`` of wall time, and the CPU seconds of the processes with each role."""
    found: list[dict[str, float]] = []
    with Grader(course, best_tier(), hosts) as grader:
        for _ in range(1 + rounds):
            before, start = by_role(grader), time.perf_counter()
            report = grader.grade(submission, list(course.module_of))
            took = time.perf_counter() - start
            assert report.earned == sum(e.points for e in report.exercises), "it is not perfect"
            found.append({"seconds": took} | {k: v - before[k] for k, v in by_role(grader).items()})
    return found[1:]


def by_hand(course: Course, submission: Submission, rounds: int) -> list[dict[str, float]]:
    """Return, for each round, the CPU seconds of each kind of work by hand (``limit.py``), such as tracing."""
    names = list(course.module_of)
    sources = [(name, submission.sources[name]) for name in names]
    limit.share_ir_context()
    found = [limit.by_hand(course, names, sources)[0].spent for _ in range(1 + rounds)]
    return [{part: float(seconds) for part, seconds in one.items()} for one in found[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--without-verify", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    course = find_course(ROOT)
    with tempfile.TemporaryDirectory() as place:
        work = Path(place, "perfect")
        work.mkdir()
        perfect(course, work)
        found: dict[str, Any] = {"exercises": len(course.module_of)}
        found["cold"] = whole(*GRADER, "grade", str(work), "--out", str(Path(place, "out")), "-j", "1", "--no-store")
        submission = read(work, "perfect", course.module_of)
        found["warm"] = {str(hosts): warm(course, submission, hosts, args.rounds) for hosts in HOSTS}
        found["by hand"] = by_hand(course, submission, args.rounds)
    if not args.without_verify:
        found["verify"] = whole(*GRADER, "verify", "--no-store", "-j", "2")
    print(f"one perfect submission, {found['exercises']} exercises; seconds of the clock, CPU seconds of all processes")
    print(f"  cold                   {found['cold'][0]:6.1f} s {found['cold'][1]:6.1f} CPU s")
    for hosts, of in found["warm"].items():
        middle = sorted(of, key=lambda one: one["seconds"])[(len(of) - 1) // 2]
        parts = ", ".join(f"{part} {middle[part]:.1f}" for part in ("parent", "trace", "run"))
        cpu = sum(middle.values()) - middle["seconds"]
        print(f"  warm, {hosts} at a time       {middle['seconds']:6.1f} s {cpu:6.1f} CPU s: {parts}")
    parts = {part: statistics.median(one[part] for one in found["by hand"]) for part in found["by hand"][0]}
    print(
        f"  by hand                        {sum(parts.values()):6.1f} CPU s: {', '.join(f'{p} {s:.1f}' for p, s in parts.items())}"
    )
    if "verify" in found:
        print(f"verify -j 2              {found['verify'][0]:6.1f} s {found['verify'][1]:6.1f} CPU s")
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
