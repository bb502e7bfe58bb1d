"""A budget that knows what it separates, and what a check compared with a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_RATIO = 1.5


class Budget(float):
    """A budget between what right programs need and what a wrong program needs.

    Attributes:
        right: the least that a right program needs.
        wrong: the least that the wrong program needs.
        unit: amounts are about whole numbers of it; 0 if they are not.
    """

    right: float
    wrong: float
    unit: float

    def __new__(cls, right: float, wrong: float, styles: float = 1, at: float | None = None, unit: float = 0) -> Budget:
        if not (right > 0 and styles >= 1 and LEAST_RATIO * styles * right <= wrong < math.inf):
            raise ValueError(
                f"between({right:g}, {wrong:g}): the wrong program needs at least {LEAST_RATIO:g} times what right "
                f"programs need, {styles * right:g}; choose sizes where they differ more"
            )
        if at is not None and not styles * right <= at < wrong:
            raise ValueError(f"between({right:g}, {wrong:g}): at={at:g} does not lie between them")
        mean = math.sqrt(styles * right * wrong)
        budget = super().__new__(cls, at if at is not None else math.floor(mean) if mean >= 1 else mean)
        budget.right, budget.wrong, budget.unit = right, wrong, unit
        return budget


def between(right: float, wrong: float, *, styles: float = 1, at: float | None = None, unit: float = 0) -> Budget:
    """Return the budget between right programs and a wrong one: their geometric mean, a whole number from 1 up.

    Args:
        right: the least that a right program needs.
        wrong: the least that the wrong program needs.
        styles: how many times ``right`` other right programs need.
        at: the budget, where the statement names it.
        unit: amounts are about whole numbers of it, such as the time of a hop. One unit more is then too much, so the
            budget has half a unit of room on both sides.

    Raises:
        ValueError: ``wrong`` is less than 1.5 times what right programs need, or ``at`` does not lie between them.
    """
    return Budget(right, wrong, styles, at, unit)


@dataclass(frozen=True)
class BudgetUse:
    """What a word of a check compared.

    Attributes:
        word: the word, such as "expect_memory".
        amount: what the program needs.
        budget: what it may need at most.
    """

    word: str
    amount: float
    budget: float
