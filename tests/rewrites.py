"""Look for honest programs that the grader refuses: ``python -m tests.rewrites --minutes N --seed S``.

This module writes each reference and alternative of every traced task in other styles (``tests.rewriting``), first in
one style at a time, then in several at once. If a program does not pass every check of its task, JAX runs it
directly, on the meshes and inputs that learners can have. If the program computes the original's results, this module
prints the refusal. A person then decides whether the task's statement justifies the refusal.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.batch.grade import Grader
from tests.rewriting import Rewrite, rewrites, written_again
from tests.texts import Text, computes, course_grader, graded, results_of, right_texts, traced_tasks

AT_ONCE = 3
MOST_AT_ONCE = 8
MOST_TEXTS = 5
# Styles that make a program slower on the clock (docs/clock.md). A check of the step's time may rightly refuse such
# programs.
SLOWER = {
    "matmul: behind a barrier": "a slice that goes to a barrier is a kernel of its own",
    "matmul: highest": "a matmul of float32 in this precision takes several passes",
    **dict.fromkeys(
        ("range as fori", "range as fori peeled", "range as scan peeled"),
        "a permute at the start of a round of a loop cannot overlap with the matmul of the round before it",
    ),
}


@dataclass(frozen=True)
class Refusal:
    """A right program that does not pass a check."""

    text: Text
    ways: str
    check: str
    reason: str
    program: str

    def __str__(self) -> str:
        return f"- {self.text}, {self.ways}: {self.check}: {self.reason}"


@dataclass
class Found:
    """Results of a search.

    Attributes:
        tried: number of right programs, by exercise.
        by_way: number of right programs, by style.
        other: number of rewritten programs that compute other results than the original, by program.
        refused: the refusals.
    """

    tried: Counter[str] = field(default_factory=Counter)
    by_way: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    refused: list[Refusal] = field(default_factory=list)

    def ways(self) -> set[str]:
        return {way for ways in self.by_way for way in ways.split(" + ")}

    def __str__(self) -> str:
        programs = len({r.program for r in self.refused})
        head = f"tried {self.tried.total()} right programs, refused {programs}; {self.other.total()} computed something else"
        tried = "tried: " + ", ".join(f"{name} {n}" for name, n in sorted(self.tried.items()))
        ways = "ways: " + ", ".join(f"{name} {n}" for name, n in sorted(self.by_way.items()))
        kinds = Counter((r.text.exercise.id, r.check, r.ways) for r in self.refused)
        counts = [f"{n} x {' '.join(kind)}" for kind, n in sorted(kinds.items())]
        return "\n".join([head, tried, ways, *map(str, self.refused), "refused, by check and way:", *counts])


def programs(grader: Grader, seed: int, only: str) -> Iterator[tuple[Text, tuple[Rewrite, ...]]]:
    """Yield each text in each style, in random order. Then yield random texts in several styles, without end."""
    pick = random.Random(f"{seed} programs")
    texts = [text for exercise, task in traced_tasks(grader, only) for text in right_texts(exercise, task)]
    alone: list[tuple[Text, tuple[Rewrite, ...]]] = [(text, (way,)) for text in texts for way in rewrites()]
    pick.shuffle(alone)
    yield from alone
    while True:
        yield pick.choice(texts), tuple(pick.sample(rewrites(), AT_ONCE))


def cover(grader: Grader, name: str, seed: int) -> Found:
    """Rewrite right programs of an exercise until each style was part of one that still computes the right results.

    Each program is rewritten in several styles, so few programs are needed.

    The search leaves out styles that make programs slower. If a rewritten program computes other results, the search
    tries each half of its styles. A style that alone changes the results of two programs is left out from then on.
    """
    found, pick = Found(), random.Random(f"{seed} {name}")
    texts = [text for exercise, task in traced_tasks(grader, name) for text in right_texts(exercise, task)]
    texts.sort(key=lambda text: text.by != "the reference")
    left = [way for way in rewrites() if way.name not in SLOWER]
    pick.shuffle(left)
    misses = 0
    for text in itertools.cycle(texts[:MOST_TEXTS]):
        ways = fitting(text, left, pick)
        used = _used(grader, text, ways, pick, found)
        alone = {way.name: sum(n for o, n in found.other.items() if f", {way.name}: " in o) for way in ways}
        left = [way for way in left if way not in used and alone.get(way.name, 0) < 2]
        misses = 0 if ways else misses + 1
        if not left or misses == MOST_TEXTS:
            return found
    return found


def fitting(text: Text, ways: list[Rewrite], pick: random.Random) -> tuple[Rewrite, ...]:
    """Return the first styles that fit together: each changes the text, and no two styles define equal helpers."""
    found: list[Rewrite] = []
    names, module, was = set[str](), text.module, ast.unparse(text.module)
    for way in ways:
        helpers = {s.name for s in ast.parse(way.helpers).body if isinstance(s, ast.FunctionDef | ast.ClassDef)}
        if not helpers & names and (became := ast.unparse(changed := way(module, pick))) != was:
            names, module, was = names | helpers, changed, became
            found.append(way)
        if len(found) == MOST_AT_ONCE:
            break
    return tuple(found)


def _used(
    grader: Grader, text: Text, ways: tuple[Rewrite, ...], pick: random.Random, found: Found
) -> tuple[Rewrite, ...]:
    """Try a text in these styles. Return the styles with which a program computed the right results."""
    program = written_again(text.module, ways, pick) if ways else None
    before = found.tried.total()
    if program:
        try_one(grader, text, " + ".join(way.name for way in ways), program, found)
    if found.tried.total() > before:
        return ways
    half = len(ways) // 2
    parts = [ways[:half], ways[half:]] if half else []
    return tuple(way for part in parts for way in _used(grader, text, part, pick, found))


def search(
    grader: Grader, seed: int, *, minutes: float = math.inf, most: int | None = None, only: str = "", loud: bool = False
) -> Found:
    """Try programs for ``minutes``, or until ``most`` of them were right."""
    found, until = Found(), time.monotonic() + 60 * minutes
    for number, (text, ways) in enumerate(programs(grader, seed, only)):
        if time.monotonic() > until or (most is not None and found.tried.total() >= most):
            break
        name = " + ".join(way.name for way in ways)
        program = written_again(text.module, ways, random.Random(f"{seed} {number}"))
        if program is None:
            continue
        before = len(found.refused)
        try_one(grader, text, name, program, found)
        if loud:
            for refusal in found.refused[before:]:
                print(refusal, flush=True)
    return found


def try_one(grader: Grader, text: Text, ways: str, program: str, found: Found) -> None:
    """Grade one program. If the grader refuses it, run it and compare its results with the original's."""
    results = results_of(graded(grader, text.exercise.id, program), text.exercise, text.task)
    lost = [r for r in results.values() if r.status != "passed"]
    if lost:
        like = ast.unparse(text.module)
        if why := computes(program, like, text.task, grader.plan(text.exercise.id, False)):
            found.other[f"{text}, {ways}: {why}"] += 1
            return
    found.tried[text.exercise.id] += 1
    found.by_way[ways] += 1
    found.refused += [Refusal(text, ways, r.name, r.reason, program) for r in lost if r.status in ("failed", "broken")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int)
    parser.add_argument("--only", default="", help="exercises whose names begin with one of these words")
    parser.add_argument("--programs", action="store_true", help="print each refused program")
    parser.add_argument("--others", action="store_true", help="print why programs count as wrong")
    asked = parser.parse_args()
    with course_grader() as grader:
        found = search(grader, asked.seed, minutes=asked.minutes, most=asked.most, only=asked.only, loud=True)
    print(found)
    for other in sorted(found.other) if asked.others else ():
        print(f"computes something else: {other}")
    for refusal in found.refused if asked.programs else ():
        print(f"\n{refusal}\n{refusal.program}")
    sys.exit(bool(found.refused))


if __name__ == "__main__":
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    main()
