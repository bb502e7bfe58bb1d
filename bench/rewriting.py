"""Rewrite a program in another style, without changing its results."""

from __future__ import annotations

import ast
from collections.abc import Callable

HELPERS = """
def matmul_by_einsum(a, b):
    if b.ndim == 2 and a.ndim >= 2:
        return jax.numpy.einsum("...j,jk->...k", a, b)
    return jax.numpy.matmul(a, b)


def loop_written_out(first, last, body, carry, **how):
    try:
        rounds = range(int(first), int(last))
    except Exception:
        return jax.lax.fori_loop(first, last, body, carry, **how)
    for i in rounds:
        carry = body(i, carry)
    return carry
"""
IN_LAX = {"exp", "log", "tanh", "sqrt", "sign", "floor", "abs"}


class _Einsum(ast.NodeTransformer):
    """Write ``a @ b`` as an einsum."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return ast.Call(ast.Name("matmul_by_einsum", ast.Load()), [node.left, node.right], [])


class _Lax(ast.NodeTransformer):
    """Write ``jnp.exp`` as ``jax.lax.exp``, swap the terms of sums, and write ``x = x + y`` for ``x += y``."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "jnp" and node.attr in IN_LAX - {"abs"}:
            return ast.parse(f"jax.lax.{node.attr}", mode="eval").body
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        plain = all(isinstance(side, ast.Name | ast.Call | ast.BinOp) for side in (node.left, node.right))
        if isinstance(node.op, ast.Add | ast.Mult) and plain:
            node.left, node.right = node.right, node.left
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        read = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], ast.BinOp(read, node.op, node.value))


class _Unrolled(ast.NodeTransformer):
    """Write a ``fori_loop`` as a Python loop."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) in ("jax.lax.fori_loop", "lax.fori_loop"):
            node.func = ast.Name("loop_written_out", ast.Load())
        return node


def _jitted(tree: ast.Module, task: str, plain: bool) -> ast.Module:
    """Decorate the task with ``jax.jit`` if the task's arguments are only arrays."""
    for node in tree.body:
        alone = isinstance(node, ast.FunctionDef) and node.name == task and not node.args.kwonlyargs
        if isinstance(node, ast.FunctionDef) and alone and not plain:
            node.decorator_list.insert(0, ast.parse("jax.jit", mode="eval").body)
    return tree


def styles(text: str, task: str, *, plain: bool) -> dict[str, str]:
    """Return ``text`` in each style that changes the program.

    ``plain`` is True if the task takes and returns plain Python values, not arrays.
    """
    made: dict[str, Callable[[ast.Module], ast.AST]] = {
        "einsum": _Einsum().visit,
        "lax": _Lax().visit,
        "unrolled": _Unrolled().visit,
        "jit": lambda tree: _jitted(tree, task, plain),
    }
    before, found = ast.unparse(ast.parse(text)), {}
    for name, change in made.items():
        after = ast.unparse(ast.fix_missing_locations(change(ast.parse(text))))
        if after != before:
            found[name] = f"import jax\n{HELPERS}\n{after}\n"
    return found
