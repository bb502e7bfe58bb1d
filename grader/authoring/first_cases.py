"""Choose the first cases with which ``verify`` tries a wrong program, because trying all cases takes long.

A case is a call of a task on one mesh, with one choice of sizes. A wrong program fails in most cases, so a few
cases usually show that it fails the checks that its author named. If they do not show this, ``verify`` runs the program
with all cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from grader.authoring.margins import separates, uses_of
from grader.exercise import Call, Check, Exercise
from grader.judging.plan import Ask
from grader.judging.seen import Answered, Finding, partner


def first_cases(
    exercise: Exercise, reference: Sequence[Answered], fails: Collection[str] = (), every: Collection[str] = ()
) -> list[Answered]:
    """Return the reference solution's results for the first cases: each call on one mesh, with the public sizes.

    If a call runs in both modes of ``check_vma``, both results are included. For a check that compares meshes, the
    results on all meshes are included. For tasks that JAX traces, inputs from the course's seed are left out. For plain
    Python tasks, all cases are included.

    Args:
        fails: checks that the program fails. Checks that come after these are not judged, so their calls are left out.
        every: checks that need all meshes and all sizes. A check counts only if it is also in ``fails``.
    """
    chosen = _chosen(exercise, [a.ask for a in reference], fails, every)
    timed = {partner(ask, reference).ask for ask in chosen if isinstance(ask.of, Call) and ask.of.timing}
    return [a for a in reference if a.ask in timed or a.ask in chosen]


def _chosen(exercise: Exercise, asks: Sequence[Ask], fails: Collection[str], every: Collection[str]) -> Collection[Ask]:
    judged = list(_judged(exercise, fails))
    calls = _calls(judged)
    whole = _calls(exercise.checks[name] for name in {*fails} & {*every})
    meshes = _calls(check for check in judged if check.every_mesh)
    chosen: dict[tuple, Ask] = {}
    for ask in asks:
        of = id(ask.of)
        if of in calls and not (ask.hidden_inputs and isinstance(ask.of, Call)):
            case = (
                ask.same if of in whole else ask.check_vma,
                ask.hidden_inputs,
                of in meshes and tuple(ask.mesh.items()),
            )
            chosen.setdefault((of, case), ask)
    return set(chosen.values())


def _calls(checks: Iterable[Check]) -> set[int]:
    return {id(call) for check in checks for call in check.calls}


def without_trials(answered: Sequence[Answered]) -> list[Answered]:
    """Return the answers without their field ``poison``.

    The object ``poison`` runs a program again with changed results of operations, to find the operations that affect
    the program's results. This is slow, because it compiles another program.
    """
    return [
        replace(a, finding=Finding(replace(a.finding.observation, poison=None))) if a.finding.observation else a
        for a in answered
    ]


def separating(exercise: Exercise, reference: Sequence[Answered]) -> set[str]:
    """Return the names of the checks whose budget must separate right from wrong programs on all meshes and sizes."""
    checks = exercise.checks.values()
    return {c.name for c in checks if any(separates(use) for _, _, use in uses_of(c, reference, measuring=False))}


def _judged(exercise: Exercise, fails: Collection[str]) -> Iterable[Check]:
    blocked: set[str] = set()
    for check in exercise.checks.values():
        if blocked.isdisjoint(check.after):
            yield check
        if not blocked.isdisjoint(check.after) or check.name in fails:
            blocked.add(check.name)
