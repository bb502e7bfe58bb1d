"""Operations that matter: replacing such an operation's results by other values changes a result of the task.

Operations of a kind are numbered among themselves in the order of ``Operations.walk``. Finding out whether an operation
matters takes a trial (``Poison``). In a program that is never run, every operation that a result depends on counts as
one that matters (``alive``), even a matmul that is multiplied by 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from grader.common.dependency import Dependency
from grader.wire.operations import MATMULS, Operations

if TYPE_CHECKING:
    from grader.common.observation import Fault

COLLECTIVES, PRODUCTS = "collectives", "matmuls"


class Poison(Protocol):
    """Runs a program again with other values in place of an operation's results."""

    def matter(self, what: str) -> Sequence[bool] | Fault:
        """Return for each collective, or each matmul, whether a result depends on its values; a fault if unknown."""
        ...


def numbers(program: Operations, what: str) -> list[int]:
    """Return the operations of a kind, by their numbers in the order of ``walk``."""
    return [
        n
        for n, op in enumerate(program.walk())
        if (op.name in MATMULS if what == PRODUCTS else op.communication is not None)
    ]


def alive(program: Operations, what: str) -> list[bool]:
    """Return for each operation of a kind whether a result of the program depends on it."""
    needed = Dependency(program).needed
    return [n in needed for n in numbers(program, what)]
