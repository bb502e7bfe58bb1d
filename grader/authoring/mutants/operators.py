"""Mutation operators: each takes a syntax node and facts about its task, and yields the node's replacements.

The operators ``axis`` to ``relaid`` are for parallel programs: axes, specs, collectives, layouts. All other operators
are for any program: names, constants, arithmetic, conditions, loops, operands.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from grader.common import syntax

COLLECTIVES = {
    "psum", "pmean", "pmax", "pmin", "all_gather", "psum_scatter", "all_to_all", "ppermute", "pshuffle",
    "pbroadcast", "ragged_all_to_all",
}  # fmt: skip
COUNTED = {"axis_index": 0, "axis_size": 1}  # The values of these functions on a single device.
# For each collective: the name of the dimension argument, and this argument's position. The default dimension is 0.
DIMENSION = {"all_gather": ("axis", 3), "psum_scatter": ("scatter_dimension", 2)}
RENAMED = {
    "psum": ["pmean", "pmax"], "pmean": ["psum", "pmax"], "pmax": ["psum", "pmin"], "pmin": ["psum", "pmax"],
    "max": ["min"], "min": ["max"], "maximum": ["minimum"], "minimum": ["maximum"], "any": ["all"], "all": ["any"],
    "argmax": ["argmin"], "argmin": ["argmax"], "floor": ["ceil"], "ceil": ["floor"], "prod": ["sum"],
    "sum": ["mean", "max"], "mean": ["sum"],
}  # fmt: skip
TRADED = {"matmul": (0, 1), "dot": (0, 1), "where": (1, 2), "select": (1, 2), "cond": (1, 2)}
COMPARED: dict[type[ast.cmpop], list[ast.cmpop]] = {
    ast.Lt: [ast.LtE(), ast.GtE()], ast.LtE: [ast.Lt(), ast.Gt()], ast.Gt: [ast.GtE(), ast.LtE()],
    ast.GtE: [ast.Gt(), ast.Lt()], ast.Eq: [ast.NotEq()], ast.NotEq: [ast.Eq()], ast.Is: [ast.IsNot()],
    ast.IsNot: [ast.Is()], ast.In: [ast.NotIn()], ast.NotIn: [ast.In()],
}  # fmt: skip
COMPUTED: dict[type[ast.operator], list[ast.operator]] = {
    ast.Add: [ast.Sub()], ast.Sub: [ast.Add()], ast.Mult: [ast.FloorDiv()], ast.Div: [ast.Mult()],
    ast.FloorDiv: [ast.Mult(), ast.Div()], ast.Mod: [ast.FloorDiv()], ast.Pow: [ast.Mult()],
}  # fmt: skip
EINSUM = re.compile(r"[a-zA-Z,. ]+->[a-zA-Z ]*")
# Floats below EPSILON are safety margins, and floats above HUGE stand for infinity. Their exact values do not matter.
EPSILON, HUGE = 1e-3, 1e3


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
        value = ast.unparse(node.value)
        for a in context.everywhere:
            yield returned(f"jax.lax.all_gather({value}, {a!r})[jax.lax.axis_index({a!r})]")
            yield returned(f"jax.lax.pmax({value}, {a!r})")


def relaid(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Make a task return the right values in another layout: sharded over an axis, or replicated."""
    if isinstance(node, ast.Return) and node.value and id(node) in context.outer:
        for entry in ["", *(repr(a) for a in context.everywhere)]:
            if not {f"P({entry})", f"P({entry}, None)"} & context.out_specs:
                place = f"jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec({entry}))"
                yield returned(f"jax.lax.with_sharding_constraint({ast.unparse(node.value)}, {place})")


def returned(expression: str) -> ast.Return:
    return ast.Return(syntax.expression(expression).body)


def order(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Reverse a tuple or list (axes, specs, pairs of a permutation), or drop a name from a tuple or list of names."""
    if not isinstance(node, ast.Tuple | ast.List) or len(node.elts) < 2 or not isinstance(node.ctx, ast.Load):
        return
    kind = type(node)
    yield kind(node.elts[::-1], ast.Load())
    if all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in node.elts):
        yield from (kind([*node.elts[:i], *node.elts[i + 1 :]], ast.Load()) for i in range(len(node.elts)))


def key(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Replace a key of a lookup (``params["w2"]`` for ``params["w1"]``), or swap two values of a dict."""
    own = looked_up(node)
    if own in context.keys and isinstance(node, ast.Subscript):
        others = [key for tree, key in context.keys if tree == own[0] and key != own[1]]
        yield from (ast.Subscript(node.value, ast.Constant(other), node.ctx) for other in others)
    elif isinstance(node, ast.Dict):
        yield from (ast.Dict(node.keys, traded(node.values, i, i + 1)) for i in range(len(node.values) - 1))


def name(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Replace a function by a similar one, such as psum by pmean, or max by min."""
    if not isinstance(node, ast.Call):
        return
    for other in RENAMED.get(called(node), []):
        if isinstance(node.func, ast.Attribute):
            yield ast.Call(ast.Attribute(node.func.value, other, ast.Load()), node.args, node.keywords)
        elif other in RENAMED:
            yield ast.Call(ast.Name(other, ast.Load()), node.args, node.keywords)


def constant(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Negate booleans, change integers by one, and double floats that are neither tiny nor huge."""
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
        yield ast.Constant(value - 1)
    elif isinstance(value, float) and EPSILON <= abs(value) <= HUGE:
        yield ast.Constant(value * 2)


def bounds(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Make a loop run one round more or one round less."""
    if not isinstance(node, ast.Call):
        return
    which = {"range": range(len(node.args))[:2], "fori_loop": range(len(node.args))[:2]}.get(called(node), ())
    for i in which:
        for near in one_off(node.args[i]):
            yield with_args(node, replaced(node.args, i, near))
    if called(node) == "scan":
        for i, given in enumerate(node.keywords):
            for near in one_off(given.value) if given.arg == "length" else ():
                yield ast.Call(node.func, node.args, replaced(node.keywords, i, ast.keyword("length", near)))


def one_off(bound: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(bound, ast.Constant | ast.Starred):  # another mutation operator, ``constant``, changes constants
        yield ast.BinOp(bound, ast.Add(), ast.Constant(1))
        yield ast.BinOp(bound, ast.Sub(), ast.Constant(1))


def comparison(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Replace a comparison by its opposite, or add or remove equality, as in ``<=`` for ``<``."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in COMPARED[type(op)]:
                yield ast.Compare(node.left, replaced(node.ops, i, other), node.comparators)


def arithmetic(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Change or drop an operator, or drop a statement such as ``x += 1``."""
    if isinstance(node, ast.BinOp):
        yield from (ast.BinOp(node.left, other, node.right) for other in COMPUTED.get(type(node.op), []))
        if isinstance(node.op, ast.Mod) and id(node) not in context.indices:
            yield node.left
    elif isinstance(node, ast.AugAssign):
        yield from (ast.AugAssign(node.target, other, node.value) for other in COMPUTED.get(type(node.op), []))
        yield ast.Pass()
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand


def condition(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Negate a condition that is not a comparison, or replace a condition by True or by False."""
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
        if not isinstance(node.test, ast.Compare):
            yield ast.IfExp(negated(node.test), node.body, node.orelse)
    elif isinstance(node, ast.If):
        tests: list[ast.expr] = [ast.Constant(True), ast.Constant(False)]
        if not isinstance(node.test, ast.Compare):
            tests.append(negated(node.test))
        yield from (ast.If(test, node.body, node.orelse) for test in tests)
    elif isinstance(node, ast.While) and not isinstance(node.test, ast.Compare):
        yield ast.While(negated(node.test), node.body, node.orelse)
    elif isinstance(node, ast.comprehension):
        for i, test in enumerate(node.ifs):
            yield comprehension(node, [*node.ifs[:i], *node.ifs[i + 1 :]])
            if not isinstance(test, ast.Compare):
                yield comprehension(node, replaced(node.ifs, i, negated(test)))


def negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def comprehension(node: ast.comprehension, ifs: list[ast.expr]) -> ast.comprehension:
    return ast.comprehension(node.target, node.iter, ifs, node.is_async)


def result(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Replace the return value of a plain Python task by a constant, or a ``raise`` by ``pass``."""
    if isinstance(node, ast.Return) and context.plain:
        yield from (ast.Return(ast.Constant(value)) for value in (None, 0, 1))
    elif isinstance(node, ast.Raise):
        yield ast.Pass()


def operands(node: ast.AST, context: TaskContext) -> Iterator[ast.AST]:
    """Swap operands, transpose an operand or the result of a matmul, or reverse an einsum's operands or result."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield ast.BinOp(node.right, ast.MatMult(), node.left)
        yield ast.BinOp(transposed(node.left), ast.MatMult(), node.right)
        yield ast.BinOp(node.left, ast.MatMult(), transposed(node.right))
        yield transposed(node)
    elif isinstance(node, ast.Call) and called(node) in TRADED:
        i, j = TRADED[called(node)]
        if len(node.args) > j:
            yield with_args(node, traded(node.args, i, j))
        if called(node) in ("matmul", "dot"):
            yield from (with_args(node, replaced(node.args, k, transposed(a))) for k, a in enumerate(node.args[:2]))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and EINSUM.fullmatch(node.value):
        left, right = node.value.split("->")
        yield ast.Constant(f"{left}->{right[::-1]}")
        yield ast.Constant(f"{','.join(left.split(',')[::-1])}->{right}")


OPERATORS: list[Callable[[ast.AST, TaskContext], Iterator[ast.AST]]] = [
    axis, spec, order, key, collective, dimension, name, constant, bounds, comparison, arithmetic, condition, result,
    operands, detour, relaid,
]  # fmt: skip
