"""Find the operations that matter: replacing their results changes a result of the program.

Collectives and matmuls are numbered separately, both in the order of ``Operations.walk``. A trial run (``Poison``)
shows whether an operation matters. For a program that is never run, ``alive`` counts every operation on which a result
depends, even a matmul whose result is multiplied by 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from grader.common.dependency import Dependency
from grader.wire import operations
from grader.wire.operations import Operations

if TYPE_CHECKING:
    from grader.common.observation import Fault

COLLECTIVES, MATMULS = "collectives", "matmuls"
LARGEST_BOUND = 1e-3
"""A result counts as changed if it moves by more than this fraction of its largest value, whatever its dtype. The
fraction is small, because one training step changes parameters only a little."""


class Poison(Protocol):
    """A trial: run a program again with other values in place of an operation's results."""

    def matter(self, what: str) -> Sequence[bool] | Fault:
        """Return, for each operation of the kind ``what``, whether it matters; a Fault if the trial runs failed."""
        ...


def numbers(program: Operations, what: str) -> list[int]:
    """Return the positions in ``walk`` of a program's operations of the kind ``what`` (collectives or matmuls)."""
    return [
        n
        for n, op in enumerate(program.walk())
        if (op.name in operations.MATMULS if what == MATMULS else op.communication is not None)
    ]


def alive(program: Operations, what: str) -> list[bool]:
    """Return, for each operation of the kind ``what``, whether a result of the program depends on it."""
    needed = Dependency(program).needed
    return [n in needed for n in numbers(program, what)]
