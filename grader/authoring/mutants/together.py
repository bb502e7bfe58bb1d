"""Run many mutants of one task in one process, with only the first inputs. Most mutants already fail with these inputs.

Sharing a process saves time: fewer processes start, and fewer programs are traced. If a mutant passes, or if other
mutants in the process may have changed its result, ``judge_mutant`` grades the mutant alone with all inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.authoring.mutants.grading import Verdict, never_ran, unchecked
from grader.authoring.mutants.making import Mutant
from grader.authoring.together import tried
from grader.batch.grade import Grader
from grader.common.result import Result
from grader.exercise import Check, Exercise
from grader.judging.judge import judge_check
from grader.judging.plan import Ask
from grader.judging.seen import Answered

AT_ONCE = 16


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
    known = {(ask.program, ask.digest) for ask in graded}
    plain = exercise.tasks[task].kind == "function"
    return graded if plain else graded[:1], [a for a in public if (a.program, a.digest) not in known]


def verdict_of(exercise: Exercise, mutant: Mutant, graded: list[Answered], public: list[Answered]) -> Verdict | None:
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
    if any(judge_check(check, public, public=True).status != "passed" for check in others):
        return None
    seen_by = tuple(name for name, result in failed.items() if not never_ran(result, mutant.task))
    name, result = next(iter(failed.items()))
    return Verdict(mutant, "killed", seen_by, f"{name}: {result.reason}")


def _graded_results(exercise: Exercise, graded: list[Answered]) -> dict[str, Result]:
    """Return the results, by name, of the checks that need only these answers and come after no failed check."""
    results: dict[str, Result] = {}
    for check in exercise.checks.values():
        passed = {name for name, r in results.items() if r.status == "passed"}
        if _asked(check, graded) and passed.issuperset(check.after):
            results[check.name] = judge_check(check, graded, public=False)
    return results


def _asked(check: Check, answered: list[Answered]) -> bool:
    """Return True if these answers suffice to judge a check. A check of several calls or meshes needs more answers."""
    alone = len(check.calls) == 1 and not check.every_mesh
    return alone and any(a.ask.of is check.call for a in answered)
