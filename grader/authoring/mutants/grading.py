"""Grade one mutant like a submission. The verdict is ``killed``, ``survived``, ``equivalent`` or ``broken``."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Literal

from grader.authoring.mutants.making import Mutant
from grader.authoring.mutants.nodes import called, last_name
from grader.authoring.seeds import SEEDS, is_luck, results_by_seed, results_of_task
from grader.batch.grade import Grader
from grader.common import syntax
from grader.common.result import Result

Fate = Literal["killed", "equivalent", "survived", "broken"]


@dataclass(frozen=True)
class Verdict:
    """The outcome of grading a mutant.

    Attributes:
        seen_by: the checks that the mutant fails, without checks that fail because the mutant did not run.
    """

    mutant: Mutant
    fate: Fate
    seen_by: tuple[str, ...] = ()
    reason: str = ""


def judge_mutant(grader: Grader, mutant: Mutant, known: bool = False, seeds: int = 1) -> Verdict:
    """Grade a mutant, and return the verdict.

    The verdict is ``broken`` if the grader itself fails, ``killed`` if a check of the mutant's task fails, and else
    ``survived``.

    Args:
        known: True if the author lists the mutant as a right solution. If such a mutant survives, the verdict is
            ``equivalent``.
        seeds: the number of seeds with which the mutant must fail.
    """
    text = mutant.text
    results = results_of(grader, mutant.exercise, mutant.task, text)
    if any(never_ran(r, mutant.task) for r in results) and (again := unchecked(text)):
        text = again
        results = results_of(grader, mutant.exercise, mutant.task, text)
    failed = [r for r in results if r.status == "failed"]
    broken = [r for r in results if r.status == "broken"]
    seen_by = tuple(r.name for r in failed if not never_ran(r, mutant.task))
    if broken:
        return Verdict(mutant, "broken", seen_by, f"{broken[0].name}: {broken[0].reason}")
    if not failed:
        return Verdict(mutant, "equivalent" if known else "survived")
    if escape := escaped(grader, mutant, text, results, seeds):
        return Verdict(mutant, "survived", seen_by, escape)
    return Verdict(mutant, "killed", seen_by, f"{failed[0].name}: {failed[0].reason}")


def escaped(grader: Grader, mutant: Mutant, text: str, results: list[Result], seeds: int) -> str:
    """Return why a mutant that fails checks still counts as survived; '' if it counts as killed.

    A mutant counts as survived in two cases:

    - It passes all checks with another seed.
    - It passes a public check on hidden inputs, and fails this check on public inputs.
    """
    passed = {r.name for r in results if r.status == "passed" and r.public}
    shown = results_of(grader, mutant.exercise, mutant.task, text, public=True) if passed else []
    for result in shown:
        if result.name in passed and result.status == "failed":
            return f"passes {result.name} with hidden inputs, but fails this check on public inputs"
    if seeds > 1 and all(is_luck(r) for r in results if r.status == "failed"):
        exercise = grader.course.exercise(mutant.exercise)
        by_seed = results_by_seed(grader, exercise, text, SEEDS[:seeds], mutant.task)
        lucky = sum(all(r.status == "passed" for r in one.values()) for one in by_seed)
        if lucky:
            return f"passes every check of {mutant.task} with {lucky} of {seeds} seeds"
    return ""


def results_of(grader: Grader, exercise: str, task: str, text: str, *, public: bool = False) -> list[Result]:
    """Return the results of one task's checks for a submission with this source code."""
    plans = [grader.plan(exercise, public)]
    return list(results_of_task(grader, grader.course.exercise(exercise), text, task, plans, public=public)[0].values())


def unchecked(text: str) -> str:
    """Return the code with ``check_vma=False`` in each call of ``shard_map``; '' if this changes nothing.

    Learners add this argument if JAX refuses their program.
    """
    tree, changed = syntax.parse(text), False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and maps_devices(node) and not any(k.arg == "check_vma" for k in node.keywords):
            node.keywords.append(ast.keyword("check_vma", ast.Constant(False)))
            changed = True
    return ast.unparse(tree) + "\n" if changed else ""


def maps_devices(call: ast.Call) -> bool:
    """Return True for ``shard_map(...)`` and ``partial(shard_map, ...)``."""
    made = called(call)
    return made == "shard_map" or (made == "partial" and bool(call.args) and last_name(call.args[0]) == "shard_map")


def never_ran(result: Result, task: str) -> bool:
    """Return True if a check failed because the task did not run. The result's reason then names the task."""
    return re.search(rf"(^|: |, ){re.escape(task)}(:| is )", result.reason) is not None
