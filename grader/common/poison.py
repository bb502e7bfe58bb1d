"""Which operations matter: those whose results, when they are replaced by other values, change a result of the task.

The operations of a kind go by their numbers among those of that kind, in the order in which ``Operations.walk`` has
them. Whether one matters somebody must try (``Poison``). Where nobody can, as for a program that is never run, those
count that a result waits for (``alive``): a product that is multiplied by 0 is one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from grader.common.dependency import Dependency
from grader.wire.operations import MATMULS, Operations

if TYPE_CHECKING:
    from grader.common.observation import Fault

COLLECTIVES, PRODUCTS = "collectives", "products"


class Poison(Protocol):
    """Runs a program again with other values in the place of what an operation returns."""

    def matter(self, what: str) -> Sequence[bool] | Fault:
        """Of each collective, or of each product: whether a result changes; or why that cannot be known."""
        ...


def numbers(program: Operations, what: str) -> list[int]:
    """The operations of a kind, by their numbers in the order of ``walk``."""
    return [
        n
        for n, op in enumerate(program.walk())
        if (op.name in MATMULS if what == PRODUCTS else op.communication is not None)
    ]


def alive(program: Operations, what: str) -> list[bool]:
    """Of each operation of a kind, whether a result of the program waits for it."""
    needed = Dependency(program).needed
    return [n in needed for n in numbers(program, what)]
