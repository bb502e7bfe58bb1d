"""Budgets for amounts such as bytes, and records of comparisons with a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_RATIO = 1.5


class Budget(float):
    """A limit on an amount, such as bytes, that separates right programs from a wrong program.

    Attributes:
        right: the least amount that a right program needs.
        wrong: the least amount that the wrong program needs.
        unit: the smallest difference between two programs' amounts, such as the time of one hop; 0 if there is none.
        known: True if the amount that right programs need is known. The budget then needs no margin above this amount.
    """

    right: float
    wrong: float
    unit: float
    known: bool

    def __new__(cls, most: float, wrong: float, at: float | None, near: str) -> Budget:
        ratio = 1 if near else LEAST_RATIO
        if not (most >= 0 and (most or at) and ratio * most <= wrong * (1 + 1e-9) and wrong < math.inf):
            raise ValueError(
                f"the wrong program needs {wrong:g}, but must need at least {ratio:g} times as much as right programs, "
                f"which need up to {most:g}; choose sizes where the two amounts differ more"
            )
        if at is not None and not most <= at < wrong:
            raise ValueError(
                f"at={at:g} is not between the amounts of right programs, {most:g}, and of the wrong program, {wrong:g}"
            )
        mean = math.sqrt(most * wrong)
        return super().__new__(cls, at if at is not None else math.floor(mean) if mean >= 1 else mean)


def between(right: float, wrong: float, *, styles: float = 1, at: float | None = None, unit: float = 0) -> Budget:
    """Return the budget between right and wrong programs: the geometric mean of ``styles * right`` and ``wrong``.

    A mean of 1 or more is rounded down. Raises ValueError if ``wrong`` is less than 1.5 times ``styles * right``, or if
    ``at`` is not between ``styles * right`` and ``wrong``.

    Args:
        right: the least amount that a right program needs.
        wrong: the least amount that the wrong program needs.
        styles: a factor, 1 or more. A right program in another style may need ``styles * right``.
        at: the budget, if the exercise's statement names a number; None to use the mean.
        unit: the smallest difference between two programs' amounts, such as the time of one hop; 0 if there is none.
            The command ``verify`` requires that each program's amount is at least half a unit from the budget.
    """
    if styles < 1:
        raise ValueError(f"styles={styles:g} is less than 1")
    budget = Budget(styles * right, wrong, at, near="")
    budget.right, budget.wrong, budget.unit, budget.known = right, wrong, unit, False
    return budget


def needed(right: float, wrong: float, *, at: float | None = None, near: str = "") -> Budget:
    """Return the budget for an amount that is known, such as the bytes of collectives: ``right``, or ``at`` if given.

    Raises ValueError if ``wrong`` is less than 1.5 times ``right`` (with ``near``: less than ``right``), or if ``at``
    is not between ``right`` and ``wrong``.

    Args:
        right: the least amount that a right program needs.
        wrong: the least amount that a wrong program needs.
        at: the budget, if right programs may need more than ``right``, for example a few scalars more.
        near: the reason why no sizes make ``wrong`` 1.5 times ``right``. With a reason, the ratio may be smaller.
    """
    budget = Budget(right, wrong, right if at is None else at, near)
    budget.right, budget.wrong, budget.unit, budget.known = right, wrong, 0, True
    return budget


@dataclass(frozen=True)
class BudgetUse:
    """A record of one comparison in a check: the amount that a program needs, and the budget.

    Attributes:
        word: the name of the comparing function, such as "expect_memory".
        amount: the amount that the program needs.
        budget: the largest amount that the program may need; for ``expect_collectives`` the exact amount.
        what: the collectives or the axis that the function counted, such as "all_gather over x"; "" if it counted all.
    """

    word: str
    amount: float
    budget: float
    what: str = ""
