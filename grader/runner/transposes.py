"""Find the collectives that JAX made by transposing other collectives, as for gradients or ``jax.linear_transpose``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from grader.runner.admission import callee_of, is_transposed, kind_of


def transposed(operations: Sequence[Any]) -> tuple[bool, ...]:
    """Return for every operation whether it is a collective that JAX made by transposing another collective.

    JAX writes "transpose" into one of three source locations: the location of the collective, of an operation around it
    (such as a loop), or of a call of the function around it.
    """
    calls: dict[str, list[str]] = defaultdict(list)  # function -> the functions that it calls
    found: set[str] = set()
    for op in operations:
        if (callee := callee_of(op)) is not None:
            function, made = _around(op)
            calls[function].append(callee)
            found |= {callee} if made else set()
    waiting = list(found)
    while waiting:
        inner = set(calls[waiting.pop()]) - found
        found |= inner
        waiting += inner
    return tuple(kind_of(op) is not None and _is_made(op, found) for op in operations)


def _is_made(op: Any, functions: set[str]) -> bool:
    function, made = _around(op)
    return made or function in functions


def _around(op: Any) -> tuple[str, bool]:
    """Return the name of the function around ``op``, and whether JAX made ``op`` by transposing."""
    made = False
    while op.name != "func.func":
        made = made or is_transposed(op.location)
        op = op.parent
    return op.attributes["sym_name"].value, made
