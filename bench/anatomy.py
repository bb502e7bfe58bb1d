"""Measure the CPU time that the grader takes for one more source, in every sandbox tier and by hand.

    python bench/anatomy.py [--sources 60] [--module 03_matmuls] [--rounds 3] [--json FILE]

Three kinds of sources are compared: an empty source, a source that asks for devices, and the solution. An empty source
costs only its process. A source that asks for devices also starts XLA in its process.

Each source has a comment of its own, so the grader traces each source in its own process. All sources of an exercise
have equal programs, which the grader has run and judged in the warm-up. So the script measures the least cost of a
source. For comparison, one warm process without isolation does the work "by hand" (``limit.py``).
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import limit
from spending import by_role

from grader.batch.grade import Grader
from grader.common.files import write_atomic
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.intake.submission import Chunk, Source, Submission
from grader.sandbox.tiers import TIERS, available

ROOT = Path(__file__).resolve().parent.parent
Sources = list[tuple[str, Source]]


def sources(names: list[str], count: int, start: int, text: Callable[[str], str]) -> Sources:
    """Return ``count`` sources, each with a unique comment.

    The sources go through the exercises ``names`` in order, again and again.
    """
    found = []
    for number in range(start, start + count):
        name = names[number % len(names)]
        found.append((name, Source(f"{name}.py", (Chunk(f"{name}.py", f"{text(name)}\n# {number}\n"),))))
    return found


def each_part(course: Course, tier: str, work: list[Sources]) -> list[dict[str, float]]:
    """Grade the lists in ``work``, and return each list's CPU milliseconds per source, by role of the process.

    The first list only warms up the workers, so the result leaves it out.
    """
    found = []
    with Grader(course, tier) as grader:
        for part in work:
            before = by_role(grader)
            for number, (name, source) in enumerate(part):
                grader.grade(Submission(f"s{number}", {name: source}, (), source.chunks[0].text), [name])
            after = by_role(grader)
            found.append({role: (seconds - before[role]) / len(part) * 1e3 for role, seconds in after.items()})
    return found[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=60)
    parser.add_argument("--module", default="03_matmuls")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    course = find_course(ROOT)
    names = list(course.module(args.module).exercises)
    limit.share_ir_context()
    texts: dict[str, Callable[[str], str]] = {
        "nothing in it": lambda name: "",
        "devices": lambda name: "import jax\n\njax.devices()",
        "the solution": lambda name: reference_source(course.exercise(name), {}),
    }
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for what, text in texts.items():
        work = [sources(names, args.sources, at * args.sources, text) for at in range(1 + args.rounds)]
        hands = limit.by_hand(course, names, *work)[1][1:]
        found[what] = {"by hand": [{"all": seconds / args.sources * 1e3} for seconds in hands]}
        for tier in [tier for tier in TIERS if not available(tier)]:
            found[what][tier] = each_part(course, tier, work)
    print(f"one source more, {args.module}: CPU ms, the least of {args.rounds} rounds of {args.sources} sources")
    for what, ways in found.items():
        for way, rounds in ways.items():
            parts = min(rounds, key=lambda one: sum(one.values()))
            said = ", ".join(f"{role} {ms:.1f}" for role, ms in parts.items() if len(parts) > 1)
            print(f"  {what:14} {way:9} {sum(parts.values()):7.1f}  {said}")
    if args.json:
        write_atomic(args.json, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
