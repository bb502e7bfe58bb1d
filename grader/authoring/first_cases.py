"""Choose the cases with which ``verify`` first tries a wrong program: one mesh and one size of each call.

A case is a request to a submission: a call on one mesh, with one choice of sizes. A wrong program shows its mistake in
most cases, so ``verify`` runs the other cases only if the first ones show a problem.
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
    """Return the reference's answers to the first cases: of each call, the first mesh and the sizes that learners see.

    The first cases also have all cases of a plain function, all modes of ``check_vma``, and all meshes of a check that
    compares meshes. They have no inputs from the course's seed.

    Args:
        fails: checks that the program fails. Calls of checks that come after these checks are left out.
        every: checks whose calls need all meshes and sizes if the program fails these checks.
    """
    chosen = _chosen(exercise, [a.ask for a in reference], fails, every)
    timed = {partner(ask, reference).ask for ask in chosen if isinstance(ask.of, Call) and ask.of.timing}
    return [a for a in reference if a.ask in timed or a.ask in chosen]


def _chosen(exercise: Exercise, asks: Sequence[Ask], fails: Collection[str], every: Collection[str]) -> Collection[Ask]:
    """Return the first cases, without the calls that timing calls time. Arguments: see ``first_cases``."""
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
    """Return the answers without the trials that show which operations matter. Each trial compiles a program."""
    return [
        replace(a, finding=replace(a.finding, poison=None)) if isinstance(a.finding, Observation) else a
        for a in answered
    ]


def separating(exercise: Exercise, reference: Sequence[Answered]) -> set[str]:
    """Return the checks with a budget that ``verify`` measures on all meshes with all sizes."""
    checks = exercise.checks.values()
    return {c.name for c in checks if any(separates(use) for _, _, use in uses_of(c, reference, measuring=False))}


def _judged(exercise: Exercise, fails: Collection[str]) -> Iterable[Check]:
    """Yield the checks that a program with exactly these failures is judged by: no failed check comes before them."""
    blocked: set[str] = set()
    for check in exercise.checks.values():
        if blocked.isdisjoint(check.after):
            yield check
        if not blocked.isdisjoint(check.after) or check.name in fails:
            blocked.add(check.name)
