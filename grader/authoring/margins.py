"""Check that right programs stay below each budget and wrong programs exceed it, both with a margin.

This module runs the checks again on traced programs. ``Seen.spent`` holds the amounts that a check compares with
budgets. Requests with inputs from the course's seed (``Ask.secret``) are ignored: amounts depend only on sizes, and
other requests have these sizes, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from grader.common.budget import Budget, BudgetUse
from grader.common.layout import show_device, show_sizes
from grader.common.observation import Observation, Seen
from grader.exercise import Check, Exercise
from grader.expect import show_bytes, show_time
from grader.judging.judge import Together, together
from grader.judging.plan import Ask
from grader.judging.seen import Answered

ROOM = 1.1
ROUNDING = 1e-9
SEPARATED = {"expect_memory": "memory", "expect_step_time": "time"}
"""The ``expect`` functions that measure memory or time, and the word for what each of them measures.

Right programs in different coding styles need different amounts, so these functions need budgets
``between(right, wrong)``.
"""
EXACT = "expect_collectives"
"""The ``expect`` function whose budget is an exact number of collectives, so that smaller numbers are wrong too."""
COUNTS = (EXACT, "expect_at_most")
SHOWN: Mapping[str, Callable[[float], str]] = {
    "expect_memory": show_bytes,
    "expect_traffic": show_bytes,
    "expect_flops": lambda n: f"{n:,.0f} FLOPs",
    "expect_step_time": lambda seconds: show_time(seconds * 1e12),
    "expect_bubble": lambda part: f"{part:.1%}",
}
Amounts = Mapping[str, Sequence[Answered]]
Uses = Mapping[str, BudgetUse]
"""The amounts that an ``expect`` function compared with one budget, by program name."""


@dataclass(frozen=True)
class BudgetKey:
    """The identity of one budget of a check. All calls of a task share the budget.

    Attributes:
        word: the ``expect`` function that compares an amount with the budget.
        what: the amount in words; may be ''.
        number: the position among those budgets of the check that agree in all other fields.
    """

    task: str
    word: str
    what: str
    number: int

    def __str__(self) -> str:
        return f"{self.word} ({self.what})" if self.what else self.word


Places = Mapping[str, Uses]
"""The amounts that programs compared with one budget, by a text that names the mesh and the sizes."""


def margin_problems(exercise: Exercise, right: Amounts, wrong: Amounts) -> Iterator[str]:
    """Yield a problem for each budget that does not separate right programs from wrong ones.

    A budget ``between(right, wrong)`` must separate programs on every mesh and with all sizes. At least one
    misconception that names the check in ``fails`` must exceed the budget. Each misconception that exceeds the budget
    must exceed it by the margin.

    A budget that is a plain number is the amount that right programs need. On each mesh, at least one right program
    must need at least this number divided by ROOM. On at least one mesh, at least one misconception must exceed the
    number by the margin.

    An exact number of collectives has only one rule: on at least one mesh, at least one misconception must run a
    different number of them.

    Args:
        right: results of the reference and of the alternatives, by the names that messages use.
        wrong: results of each misconception, by the misconception's name.
    """
    for one in measured(exercise, right, wrong):
        if one.separates:
            for sizes, uses in one.right.items():
                found = _problems(uses, one.wrong.get(sizes, {}))
                yield from (f"{one.check.name} {sizes}: {problem}" for problem in found)
        else:
            found = [*_loose(one.key, one.right), *_never_exceeded(one.key, one.right, one.wrong)]
            yield from (f"{one.check.name} {problem}" for problem in found)


@dataclass(frozen=True)
class Measured:
    """A budget of a check with the amounts that right and wrong programs need.

    Attributes:
        separates: see the function ``separates``.
        right: the amounts that right programs need.
        wrong: the amounts that misconceptions need, if their author says that they fail the check. If the budget is a
            plain number, also the amounts of misconceptions that fail an earlier check.
    """

    check: Check
    key: BudgetKey
    separates: bool
    right: Places
    wrong: Places


def measured(exercise: Exercise, right: Amounts, wrong: Amounts) -> Iterator[Measured]:
    """Yield each budget of an exercise with the amounts that programs need. Arguments: see ``margin_problems``."""
    for check in exercise.checks.values():
        below = _by_budget(check, right)
        if not below:
            continue
        plain = {key: _places(places, separate=False) for key, places in below.items()}
        named = _by_budget(check, _failing(exercise, wrong, {check.name}))
        failing = _failing(exercise, wrong, {check.name, *_before(exercise, check)}) if any(plain.values()) else {}
        known = _by_budget(check, failing, measuring=True)
        for key, places in below.items():
            if separated := _places(places, separate=True):
                yield Measured(check, key, True, separated, named.get(key, {}))
            if numbers := plain[key]:
                others = {sizes: uses for sizes, uses in known.get(key, {}).items() if sizes in numbers}
                yield Measured(check, key, False, numbers, others)


def _places(places: Places, *, separate: bool) -> Places:
    """Return the ``places`` with a budget that must separate programs; without ``separate``, all other places."""
    return {sizes: uses for sizes, uses in places.items() if any(map(separates, uses.values())) == separate}


def separates(use: BudgetUse) -> bool:
    """Return True for a budget that is declared with ``between``, or must be declared so (see ``SEPARATED``)."""
    return isinstance(use.budget, Budget) or use.word in SEPARATED


def _before(exercise: Exercise, check: Check) -> Iterator[str]:
    """Yield the names of the checks that must pass before ``check`` is judged."""
    for name in check.after:
        yield name
        yield from _before(exercise, exercise.checks[name])


def _failing(exercise: Exercise, wrong: Amounts, checks: set[str]) -> Amounts:
    return {name: found for name, found in wrong.items() if checks & set(exercise.misconceptions[name].fails)}


def _by_budget(check: Check, amounts: Amounts, measuring: bool = False) -> Mapping[BudgetKey, Places]:
    found: dict[BudgetKey, dict[str, dict[str, BudgetUse]]] = {}
    for who, answered in amounts.items():
        for sizes, key, use in uses_of(check, answered, measuring):
            found.setdefault(key, {}).setdefault(sizes, {})[who] = use
    return found


def _loose(key: BudgetKey, places: Places) -> Iterator[str]:
    """Yield a problem for each mesh (with its sizes) on which all right programs need much less than the budget."""
    show = _shown(key.word)
    for sizes, uses in places.items():
        who, use = max(uses.items(), key=lambda one: one[1].amount)
        if key.word != EXACT and use.amount * ROOM < use.budget * (1 - ROUNDING):
            yield (
                f"{sizes}: {key} allows {show(use.budget)}, and no right program needs more than {show(use.amount)} "
                f"({who}); lower the number, or write between(right, wrong)"
            )


def _never_exceeded(key: BudgetKey, right: Places, wrong: Places) -> Iterator[str]:
    """Yield a problem if no wrong program exceeds the budget by the margin, on any mesh with any sizes."""
    uses = _uses(wrong)
    if any(_is_far(use) for _, _, use in uses):
        return
    sizes, who, use = max(uses or _uses(right), key=lambda one: (one[2].amount - one[2].budget) / (one[2].budget or 1))
    show = _shown(key.word)
    if key.word == EXACT:
        asked, differs = "asks for", "takes a different number"
    else:
        asked, differs = "allows", "takes more" if key.word in COUNTS else "takes at least a tenth more"
    yield (
        f"{sizes}: {key} {asked} {show(use.budget)}, and no misconception {differs}: {who} takes {show(use.amount)}; "
        "add such a misconception, or choose sizes where an existing misconception does so"
    )


def _uses(places: Places) -> list[tuple[str, str, BudgetUse]]:
    return [(sizes, who, use) for sizes, uses in places.items() for who, use in uses.items()]


def _is_far(use: BudgetUse) -> bool:
    """Return True if a wrong program's amount exceeds the budget by the margin, or differs from an exact budget."""
    if use.word == EXACT:
        return use.amount != use.budget
    return _is_beyond(use) and (use.word in COUNTS or use.amount >= use.budget * ROOM * (1 - ROUNDING))


def _problems(right: Uses, wrong: Uses) -> Iterator[str]:
    use = next(iter(right.values()))
    budget, show = use.budget, _shown(use.word)
    if not isinstance(budget, Budget):
        what = SEPARATED[use.word]
        yield (
            f"write the {what} budget as between(right, wrong): "
            "`right` is what the cheapest right program needs, `wrong` is what the cheapest wrong program needs"
        )
        return
    yield from _claimed("right", budget.right, right)
    least_room = _room(use.word, budget)
    for who, one in right.items():
        if one.amount + least_room(one.amount) > one.budget * (1 + ROUNDING):
            yield f"{who} takes {show(one.amount)}, too close to the budget, {show(one.budget)}"
    beyond = {who: one for who, one in wrong.items() if _is_beyond(one)}
    if not beyond:
        yield (
            f"no misconception goes beyond the budget, {show(budget)}: "
            "add such a misconception, or choose sizes where one goes beyond it"
        )
        return
    yield from _claimed("wrong", budget.wrong, beyond)
    for who, one in beyond.items():
        if one.amount < one.budget + least_room(one.budget):
            yield f"{who} takes {show(one.amount)}, too close to the budget, {show(one.budget)}"


def _room(word: str, budget: Budget) -> Callable[[float], float]:
    """Return a function that computes the required margin for an amount."""
    if word in COUNTS:
        return lambda amount: 0.0
    if budget.unit:
        return lambda amount: budget.unit / 2
    return lambda amount: (ROOM - 1) * amount


def _claimed(what: str, claim: float, found: Uses) -> Iterator[str]:
    """Yield a problem if ``claim`` (from ``between``) and the least amount differ by more than the factor ROOM."""
    who = min(found, key=lambda name: found[name].amount)
    least, show = found[who].amount, _shown(found[who].word)
    if not claim / ROOM <= least <= claim * ROOM:
        yield (
            f"between(...) says that {what} programs need at least {show(claim)}, but the cheapest, {who}, "
            f"needs {show(least)}: write the cheapest program's amount, or change the program"
        )


def _is_beyond(use: BudgetUse) -> bool:
    return use.amount > use.budget


def _shown(word: str) -> Callable[[float], str]:
    return SHOWN.get(word, lambda n: f"{n:g}")


def uses_of(check: Check, answered: Sequence[Answered], measuring: bool) -> Iterator[tuple[str, BudgetKey, BudgetUse]]:
    """Yield (mesh and sizes, budget, comparison) for each comparison with a budget in this check.

    Args:
        measuring: True to continue with the check's next comparison after a program exceeds a budget.
    """
    for group in together(check, list(answered)):
        if group.ask.secret or not all(isinstance(a.finding, Observation) for a in group.each):
            continue
        before: Counter[tuple[str, ...]] = Counter()
        for ask, seen in _compared(group, measuring):
            sizes = _sizes(ask)
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
        for of_call in next(iter(group.seen(public=False)))
    )
    # If the check raises an error, use the amounts that it compared before. Another part of ``verify`` reports errors.
    with suppress(Exception):
        group.judged(given)
    return [
        (answer.ask, seen)
        for answers, of_call in zip(group.answers, given, strict=True)
        for answer, seen in zip(answers, [of_call] if isinstance(of_call, Seen) else of_call, strict=True)
    ]


def _sizes(ask: Ask) -> str:
    mesh = show_device(ask.mesh) if ask.mesh else ""
    sizes = show_sizes(ask.dims)
    return f"on {mesh} with {sizes}" if sizes else f"on {mesh}"
