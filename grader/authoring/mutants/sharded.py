"""Mutation operators for parallel programs: axes, specs, collectives, layouts.

Each operator takes a syntax node and yields the node's replacements.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from grader.authoring.mutants.nodes import TaskContext, called, is_none, replaced, traded, with_args
from grader.common import syntax

COLLECTIVES = {
    "psum", "pmean", "pmax", "pmin", "all_gather", "psum_scatter", "all_to_all", "ppermute", "pshuffle",
    "pbroadcast", "ragged_all_to_all",
}  # fmt: skip
COUNTED = {"axis_index": 0, "axis_size": 1}  # The values of these functions on a single device.
# For each collective: the name of the dimension argument, and this argument's position. The default dimension is 0.
DIMENSION = {"all_gather": ("axis", 3), "psum_scatter": ("scatter_dimension", 2)}


def axis(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Replace the name of a mesh axis by the name of another axis."""
    if isinstance(node, ast.Constant) and node.value in context.axes:
        yield from (ast.Constant(a) for a in context.axes if a != node.value)


def spec(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Drop or add an entry of a PartitionSpec, or move an entry to another dimension."""
    if called(node) not in ("P", "PartitionSpec"):
        return
    assert isinstance(node, ast.Call)
    named = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
    unused = [ast.Constant(a) for a in context.axes if a not in named]
    for i, entry in enumerate(node.args):
        for new in unused if is_none(entry) else [ast.Constant(None)]:
            yield with_args(node, replaced(node.args, i, new))
    for i, j in itertools.combinations(range(len(node.args)), 2):
        yield with_args(node, traded(node.args, i, j))
    if len(node.args) == 1:
        yield with_args(node, [ast.Constant(None), *node.args])
    if not node.args:
        yield from (with_args(node, [new]) for new in unused)


def collective(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Drop or repeat a collective, or replace ``axis_index`` and ``axis_size`` by their values on a single device."""
    name = called(node)
    if name in COUNTED:
        yield ast.Constant(COUNTED[name])
    if name in COLLECTIVES and isinstance(node, ast.Call) and node.args:
        yield node.args[0]
        yield with_args(node, [node, *node.args[1:]])


def dimension(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Change how a collective splits or joins arrays, as with ``axis=1`` or ``tiled=True``."""
    if not isinstance(node, ast.Call) or called(node) not in COLLECTIVES:
        return
    keywords = {k.arg: k for k in node.keywords}
    name, position = DIMENSION.get(called(node), ("", 0))
    if name and name not in keywords and len(node.args) <= position:
        yield ast.Call(node.func, node.args, [*node.keywords, ast.keyword(name, ast.Constant(1))])
    if name and "tiled" not in keywords:
        yield ast.Call(node.func, node.args, [*node.keywords, ast.keyword("tiled", ast.Constant(True))])
    if {"split_axis", "concat_axis"} <= set(keywords):
        other = {"split_axis": "concat_axis", "concat_axis": "split_axis"}
        swapped = [ast.keyword(k.arg, keywords[other.get(k.arg or "", k.arg)].value) for k in node.keywords]
        yield ast.Call(node.func, node.args, swapped)


def detour(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Make a task return the right values at a needless cost: with an all-gather or a pmax of each device's result."""
    if isinstance(node, ast.Return) and node.value and not context.plain and id(node) not in context.outer:
        for a in context.everywhere:
            yield wrapped("jax.lax.all_gather(_, {0!r})[jax.lax.axis_index({0!r})]", a, node.value)
            yield wrapped("jax.lax.pmax(_, {0!r})", a, node.value)


def relaid(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Make a task return the right values in another layout: sharded over an axis, or replicated."""
    if isinstance(node, ast.Return) and node.value and id(node) in context.outer:
        for entry in ["", *(repr(a) for a in context.everywhere)]:
            if not {f"P({entry})", f"P({entry}, None)"} & context.out_specs:
                place = f"jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec({entry}))"
                yield wrapped(f"jax.lax.with_sharding_constraint(_, {place})", "", node.value)


def wrapped(template: str, a: str, value: ast.expr) -> ast.Return:
    """Return the statement ``return TEMPLATE``, in which ``value`` replaces the name ``_``."""
    tree = syntax.expression(template.format(a))
    return ast.Return(_InPlaceOf(value).visit(tree).body)


class _InPlaceOf(ast.NodeTransformer):
    """Replace the name ``_`` by an expression."""

    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == "_" else node
