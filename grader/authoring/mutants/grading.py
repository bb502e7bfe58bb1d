"""Grade mutants like submissions. The verdict is ``killed``, ``survived``, ``equivalent`` or ``broken``.

Many mutants of one task first run in one process, with only the first inputs. Most mutants already fail with these
inputs. This saves time: fewer processes start, and fewer programs are traced. If a mutant passes, or if other mutants
in the process may have changed its result, ``judge_mutant`` grades the mutant alone with all inputs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from grader.authoring.mutants.making import Mutant
from grader.authoring.mutants.operators import called, last_name
from grader.authoring.seeds import SEEDS, is_luck, results_by_seed, results_of_task
from grader.authoring.tries import tried
from grader.batch.grade import Grader
from grader.common import syntax
from grader.common.result import Result
from grader.exercise import Check, Exercise
from grader.judging.judge import judge_check
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding

Fate = Literal["killed", "equivalent", "survived", "broken"]
AT_ONCE = 16


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


def killed_together(grader: Grader, mutants: Sequence[Mutant]) -> list[Verdict | None]:
    """Return, for each of a task's mutants, a verdict ``killed``, or None if the mutant must be graded alone."""
    exercise, task = grader.course.exercise(mutants[0].exercise), mutants[0].task
    graded, public = first_asks(grader, exercise, task)
    if not graded:
        return [None] * len(mutants)

    def judged(some: Sequence[Mutant], texts: list[str]) -> list[Verdict | None]:
        found = tried(grader, [(text, [*graded, *public]) for text in texts])
        return [verdict_of(exercise, m, f[: len(graded)], f[len(graded) :]) for m, f in zip(some, found, strict=True)]

    verdicts = judged(mutants, [mutant.text for mutant in mutants])
    # Learners add check_vma=False if JAX refuses their program. So try refused mutants again with check_vma=False.
    again = {n: text for n, v in enumerate(verdicts) if v and not v.seen_by and (text := unchecked(mutants[n].text))}
    for n, verdict in zip(again, judged([mutants[n] for n in again], list(again.values())), strict=True):
        verdicts[n] = verdict
    return verdicts


def first_asks(grader: Grader, exercise: Exercise, task: str) -> tuple[list[Ask], list[Ask]]:
    """Return the first request of the command ``grade``, and all requests that only the command ``check`` has.

    A request is a call of the task on one mesh with given inputs. For a plain Python task, the first list has all
    requests of ``grade``. Requests with hidden inputs are left out. Both lists are empty if the task's checks depend on
    checks of other tasks.
    """
    checks = [c for c in exercise.checks.values() if c.call.task.name == task]
    if any(exercise.checks[name].call.task.name != task for check in checks for name in check.after):
        return [], []
    graded, public = (
        [a for a in grader.plan(exercise.id, p) if a.task == task and not a.hidden_inputs] for p in (False, True)
    )
    known = {(ask.program_key, ask.digest) for ask in graded}
    plain = exercise.tasks[task].kind == "function"
    return graded if plain else graded[:1], [a for a in public if (a.program_key, a.digest) not in known]


def verdict_of(
    exercise: Exercise, mutant: Mutant, graded: list[AskFinding], public: list[AskFinding]
) -> Verdict | None:
    """Return the verdict ``killed`` if a check fails with the answers ``graded``, else None.

    Also return None if a check fails only with the answers ``public``: such a mutant must be graded alone.

    Args:
        graded: the mutant's answers to the requests in the first list of ``first_asks``.
        public: the mutant's answers to the requests in the second list.
    """
    results = _graded_results(exercise, graded)
    failed = {name: r for name, r in results.items() if r.status == "failed"}
    if not failed or any(r.status == "broken" for r in results.values()):
        return None
    others = [c for c in exercise.checks.values() if c.public and c.name not in failed and _asked(c, public)]
    if any(judge_check(check, public, learners_run=True).status != "passed" for check in others):
        return None
    seen_by = tuple(name for name, result in failed.items() if not never_ran(result, mutant.task))
    name, result = next(iter(failed.items()))
    return Verdict(mutant, "killed", seen_by, f"{name}: {result.reason}")


def _graded_results(exercise: Exercise, graded: list[AskFinding]) -> dict[str, Result]:
    """Return the results, by name, of the checks that need only these answers and come after no failed check."""
    results: dict[str, Result] = {}
    for check in exercise.checks.values():
        passed = {name for name, r in results.items() if r.status == "passed"}
        if _asked(check, graded) and passed.issuperset(check.after):
            results[check.name] = judge_check(check, graded, learners_run=False)
    return results


def _asked(check: Check, answered: list[AskFinding]) -> bool:
    """Return True if these answers suffice to judge a check. A check of several calls or meshes needs more answers."""
    alone = len(check.calls) == 1 and not check.every_mesh
    return alone and any(a.ask.of is check.call for a in answered)
