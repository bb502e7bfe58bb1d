"""Prove that memory budgets separate: right programs stay below them and wrong programs go beyond, both with room.

The judge runs the checks again, on the programs that ``verify`` has traced already. What a word compared stands in
``Seen.spent``. Only inputs that are not secret count: memory depends on sizes, and secret inputs have the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from grader.common.budget import Budget, BudgetUse
from grader.common.layout import show_device
from grader.common.observation import Observation, Seen
from grader.exercise import Check, Exercise
from grader.expect import show_bytes
from grader.judging.judge import Together, together
from grader.judging.seen import Answered

ROOM = 1.1
Amounts = Mapping[str, Sequence[Answered]]


@dataclass(frozen=True)
class BudgetKey:
    """One budget: the how-manieth of a check, on a mesh and with sizes."""

    check: str
    sizes: str
    number: int


def margin_problems(exercise: Exercise, right: Amounts, wrong: Amounts) -> Iterator[str]:
    """Name the budgets that do not separate.

    Args:
        right: what the reference and the alternatives came to, by the name that problems use.
        wrong: what each misconception came to, by its name.
    """
    below: dict[BudgetKey, dict[str, BudgetUse]] = {}
    for who, answered in right.items():
        for place, spent in spent_by(exercise.checks.values(), answered).items():
            below.setdefault(place, {})[who] = spent
    judged = {place.check for place in below}
    beyond: dict[BudgetKey, dict[str, BudgetUse]] = {}
    for misconception, answered in wrong.items():
        named = [exercise.checks[name] for name in exercise.misconceptions[misconception].fails if name in judged]
        for place, spent in spent_by(named, answered).items():
            if spent.amount > spent.budget:
                beyond.setdefault(place, {})[misconception] = spent
    for place, spents in below.items():
        for problem in _problems(spents, beyond.get(place, {})):
            yield f"{place.check} {place.sizes}: {problem}"


def _problems(right: Mapping[str, BudgetUse], wrong: Mapping[str, BudgetUse]) -> Iterator[str]:
    budgets = [spent.budget for spent in right.values()]
    budget = budgets[0]
    if not isinstance(budget, Budget):
        yield "a memory budget is between(right, wrong), the least that a right and the wrong program need"
        return
    yield from _claimed("right", budget.right, {who: spent.amount for who, spent in right.items()})
    for who, spent in right.items():
        if spent.amount * ROOM > spent.budget:
            yield f"{who} takes {show_bytes(spent.amount)}, too close to the budget, {show_bytes(spent.budget)}"
    if not wrong:
        yield f"no misconception goes beyond the budget, {show_bytes(budget)}"
        return
    # Room beyond the budget follows: it is at most wrong / sqrt(1.5), and what is measured at least wrong / ROOM.
    yield from _claimed("wrong", budget.wrong, {who: spent.amount for who, spent in wrong.items()})


def _claimed(what: str, claim: float, found: Mapping[str, float]) -> Iterator[str]:
    """The least that programs need is what the file says, within ROOM."""
    who = min(found, key=lambda name: found[name])
    if not claim / ROOM <= found[who] <= claim * ROOM:
        yield (
            f"between says that a {what} program needs {show_bytes(claim)} at least; "
            f"{who} takes {show_bytes(found[who])}, the least of all"
        )


def spent_by(checks: Iterable[Check], answered: Sequence[Answered]) -> dict[BudgetKey, BudgetUse]:
    """What each budget of these checks was compared with."""
    found = {}
    for check in checks:
        for group in together(check, list(answered)):
            if group.ask.secret or not all(isinstance(a.finding, Observation) for a in group.each):
                continue
            for number, spent in enumerate(_spent_in(group)):
                if spent.word == "expect_memory" or isinstance(spent.budget, Budget):
                    found[BudgetKey(check.name, _sizes(group), number)] = spent
    return found


def _spent_in(group: Together) -> list[BudgetUse]:
    """What the check compares in its first run: all runs are of the same program."""
    given = next(iter(group.seen(public=False)))
    with suppress(Exception):  # what it compared until then counts; why it failed is a problem of another proof
        group.judged(given)
    return [spent for seen in _seens(given) for spent in seen.spent]


def _seens(given: Any) -> Iterator[Seen]:
    if isinstance(given, Seen):
        yield given
    else:
        for one in given:
            yield from _seens(one)


def _sizes(group: Together) -> str:
    mesh = show_device(group.ask.mesh) if group.ask.mesh else ""
    return f"on {mesh} with {', '.join(f'{d}={n}' for d, n in group.ask.dims.items())}"
