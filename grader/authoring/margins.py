"""Check that budgets separate: right programs stay below them and wrong programs exceed them, both with a margin.

The judge runs the checks again on the programs that ``verify`` has traced. ``Seen.spent`` holds the compared amounts.
Only inputs that are not secret count: amounts depend on sizes, and secret inputs have the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from grader.common.budget import Budget, BudgetUse
from grader.common.layout import show_device
from grader.common.observation import Observation, Seen
from grader.exercise import Check, Exercise
from grader.expect import show_bytes, show_time
from grader.judging.judge import Together, together
from grader.judging.seen import Answered

ROOM = 1.1
ROUNDING = 1e-9
COUNT = "expect_at_most"
SEPARATED = {"expect_memory": "memory", "expect_step_time": "time"}
"""The ``expect`` functions with amounts that differ between styles; their budgets are ``between(right, wrong)``."""
SHOWN: Mapping[str, Callable[[float], str]] = {
    "expect_memory": show_bytes,
    "expect_traffic": show_bytes,
    "expect_flops": lambda n: f"{n:,.0f} FLOPs",
    "expect_step_time": lambda seconds: show_time(seconds * 1e12),
    "expect_bubble": lambda part: f"{part:.1%}",
}
Amounts = Mapping[str, Sequence[Answered]]
Uses = Mapping[str, BudgetUse]
"""What an ``expect`` function compared, by the program's name."""


@dataclass(frozen=True)
class BudgetKey:
    """One budget of a check: its position among the check's budgets, with the mesh and sizes."""

    sizes: str
    number: int


def margin_problems(exercise: Exercise, right: Amounts, wrong: Amounts) -> Iterator[str]:
    """Yield a problem for each budget that does not separate right programs from wrong ones.

    On every mesh with every size, at least one misconception that names the check must exceed a ``between``, and those
    that exceed it must keep the margin. A plain number of ``expect_at_most`` must be exceeded once, with some mesh and
    sizes. Here misconceptions that name an earlier check count too, as the later check never judges them.

    Args:
        right: findings of the reference and the alternatives, by the name that problems use.
        wrong: findings of each misconception, by its name.
    """
    for check in exercise.checks.values():
        below = _by_place(check, right)
        if not below:
            continue
        named = _by_place(check, _failing(exercise, wrong, {check.name}))
        plain = [place for place, uses in below.items() if not _separates(uses)]
        for place, uses in below.items():
            if place not in plain:
                yield from (f"{check.name} {place.sizes}: {p}" for p in _problems(uses, named.get(place, {})))
        if _counts(below, plain):
            earlier = _by_place(check, _failing(exercise, wrong, set(_before(exercise, check))))
            if not any(_is_beyond(use) for use in [*_counts(named, plain), *_counts(earlier, plain)]):
                yield f"{check.name}: no misconception has more collectives than {COUNT} allows"


def _counts(found: Mapping[BudgetKey, Uses], places: Sequence[BudgetKey]) -> list[BudgetUse]:
    """Return the uses of ``expect_at_most`` at these places."""
    return [use for place in places for use in found.get(place, {}).values() if use.word == COUNT]


def _separates(right: Uses) -> bool:
    """Return True if the budget is a ``between``, or has to be one."""
    use = next(iter(right.values()))
    return isinstance(use.budget, Budget) or use.word in SEPARATED


def _before(exercise: Exercise, check: Check) -> Iterator[str]:
    """Yield the checks that must pass before this one is judged."""
    for name in check.after:
        yield name
        yield from _before(exercise, exercise.checks[name])


def _failing(exercise: Exercise, wrong: Amounts, checks: set[str]) -> Amounts:
    """Return the misconceptions that name one of these checks."""
    return {name: found for name, found in wrong.items() if checks & set(exercise.misconceptions[name].fails)}


def _by_place(check: Check, amounts: Amounts) -> dict[BudgetKey, Uses]:
    found: dict[BudgetKey, dict[str, BudgetUse]] = {}
    for who, answered in amounts.items():
        for place, use in uses_of(check, answered):
            found.setdefault(place, {})[who] = use
    return dict(found)


def _problems(right: Uses, wrong: Uses) -> Iterator[str]:
    use = next(iter(right.values()))
    budget, show = use.budget, SHOWN.get(use.word, _count)
    if not isinstance(budget, Budget):
        what = SEPARATED[use.word]
        yield f"a {what} budget is between(right, wrong), the least that a right and the wrong program need"
        return
    yield from _claimed("right", budget.right, right)
    least_room = _room(use.word, budget)
    for who, one in right.items():
        if one.amount + least_room(one.amount) > one.budget * (1 + ROUNDING):
            yield f"{who} takes {show(one.amount)}, too close to the budget, {show(one.budget)}"
    beyond = {who: one for who, one in wrong.items() if _is_beyond(one)}
    if not beyond:
        yield f"no misconception goes beyond the budget, {show(budget)}"
        return
    yield from _claimed("wrong", budget.wrong, beyond)
    for who, one in beyond.items():
        if one.amount < one.budget + least_room(one.budget):
            yield f"{who} takes {show(one.amount)}, too close to the budget, {show(one.budget)}"


def _room(word: str, budget: Budget) -> Callable[[float], float]:
    """Return the room that a budget must have above a right amount and below a wrong one."""
    if word == COUNT:
        return lambda amount: 0.0
    if budget.unit:
        return lambda amount: budget.unit / 2
    return lambda amount: (ROOM - 1) * amount


def _claimed(what: str, claim: float, found: Uses) -> Iterator[str]:
    """Yield a problem if the least amount of these programs differs from the claimed one by more than ROOM."""
    who = min(found, key=lambda name: found[name].amount)
    least, show = found[who].amount, SHOWN.get(found[who].word, _count)
    if not claim / ROOM <= least <= claim * ROOM:
        yield (
            f"between says that a {what} program needs {show(claim)} at least; "
            f"{who} takes {show(least)}, the least of all"
        )


def _is_beyond(use: BudgetUse) -> bool:
    return use.amount > use.budget


def _count(n: float) -> str:
    return f"{n:g}"


def uses_of(check: Check, answered: Sequence[Answered]) -> Iterator[tuple[BudgetKey, BudgetUse]]:
    """Yield what each budget of this check was compared with."""
    for group in together(check, list(answered)):
        if group.ask.secret or not all(isinstance(a.finding, Observation) for a in group.each):
            continue
        for number, use in enumerate(_uses_in(group)):
            yield BudgetKey(_sizes(group), number), use


def _uses_in(group: Together) -> list[BudgetUse]:
    """Return what the check compares in its first run, as all runs share one program."""
    given = next(iter(group.seen(public=False)))
    with suppress(Exception):  # amounts compared before an error count; another proof reports the error
        group.judged(given)
    return [use for seen in _seens(given) for use in seen.spent]


def _seens(given: Any) -> Iterator[Seen]:
    if isinstance(given, Seen):
        yield given
    else:
        for one in given:
            yield from _seens(one)


def _sizes(group: Together) -> str:
    mesh = show_device(group.ask.mesh) if group.ask.mesh else ""
    return f"on {mesh} with {', '.join(f'{d}={n}' for d, n in group.ask.dims.items())}"
