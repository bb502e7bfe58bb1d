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
    """

    right: float
    wrong: float

    def __new__(cls, right: float, wrong: float, styles: float = 1) -> Budget:
        if not (right > 0 and styles >= 1 and LEAST_RATIO * styles * right <= wrong < math.inf):
            raise ValueError(
                f"between({right:g}, {wrong:g}): the wrong program needs at least {LEAST_RATIO:g} times what right "
                f"programs need, {styles * right:g}; choose sizes where they differ more"
            )
        budget = super().__new__(cls, math.floor(math.sqrt(styles * right * wrong)))
        budget.right, budget.wrong = right, wrong
        return budget


def between(right: float, wrong: float, *, styles: float = 1) -> Budget:
    """Return the budget between right programs and a wrong one: their geometric mean, a whole number.

    Args:
        right: the least that a right program needs.
        wrong: the least that the wrong program needs.
        styles: how many times ``right`` other right programs need.

    Raises:
        ValueError: ``wrong`` is less than 1.5 times what right programs need.
    """
    return Budget(right, wrong, styles)


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
