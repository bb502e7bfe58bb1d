"""Check the inputs of calls, and the test cases of plain Python tasks.

Inputs need odd sizes, several values of each keyword, and reproducible, varied values. A solution must be able to pass
each case. The statement or the task's docstring must name each error that a solution has to raise. Rounding errors must
cost no points.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from grader.authoring.seeds import SEEDS
from grader.common.layout import entries
from grader.common.observation import Outcome
from grader.exercise import Array, Call, Cases, Exercise, Task
from grader.exercise.declarations import judged_calls
from grader.expect import same_outcome, show_outcome, show_value
from grader.judging.judge import judge_checks
from grader.judging.plan import Ask, arrays_of, plan
from grader.judging.seen import AskFinding, Finding, reference_outcome
from grader.wire.frames import NotPlain, encode, is_inexact
from grader.wire.trees import leaves

MORE_SEEDS = 12
"""The number of further seeds with which cases are drawn, because the next term has another seed."""
ULPS = 64
"""A rounding error, in units in the last place. Programs that add in different orders differ by about this much."""


def tame_sizes(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each call with hidden sizes that could hide mistakes (see ``tame_dims``).

    Timing calls (``exercise.timing``) get no problem, because their programs never run.
    """
    calls = judged_calls(exercise.checks.values())
    small = {call.small for call in calls}
    for call in calls:
        others = [one for one in calls if one.task is call.task and one not in small and not one.timing]
        if not call.timing and not (call in small and others):
            found = list(tame_dims(call))
            if found and call.hidden_dims == call.dims:
                found = [
                    f"{call.task.name}: hidden_dims is missing; give sizes so that each device has shards of odd size"
                ]
            yield from found


def tame_dims(call: Call) -> Iterator[str]:
    """Yield a problem for each hidden dimension whose size could hide mistakes.

    Each device holds one part of a sharded dimension. If the part's size is even, checks do not detect programs that
    are wrong only for odd sizes, such as a program that cuts the part into halves. There is a problem in three cases:

    - On a mesh, the size of a device's part is odd with public sizes, but even with hidden sizes.
    - On every mesh, the size of a device's part is even with hidden sizes.
    - Two hidden dimensions have equal sizes on every mesh.
    """
    public, hidden = _blocks(call, hidden=False), _blocks(call, hidden=True)
    for (dim, mesh), size in hidden.items():
        if size % 2 == 0 and public[dim, mesh] % 2:
            yield (
                f"{call.task.name}: on the mesh {dict(mesh)}, a device's part of {dim} has an odd size for `dims`, but "
                f"an even size for `hidden_dims`; change {dim} in `hidden_dims` so that the part's size is odd"
            )
    for dim in dict.fromkeys(dim for dim, _ in hidden):
        if not any(size % 2 for (d, _), size in hidden.items() if d == dim):
            yield (
                f"{call.task.name}: on every mesh, the size of {dim} on a device is even with hidden_dims; choose "
                f"{dim} in hidden_dims so that this size is odd"
            )
    everywhere = [call.sizes(mesh, hidden=True) for mesh in call.meshes]
    if any(all(sizes[a] == sizes[b] for sizes in everywhere) for a, b in itertools.combinations(call.hidden_dims, 2)):
        yield f"{call.task.name}: two hidden dimensions have equal sizes; give different sizes"


def _blocks(call: Call, *, hidden: bool) -> dict[tuple[str, tuple], int]:
    """Return the size of one device's part of each sharded dimension, by (name of the dimension, mesh)."""
    found: dict[tuple[str, tuple], int] = {}
    for mesh in call.meshes:
        dims = call.sizes(mesh, hidden=hidden)
        for array in call.arrays.values():
            for dim, axes in zip(array.shape, entries(array.spec, len(array.shape)), strict=True):
                if isinstance(dim, str) and axes:
                    found[dim, tuple(mesh.items())] = dims[dim] // math.prod(mesh[axis] for axis in axes)
    return found


def fixed_keywords(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each static keyword that is equal in all calls of a task: solutions can hard-code it."""
    calls: dict[Task, list[Call]] = {}
    for call in judged_calls(exercise.checks.values()):
        calls.setdefault(call.task, []).append(call)
    for task, own in calls.items():
        defaults = {name: one.default for name, one in inspect.signature(task.fn).parameters.items()}
        given = [call.keywords(hidden=hidden) for call in own for hidden in (False, True)]
        for name in dict.fromkeys(itertools.chain(*given)):
            values = [keywords.get(name, defaults.get(name, inspect.Parameter.empty)) for keywords in given]
            if len({*map(_exactly, values)}) == 1:
                yield (
                    f"{task.name}: the static keyword {name} is {show_value(values[0])} in every call, so a solution "
                    "can hard-code it: give hidden_static, or another value in another call"
                )


def _exactly(value: Any) -> str:
    """Return a text that shows a value and its type, so that values of different types have different texts."""
    try:
        return repr(encode(value))
    except NotPlain:
        return repr(value)


def undecided_draws(exercise: Exercise) -> Iterator[str]:
    """Yield a problem if arguments or hidden cases differ when drawn twice from one seed. Raises AuthorError."""
    once, again = (plan(exercise, public=False, seed="verify") for _ in range(2))
    for first, second in zip(once, again, strict=True):
        if repr(first.cases) != repr(second.cases):
            yield f"{first.task}: two draws with one seed give different hidden cases: draw only with the given rng"
            return
        for one, other in zip(first.inputs, second.inputs, strict=True):
            for (name, drawn), (_, redrawn) in zip(arrays_of(one), arrays_of(other), strict=True):
                if drawn.tobytes() != redrawn.tobytes():
                    yield (
                        f"{first.task}: two draws with one seed give different values of argument {name}: "
                        "draw only with the given rng"
                    )
                    return


def alike_inputs(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each argument whose values are so regular that a wrong program could give a right result.

    - Along each dimension, some values must differ. If not, a program that mixes up positions gives a right result.
    - At least one device must hold floats that no other device holds. If not, a program that mixes up devices gives a
      right result.
    - Floats must depend on the random generator, so that hidden values differ from public values.

    If a call runs the program several times (``steps``), arguments that are results of an earlier run are not checked.
    """
    runs: dict[tuple[str, str], Runs] = {}
    for ask in plan(exercise, public=False, seed="verify"):
        if ask.hidden_inputs and isinstance(ask.of, Call):
            steps = [dict(arrays_of(step)) for step in ask.inputs]
            for name, array in _drawn_each_step(ask.of):
                drawn = [step[name] for step in steps if name in step]
                runs.setdefault((ask.task, name), []).append((array, ask, drawn))
    for (task, name), of_argument in runs.items():
        if problem := _alike_in_all(of_argument):
            yield f"{task}: argument {name} {problem}"


Runs = list[tuple[Array, Ask, list[np.ndarray]]]


def _alike_in_all(runs: Runs) -> str:
    """Return the reason why an argument's values are too regular in all runs; '' if they are varied enough."""
    every = [values for _, _, drawn in runs for values in drawn]
    for dim in range(every[0].ndim):
        if all(values.shape[dim] > 1 and _alike(np.moveaxis(values, dim, 0)) for values in every):
            return (
                f"has equal values along dimension {dim} in every draw, "
                "so a program that swaps positions along it would pass: draw different values"
            )
    return _alike_floats(runs) if is_inexact(every[0].dtype) else ""


def _alike_floats(runs: Runs) -> str:
    for array, ask, drawn in runs:
        held = list(zip(*(parts(values, array, ask.mesh) for values in drawn), strict=True))
        # For each device: the number of devices that hold its values.
        holders = [sum(all(map(np.array_equal, one, other)) for other in held) for one in held]
        if len(held) > 1 and 1 not in holders:
            where = f"of the mesh {dict(ask.mesh)}"
            return (
                f"gives each device {where} values that another device also has, "
                "so a program that mixes up the devices would pass: draw different values for each device"
            )
    if all(_alike(drawn) for _, _, drawn in runs):
        return "does not depend on rng, so learners know its hidden values: draw with the given rng"
    return ""


def _drawn_each_step(call: Call) -> Iterator[tuple[str, Array]]:
    """Yield (name, array) for each array argument that is not the result of an earlier run. Scalars are left out."""
    for argument, tree in call.drawn.items():
        if call.steps == 1 or argument not in call.fed:
            yield from ((name, array) for name, array in leaves(tree, argument) if array is not None and array.shape)


def parts(values: np.ndarray, array: Array, mesh: Mapping[str, int]) -> list[np.ndarray]:
    """Split an array's values as its sharding does, and return the parts. Replicated parts occur once."""
    found = [values]
    for dim, axes in enumerate(entries(array.spec, len(array.shape))):
        found = [part for one in found for part in np.split(one, math.prod(mesh[axis] for axis in axes), axis=dim)]
    return found


def _alike(arrays: Iterable[np.ndarray]) -> bool:
    first, *others = arrays
    return all(np.array_equal(first, other) for other in others)


def case_problems(exercise: Exercise, seed: str) -> Iterator[str]:
    """Yield problems: cases that no solution can pass, and checks that can fail only because of rounding.

    Args:
        seed: the course's seed, which decides the hidden cases.
    """
    plans = [_of_cases(exercise, one) for one in (seed, *SEEDS[:MORE_SEEDS])]
    found: dict[tuple[str, str], str] = {}
    for ask, cases in chain.from_iterable(plans):
        for case in ask.cases:
            if problem := _problem(exercise, cases.task, reference_outcome(cases.task, case)):
                found.setdefault((ask.task, problem), _named(case))
    yield from (f"{task}: for {case} the reference {problem}" for (task, problem), case in found.items())
    if not found:
        yield from _rounding(exercise, plans[0])


def _of_cases(exercise: Exercise, seed: str) -> list[tuple[Ask, Cases]]:
    asks = plan(_with_cases(exercise), public=False, seed=seed)
    return [(ask, ask.of) for ask in asks if isinstance(ask.of, Cases)]


def _with_cases(exercise: Exercise) -> Exercise:
    """Return the exercise with only its checks of plain Python tasks: inputs of other tasks take long to make."""
    checks = {name: check for name, check in exercise.checks.items() if isinstance(check.calls[0], Cases)}
    return replace(exercise, checks=checks)


def _problem(exercise: Exercise, task: Task, outcome: Outcome) -> str:
    """Return the reason why no solution can pass a case with this expected outcome; '' if a solution can pass it."""
    if outcome.error == "NotPlain":
        return "returns a value that cannot be compared: return numbers, texts, lists, tuples or dicts"
    if outcome.error and outcome.error not in f"{exercise.statement}\n{task.fn.__doc__ or ''}":
        return (
            f"raises {outcome.error}: mend the reference or the case; if the error is right, name it in the statement "
            "or the docstring"
        )
    if not same_outcome(outcome, outcome):
        return f"{show_outcome(outcome)}, which no learner's answer can equal: mend the reference or the case"
    return ""


def _rounding(exercise: Exercise, asks: list[tuple[Ask, Cases]]) -> Iterator[str]:
    """Yield a problem for each check that fails a program because of rounding errors in its floats."""
    for direction in (1, -1):
        answered = [
            AskFinding(
                ask,
                Finding(outcomes=[_rounded(reference_outcome(cases.task, case), direction) for case in ask.cases]),
            )
            for ask, cases in asks
        ]
        results = judge_checks(_with_cases(exercise), answered, public=False)
        failed = [result.name for result in results if result.status == "failed"]
        for name in failed:
            yield (
                f"{name}: the check fails a program whose floats differ from the reference's floats only in the last "
                "digits, for example because of another order of operations. Give expect_outcomes a larger rtol"
            )
        if failed:
            return


def _rounded(outcome: Outcome, direction: int) -> Outcome:
    return outcome if outcome.error else replace(outcome, value=_off(outcome.value, direction))


def _off(value: Any, direction: int) -> Any:
    """Return ``value`` with each float changed by ULPS units in the last place, up or down (``direction`` 1 or -1).

    Floats that are whole numbers do not change, because they may come from exact sums.
    """
    match value:
        case bool():
            return value
        case float() if not value.is_integer():
            return value + direction * ULPS * math.ulp(value)
        case list():
            return [_off(one, direction) for one in value]
        case tuple() if type(value) is tuple:
            return tuple(_off(one, direction) for one in value)
        case dict():
            return {key: _off(one, direction) for key, one in value.items()}
    return value


def _named(case: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={show_value(value)}" for name, value in case.items())
