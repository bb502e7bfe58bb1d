"""Compare ``grade`` with the limit: the cost of only tracing, lowering, running and judging a class.

    python bench/limit.py [--students 60] [--module 03_matmuls] [--duplicates 0.2] [--rounds 3] [--json FILE]

The limit is the cost by hand, in one warm process without isolation, pipes, files or reports. The process loads, traces
and lowers every distinct source once, reads, compiles and runs every distinct program once, and judges every distinct
result once.

Our cost is that of a whole run of ``shardlings grade`` for the same class, minus the cost of a run with nothing left to
do. The script also prints the cost that the second half of the class adds: the command's start is not part of this
cost.

All numbers are CPU seconds of all processes, so that other load on the machine matters little. Each round grades the
class by hand and then with ``grade``, and the script prints the medians of the rounds.
"""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "bench")]

import load  # noqa: E402

from grader.batch.replies import RunResult, observed, plain_values, reply_of  # noqa: E402
from grader.batch.running import sent_to_child  # noqa: E402
from grader.course.finding import find_course  # noqa: E402
from grader.course.loading import Course  # noqa: E402
from grader.exercise import Call  # noqa: E402
from grader.intake.reading import read  # noqa: E402
from grader.intake.submission import Source  # noqa: E402
from grader.judging.judge import judge_checks  # noqa: E402
from grader.judging.plan import Ask, plan  # noqa: E402
from grader.judging.seen import AskFinding, Finding  # noqa: E402
from grader.learner import answering  # noqa: E402
from grader.learner.loading import load as loaded  # noqa: E402
from grader.learner.surroundings import share_ir_context, tolerant_jax  # noqa: E402
from grader.runner import execution  # noqa: E402

SECONDS = 3600.0


class ByHand:
    """Grades sources without the grader's processes (by hand), and does each distinct step once.

    Attributes:
        spent: CPU seconds by kind of step.
        done: number of steps, by kind of step.
    """

    def __init__(self, course: Course, names: list[str]) -> None:
        self.course = course
        self.plans = {n: plan(course.exercise(n), public=False, seed=f"{course.config.seed}/hidden") for n in names}
        self.spent: dict[str, float] = defaultdict(float)
        self.done: Counter[str] = Counter()
        self.known: dict[tuple[str, tuple], list[Finding]] = {}
        self.judged: set[Any] = set()

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.spent[what] += time.process_time() - start
        self.done[what] += 1

    def source(self, name: str, source: Source) -> None:
        """Do all work for one distinct source of one exercise."""
        asks = self.plans[name]
        with tolerant_jax():
            with self.timed("load"):
                program = loaded({"name": source.name, "chunks": [[c.name, c.text] for c in source.chunks]}, SECONDS)
            traced, replies = sent_to_child(asks), []
            for ask in traced:
                with self.timed("trace and lower"):
                    replies.append(answering.reply_to(ask.for_tracer(list(program.files)), program, SECONDS))
        found = [self.finding(ask, *self.reply_to(ask, traced, replies)) for ask in asks]
        key = (name, tuple(f.observation.program if f.observation else repr(f) for f in found))
        if key not in self.judged:
            self.judged.add(key)
            with self.timed("judge"):
                judge_checks(
                    self.course.exercise(name), [AskFinding(*p) for p in zip(asks, found, strict=True)], public=False
                )

    def reply_to(self, ask: Ask, traced: list[Ask], replies: list[Any]) -> Any:
        """Return the reply to a request.

        A request with hidden inputs shares the reply of a request with public inputs for the same program.
        """
        same = (
            other
            for other in traced
            if other is ask or (isinstance(ask.of, Call) and other.program_key == ask.program_key)
        )
        return replies[traced.index(next(same))]

    def finding(self, ask: Ask, body: dict[str, Any], blobs: list[bytes]) -> Finding:
        reply, request = reply_of(ask, body, blobs), ask.for_runner(["any.py"])
        if reply.fault is not None or reply.program is None:
            return Finding(fault=reply.fault) if reply.fault else plain_values(ask, reply.body)
        with self.timed("read, compile and run"):
            answer = RunResult(*execution.execute(request, reply.program, ask.arrays()))
        return observed(ask, answer)

    @property
    def whole(self) -> float:
        return sum(self.spent.values())


def by_hand(course: Course, names: list[str], *parts: list[tuple[str, Source]]) -> tuple[ByHand, list[float]]:
    """Grade lists of sources by hand, one list after another. Equal sources are graded once.

    Returns:
        The costs of all lists together, and the CPU seconds that each list adds to the costs of the lists before it.
    """
    hand, took, seen = ByHand(course, names), [], set()
    for sources in parts:
        before = hand.whole
        for name, source in dict.fromkeys(sources):
            if (name, source) not in seen:
                hand.source(name, source)
        seen |= set(sources)
        took.append(hand.whole - before)
    return hand, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--module", default="03_matmuls")
    parser.add_argument("--duplicates", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    course = find_course(ROOT)
    names = list(course.module(args.module).exercises)
    share_ir_context()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        load.make(course, args.module, args.students, args.duplicates, place / "work")
        folders = sorted((place / "work").iterdir())
        first = place / "first half"
        first.mkdir()
        for folder in folders[: len(folders) // 2]:
            shutil.copytree(folder, first / folder.name)
        works = [read(p, p.name, course.module_of, frozenset()) for p in folders]
        of_each = [list(w.sources.items()) for w in works]
        halves = [list(chain(*of_each[: len(works) // 2])), list(chain(*of_each[len(works) // 2 :]))]
        distinct = list(dict.fromkeys(chain(*halves)))
        by_hand(course, names, distinct[: len(names)])  # warm
        hands, ours, second = [], [], []
        for number in range(args.rounds):
            execution._executed._values.clear()  # drop executables of earlier rounds
            execution._compiled._values.clear()
            hand, took = by_hand(course, names, *halves)
            hands.append(hand)
            out, store = place / f"out{number}", place / f"store{number}"
            half = load.graded(ROOT, args.module, first, place / f"half{number}", place / f"halfs{number}", args.jobs)
            whole, again = (load.graded(ROOT, args.module, place / "work", out, store, args.jobs) for _ in range(2))
            ours.append((whole.cpu - again.cpu, again.cpu))
            second.append([took[1], whole.cpu - half.cpu])
    totals = [hand.whole for hand in hands]
    hand = hands[totals.index(statistics.median_low(totals))]
    limit, cost = statistics.median(totals), statistics.median(steady for steady, _ in ours)
    print(
        f"{args.students} students, {args.duplicates:.0%} duplicates, {len(distinct)} distinct sources; CPU seconds, {args.rounds} rounds"
    )
    for what, seconds in hand.spent.items():
        each = seconds / hand.done[what] * 1e3
        print(f"  by hand: {what:22} {seconds:7.2f} s   {hand.done[what]:5} times {each:7.2f} ms")
    print(f"  by hand                         {limit:7.2f} s   from {min(totals):.2f} to {max(totals):.2f}")
    print(
        f"  grade, less an unchanged run    {cost:7.2f} s   from {min(ours)[0]:.2f} to {max(ours)[0]:.2f}   {cost / limit:.2f} of the limit"
    )
    print(f"  an unchanged run                {statistics.median(start for _, start in ours):7.2f} s")
    ratio = statistics.median(steady / hand for hand, steady in second)
    print(
        f"  of these, the second half       {second[0][0]:7.2f} s by hand, {second[0][1]:.2f} s by grade   {ratio:.2f} of the limit"
    )
    if args.json:
        found = {
            "second_half": second,
            "students": args.students, "duplicates": args.duplicates, "distinct": len(distinct), "limit": totals,
            "grade": [steady for steady, _ in ours], "unchanged": [start for _, start in ours],
            "parts": {what: [hand.spent[what], hand.done[what]] for what in hand.spent},
        }  # fmt: skip
        args.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
