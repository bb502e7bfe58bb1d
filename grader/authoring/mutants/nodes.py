"""Helpers that all mutation operators share: facts about a task, and small changes of a syntax node."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TaskContext:
    """The facts about a task that mutation operators use.

    Attributes:
        axes: names of mesh axes.
        everywhere: the axes that every mesh of the task has.
        plain: True if the task is plain Python, which JAX does not trace.
        outer: the ``id`` of each ``return`` statement that is outside ``shard_map`` and so returns a global value.
        out_specs: the source code of every ``out_specs`` in the task.
        indices: the ``id`` of each index of the form ``(a - b) % n``, as in ``chunks[(me - 1) % n]``. Operators keep
            this ``% n``: negative indices count from the end, so the program is also right without it.
        keys: lookups by a string, such as ("params", "w1") for ``params["w1"]``.
    """

    axes: tuple[str, ...] = ("x", "y")
    everywhere: tuple[str, ...] = ("x",)
    plain: bool = False
    outer: frozenset[int] = frozenset()
    out_specs: frozenset[str] = frozenset()
    indices: frozenset[int] = frozenset()
    keys: tuple[tuple[str, str], ...] = ()


def called(node: ast.AST) -> str:
    """Return ``psum`` for ``psum(...)`` and ``jax.lax.psum(...)``; '' for nodes that are not calls."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def looked_up(node: ast.AST) -> tuple[str, str] | None:
    """Return ("params", "w1") for ``params["w1"]``, else None."""
    match node:
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
            return ast.unparse(value), key
    return None


def with_args(call: ast.Call, args: Iterable[ast.expr]) -> ast.Call:
    return ast.Call(call.func, list(args), call.keywords)


def traded(items: list[Any], i: int, j: int) -> list[Any]:
    items = list(items)
    items[i], items[j] = items[j], items[i]
    return items


def replaced(items: list[Any], i: int, new: Any) -> list[Any]:
    return [*items[:i], new, *items[i + 1 :]]


def transposed(node: ast.expr) -> ast.expr:
    return ast.Attribute(node, "T", ast.Load())


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
