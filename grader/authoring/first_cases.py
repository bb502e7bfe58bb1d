"""Choose the cases with which ``verify`` first tries a wrong program: one mesh and one size of each call.

A case is one call of a task, on one mesh and with one choice of sizes. A wrong program fails in most cases, so the
first cases usually show that it fails as the author declared. Only if they do not, ``verify`` runs it with all cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from grader.authoring.margins import separates, uses_of
from grader.common.observation import Observation
from grader.exercise import Call, Check, Exercise
from grader.judging.plan import Ask
from grader.judging.seen import Answered, partner


def first_cases(
    exercise: Exercise, reference: Sequence[Answered], fails: Collection[str] = (), every: Collection[str] = ()
) -> list[Answered]:
    """Return the reference's results for the first cases: each call on one mesh, with the sizes that learners see.

    The first cases also include all cases of plain Python tasks, both modes of ``check_vma`` if a call has both, and
    all meshes of a check that compares meshes. If JAX traces a task, calls of this task with inputs that are drawn from
    the course's seed are left out.

    Args:
        fails: checks that the program fails. The grader does not judge the checks that come after these, so the result
            has no calls of the later checks.
        every: checks that need all meshes and sizes. If ``fails`` contains one of these checks, the result has all
            meshes and sizes for the calls of this check.
    """
    chosen = _chosen(exercise, [a.ask for a in reference], fails, every)
    timed = {partner(ask, reference).ask for ask in chosen if isinstance(ask.of, Call) and ask.of.timing}
    return [a for a in reference if a.ask in timed or a.ask in chosen]


def _chosen(exercise: Exercise, asks: Sequence[Ask], fails: Collection[str], every: Collection[str]) -> Collection[Ask]:
    """Return the first cases, without the small calls that ``first_cases`` adds.

    The grader runs such a small call to judge the values of a timing call, which itself never runs.

    Arguments: see ``first_cases``.
    """
    judged = list(_judged(exercise, fails))
    calls = _calls(judged)
    whole = _calls(exercise.checks[name] for name in {*fails} & {*every})
    meshes = _calls(check for check in judged if check.every_mesh)
    chosen: dict[tuple, Ask] = {}
    for ask in asks:
        of = id(ask.of)
        if of in calls and not (ask.secret and isinstance(ask.of, Call)):
            case = ask.same if of in whole else ask.check_vma, ask.secret, of in meshes and tuple(ask.mesh.items())
            chosen.setdefault((of, case), ask)
    return set(chosen.values())


def _calls(checks: Iterable[Check]) -> set[int]:
    return {id(call) for check in checks for call in check.calls}


def without_trials(answered: Sequence[Answered]) -> list[Answered]:
    """Return the answers without their field ``poison``.

    The object ``poison`` runs a program again with changed results of operations, to find the operations whose values
    affect the program's results. This is slow, because the runner compiles another program for it.
    """
    return [
        replace(a, finding=replace(a.finding, poison=None)) if isinstance(a.finding, Observation) else a
        for a in answered
    ]


def separating(exercise: Exercise, reference: Sequence[Answered]) -> set[str]:
    """Return the names of checks with a budget that must separate right from wrong programs on all meshes and sizes."""
    checks = exercise.checks.values()
    return {c.name for c in checks if any(separates(use) for _, _, use in uses_of(c, reference, measuring=False))}


def _judged(exercise: Exercise, fails: Collection[str]) -> Iterable[Check]:
    """Yield the checks that the grader judges if a program fails the checks ``fails``.

    A check that comes after a failed check is not judged.
    """
    blocked: set[str] = set()
    for check in exercise.checks.values():
        if blocked.isdisjoint(check.after):
            yield check
        if not blocked.isdisjoint(check.after) or check.name in fails:
            blocked.add(check.name)
