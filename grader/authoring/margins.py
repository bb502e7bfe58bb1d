"""Check that right programs stay below each budget and wrong programs exceed it, both with a margin.

This module runs the checks again on traced programs. ``Seen.spent`` holds the amounts that a check compares with
budgets. Requests with hidden inputs are ignored: amounts depend only on sizes, and other requests have these sizes,
too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from grader.authoring.seeds import with_those_before
from grader.common.budget import Budget, BudgetUse
from grader.common.layout import show_device, show_sizes
from grader.common.observation import Seen
from grader.exercise import Check, Exercise
from grader.expect import show_bytes, show_time
from grader.judging.judge import Together, together
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding

ROOM = 1.1
ROUNDING = 1e-9
EXACT = "expect_collectives"
"""The ``expect`` function whose budget is an exact number of collectives, so that smaller numbers are wrong too."""
SHOWN: Mapping[str, Callable[[float], str]] = {
    "expect_memory": show_bytes,
    "expect_traffic": show_bytes,
    "expect_flops": lambda n: f"{n:,.0f} FLOPs",
    "expect_other_flops": lambda n: f"{n:,.0f} FLOPs",
    "expect_step_time": lambda seconds: show_time(seconds * 1e12),
    "expect_bubble": lambda part: f"{part:.1%}",
}
Amounts = Mapping[str, Sequence[AskFinding]]
Uses = Mapping[str, BudgetUse]
"""The amounts that an ``expect`` function compared with one budget, by program name."""


@dataclass(frozen=True)
class BudgetKey:
    """The identity of one budget of a check. All calls of a task share the budget.

    Attributes:
        word: the ``expect`` function that compares an amount with the budget.
        what: the amount in words; may be ''.
        number: the position among the check's budgets that agree in all other fields.
    """

    task: str
    word: str
    what: str
    number: int

    def __str__(self) -> str:
        return f"{self.word} ({self.what})" if self.what else self.word


Places = Mapping[str, Uses]
"""The amounts that programs compared with one budget, by a text that names the mesh and the sizes."""


def margin_problems(exercise: Exercise, right: Amounts, wrong: Amounts) -> Iterator[tuple[Check, str]]:
    """Yield (check, problem) for each budget that does not separate right programs from wrong ones.

    A budget ``between(right, wrong)`` must separate programs on every mesh and with all sizes. At least one
    misconception that names the check in ``fails`` must exceed the budget. Each misconception that exceeds the budget
    must exceed it by the margin.

    A budget ``needed(right, wrong)`` needs no margin above the amounts of right programs. If a misconception names the
    check and needs at least a tenth more than the budget, then it must need ``wrong`` or more. On at least one mesh, a
    misconception that names the check, or fails an earlier check, must need the amount ``wrong``.

    A budget must not be a plain number, except 0 and the exact numbers of ``expect_collectives``. On at least one mesh,
    a misconception that names the check, or fails an earlier check, must need an amount other than this plain number.

    Args:
        right: results of the reference and of the alternatives, by the names that messages use.
        wrong: results of each misconception, by the misconception's name.
    """
    for one in measured(exercise, right, wrong):
        yield from ((one.check, f"{one.check.name} {problem}") for problem in _problems(one))


@dataclass(frozen=True)
class Measured:
    """A budget of a check with the amounts that right and wrong programs need.

    Attributes:
        budget: the budget on the first mesh on which it is not 0; 0 if it is 0 on all meshes.
        right: the amounts that right programs need, on the meshes with a budget above 0. If there are no such meshes,
            the amounts on all meshes.
        wrong: the amounts that misconceptions need, if their author says that they fail the check. If a
            misconception fails the check before the check compares its amount with the budget, it is left out, unless
            the budget is declared with ``needed``.
        earlier: these amounts, and the amounts of misconceptions that fail an earlier check.
    """

    check: Check
    key: BudgetKey
    budget: float
    right: Places
    wrong: Places
    earlier: Places


def measured(exercise: Exercise, right: Amounts, wrong: Amounts) -> Iterator[Measured]:
    """Yield each budget of an exercise with the amounts that programs need. Arguments: see ``margin_problems``."""
    for check in exercise.checks.values():
        below = _by_budget(check, right)
        if not below:
            continue
        failing = _failing(exercise, wrong, {check.name})
        judged, named = _by_budget(check, failing, measuring=False), _by_budget(check, failing)
        before = {one.name for one in with_those_before(exercise, [check])}
        earlier = _by_budget(check, _failing(exercise, wrong, before))
        for key, places in below.items():
            budgets = {sizes: next(iter(uses.values())).budget for sizes, uses in places.items()}
            first = next(filter(None, budgets.values()), 0.0)
            places = {sizes: uses for sizes, uses in places.items() if budgets[sizes] or not first}
            failed = named if isinstance(first, Budget) and first.known else judged
            yield Measured(check, key, first, places, failed.get(key, {}), earlier.get(key, {}))


def separates(use: BudgetUse) -> bool:
    """Return True for a budget that is declared with ``between``."""
    return isinstance(use.budget, Budget) and not use.budget.known


def _failing(exercise: Exercise, wrong: Amounts, checks: set[str]) -> Amounts:
    return {name: found for name, found in wrong.items() if checks & set(exercise.misconceptions[name].fails)}


def _by_budget(check: Check, amounts: Amounts, measuring: bool = True) -> Mapping[BudgetKey, Places]:
    found: dict[BudgetKey, dict[str, dict[str, BudgetUse]]] = {}
    for who, answered in amounts.items():
        for sizes, key, use in uses_of(check, answered, measuring):
            found.setdefault(key, {}).setdefault(sizes, {})[who] = use
    return found


def _problems(one: Measured) -> Iterator[str]:
    """Yield the problems of one budget, each with the mesh and the sizes."""
    if isinstance(one.budget, Budget):
        for sizes, uses in one.right.items():
            found = _right_problems(uses)
            if not one.budget.known:
                found = [*found, *_wrong_problems(uses, one.wrong.get(sizes, {}))]
            yield from (f"{sizes}: {problem}" for problem in found)
        if one.budget.known:
            yield from _known_problems(one)
    elif one.budget and one.key.word != EXACT:
        yield (
            f"{next(iter(one.right))}: the budget of {one.key}, {_shown(one.key.word)(one.budget)}, is a plain number: "
            "write needed(right, wrong) or between(right, wrong), with the amounts that the cheapest right program and "
            "the cheapest wrong program need"
        )
    elif not differing(one.earlier):
        yield (
            f"{next(iter(one.right))}: {one.key} asks for {_shown(one.key.word)(one.budget)}, "
            "but no misconception has a different amount; add such a misconception, or choose sizes where a "
            "misconception has a different amount"
        )


def differing(places: Places) -> list[tuple[str, str, BudgetUse]]:
    """Return (sizes, program, comparison) for each amount above its budget, or different from an exact number."""
    return [
        (sizes, who, use)
        for sizes, uses in places.items()
        for who, use in uses.items()
        if (use.amount != use.budget if use.word == EXACT else _is_beyond(use))
    ]


def _known_problems(one: Measured) -> Iterator[str]:
    """Yield a problem if a wrong program needs less than the author says, or if no wrong program needs this amount."""
    wrong, beyond = (_far(places) for places in (one.wrong, one.earlier))
    if not beyond:
        yield f"{next(iter(one.right))}: {_none_beyond(one.key.word, one.budget)}"
        return
    sizes, who, use = min(wrong or beyond, key=lambda found: _share(found[2]))
    if _share(use) * ROOM * (1 + ROUNDING) >= 1:
        sizes, who, use = min(beyond, key=lambda found: abs(math.log(_share(found[2]))))
    assert isinstance(use.budget, Budget)
    yield from (f"{sizes}: {problem}" for problem in _claimed("wrong", use.budget.wrong, {who: use}))


def _far(places: Places) -> list[tuple[str, str, BudgetUse]]:
    """Return (sizes, program, comparison) for each amount that exceeds a declared budget by the margin."""
    return [one for one in differing(places) if isinstance(one[2].budget, Budget) and _is_far(one[2])]


def _share(use: BudgetUse) -> float:
    """Return a wrong program's amount, divided by the amount that the author declared for wrong programs."""
    assert isinstance(use.budget, Budget)
    return use.amount / use.budget.wrong


def _right_problems(right: Uses) -> Iterator[str]:
    word, budget = _declared(right)
    yield from _claimed("right", budget.right, right)
    for who, one in right.items():
        room = 0 if budget.known else _room(word, budget, one.amount)
        if one.amount + room > one.budget * (1 + ROUNDING):
            yield _too_close(who, one)


def _wrong_problems(right: Uses, wrong: Uses) -> Iterator[str]:
    word, budget = _declared(right)
    beyond = {who: one for who, one in wrong.items() if _is_beyond(one)}
    if not beyond:
        yield _none_beyond(word, budget)
        return
    yield from _claimed("wrong", budget.wrong, beyond)
    for who, one in beyond.items():
        if one.amount < (one.budget + _room(word, budget, one.budget)) * (1 - ROUNDING):
            yield _too_close(who, one)


def _too_close(who: str, use: BudgetUse) -> str:
    show = _shown(use.word)
    return f"{who} takes {show(use.amount)}, which is too close to the budget of {show(use.budget)}"


def _none_beyond(word: str, budget: float) -> str:
    return (
        f"no misconception exceeds the budget of {_shown(word)(budget)}: "
        "add such a misconception, or choose sizes where a misconception exceeds the budget"
    )


def _declared(uses: Uses) -> tuple[str, Budget]:
    """Return the ``expect`` function and its budget on one mesh."""
    use = next(iter(uses.values()))
    assert isinstance(use.budget, Budget)
    return use.word, use.budget


def _room(word: str, budget: Budget, amount: float) -> float:
    """Return the required margin for an amount."""
    return 0.0 if word == "expect_at_most" else budget.unit / 2 or (ROOM - 1) * amount


def _claimed(what: str, claim: float, found: Uses) -> Iterator[str]:
    """Yield a problem if ``claim`` (the author's amount) and the least amount differ by more than the factor ROOM."""
    who = min(found, key=lambda name: found[name].amount)
    least, show = found[who].amount, _shown(found[who].word)
    if not claim / ROOM <= least * (1 + ROUNDING) or not least <= claim * ROOM * (1 + ROUNDING):
        yield (
            f"the budget says that {what} programs need at least {show(claim)}, but the cheapest, {who}, "
            f"needs {show(least)}: write the cheapest program's amount, or change the program"
        )


def _is_far(use: BudgetUse) -> bool:
    return use.amount >= use.budget * ROOM * (1 - ROUNDING)


def _is_beyond(use: BudgetUse) -> bool:
    return use.amount > use.budget * (1 + ROUNDING)


def _shown(word: str) -> Callable[[float], str]:
    return SHOWN.get(word, lambda n: f"{n:g}")


def uses_of(
    check: Check, answered: Sequence[AskFinding], measuring: bool
) -> Iterator[tuple[str, BudgetKey, BudgetUse]]:
    """Yield (mesh and sizes, budget, comparison) for each comparison with a budget in this check.

    Args:
        measuring: True to continue with the check's next comparison after a program exceeds a budget.
    """
    for group in together(check, list(answered)):
        if group.ask.hidden_inputs or not all(a.finding.observation for a in group.each):
            continue
        before: Counter[tuple[str, ...]] = Counter()
        for ask, seen in _compared(group, measuring):
            sizes = sizes_of(ask)
            for use in seen.spent:
                place = (sizes, ask.task, use.word, use.what)
                yield sizes, BudgetKey(*place[1:], before[place]), use
                before[place] += 1


def _compared(group: Together, measuring: bool) -> list[tuple[Ask, Seen]]:
    """Judge the check on one set of inputs, and return each request with its amounts.

    One set suffices, because amounts do not depend on values.
    """
    given = tuple(
        replace(of_call, measuring=measuring)
        if isinstance(of_call, Seen)
        else [replace(seen, measuring=measuring) for seen in of_call]
        for of_call in next(iter(group.seen(learners_run=False)))
    )
    # If the check raises an error, use the amounts that it compared before. Another part of ``verify`` reports errors.
    with suppress(Exception):
        group.run_check(given)
    return [
        (answer.ask, seen)
        for answers, of_call in zip(group.by_call, given, strict=True)
        for answer, seen in zip(answers, [of_call] if isinstance(of_call, Seen) else of_call, strict=True)
    ]


def sizes_of(ask: Ask) -> str:
    """Return a text such as ``on (x=4) with I=8``."""
    mesh = show_device(ask.mesh) if ask.mesh else ""
    sizes = show_sizes(ask.dims)
    return f"on {mesh} with {sizes}" if sizes else f"on {mesh}"
