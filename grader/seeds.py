"""Grade one text with many seeds, as many years of the course would: what a check finds must not be luck.

The text is traced once; only what is drawn differs, so twenty seeds cost little more than one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from grader.exercise import Exercise, Number
from grader.grade import Grader
from grader.judge import judge_checks
from grader.plan import Ask, plan
from grader.result import Result
from grader.submission import Chunk, Source

SEEDS = tuple(f"verify/{n}" for n in range(1000))


def results_by_seed(
    grader: Grader, exercise: Exercise, text: str, seeds: Sequence[str], task: str
) -> list[dict[str, Result]]:
    """For each seed, the results of one task's checks by name, for a file that holds this text."""
    tasks = {task, *_waited_for(exercise, task)}
    plans = [[a for a in plan(exercise, public=False, seed=s) if _is_of(a, tasks)] for s in seeds]
    plans = [[first if _is_open(first) else ask for first, ask in zip(plans[0], asks, strict=True)] for asks in plans]
    every = list(dict.fromkeys(ask for asks in plans for ask in asks))
    name = f"{exercise.id}.py"
    with grader._lane() as lane:
        answered, _ = lane.collect(Source(name, (Chunk(name, text),)), every)
    found = {id(a.ask): a for a in answered}
    judged = [judge_checks(exercise, [found[id(ask)] for ask in asks], public=False) for asks in plans]
    return [{r.name: r for r in results if r.task == task} for results in judged]


def _is_of(ask: Ask, tasks: Collection[str]) -> bool:
    return not isinstance(ask.of, Number) and ask.task in tasks


def _waited_for(exercise: Exercise, task: str) -> set[str]:
    """The tasks whose checks must pass before this one's are tried."""
    left = [c for c in exercise.checks.values() if c.call.task.name == task]
    found: set[str] = set()
    while left:
        before = [exercise.checks[name] for name in left.pop().after]
        found |= {c.call.task.name for c in before}
        left += before
    return found


def _is_open(ask: Ask) -> bool:
    """Whether the ask is the same for every seed."""
    return not ask.secret


def luck(results: list[dict[str, Result]], fails: set[str]) -> dict[str, list[int]]:
    """Which of these checks did not fail, and with which seeds."""
    found: dict[str, list[int]] = {}
    for seed, of_seed in enumerate(results):
        for name in sorted(fails):
            if of_seed[name].status not in ("failed", "blocked"):
                found.setdefault(name, []).append(seed)
    return found
