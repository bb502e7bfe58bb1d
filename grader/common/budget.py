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
    """

    right: float
    wrong: float
    unit: float

    def __new__(cls, right: float, wrong: float, styles: float = 1, at: float | None = None, unit: float = 0) -> Budget:
        if not (right > 0 and styles >= 1 and LEAST_RATIO * styles * right <= wrong < math.inf):
            raise ValueError(
                f"between({right:g}, {wrong:g}): the wrong program must need at least {LEAST_RATIO:g} times as much "
                f"as right programs, which need up to {styles * right:g}; choose sizes where the two differ more"
            )
        if at is not None and not styles * right <= at < wrong:
            raise ValueError(
                f"between({right:g}, {wrong:g}): at={at:g} is not between {styles * right:g} and {wrong:g}"
            )
        mean = math.sqrt(styles * right * wrong)
        budget = super().__new__(cls, at if at is not None else math.floor(mean) if mean >= 1 else mean)
        budget.right, budget.wrong, budget.unit = right, wrong, unit
        return budget


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
    return Budget(right, wrong, styles, at, unit)


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
