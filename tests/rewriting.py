"""Rewrites: changes of a program's syntax, and helpers that replace functions and operators.

A helper replaces a function or an operator wherever the program uses it. A change of syntax rewrites statements. Some
rewrites change the results of some programs. Callers must check that a rewritten program computes the right values.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.loops import loop_as

HEAD = """\
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
"""

MODULES = ("jax", "jnp", "jax.numpy", "lax", "jax.lax", "np")


@dataclass(frozen=True)
class Rewrite:
    """One way to write a program in another style.

    Attributes:
        calls: replaced functions, and methods (with a dot in front), each with the name of its helper.
        operators: replaced binary operators (their class in ``ast``), each with the name of its helper.
        syntax: a function that changes a module in place.
        helpers: the text that defines the helpers.
        fits: takes a module's text and returns whether to rewrite the module.
    """

    name: str
    calls: dict[str, str]
    operators: dict[str, str]
    syntax: Callable[[ast.Module, random.Random], None] | None
    helpers: str
    fits: Callable[[str], bool] = lambda text: True

    def __call__(self, module: ast.Module, pick: random.Random) -> ast.Module:
        """Return the rewritten module, which uses the helpers but does not define them."""
        if not self.fits(ast.unparse(module)):
            return module
        module = _Replacing(self.calls, self.operators).visit(copy.deepcopy(module))
        if self.syntax:
            self.syntax(module, pick)
        return ast.fix_missing_locations(module)


class _Replacing(ast.NodeTransformer):
    def __init__(self, calls: dict[str, str], operators: dict[str, str]) -> None:
        self.calls, self.operators = calls, operators

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = ast.unparse(node)
        short = name.removeprefix("jax.") if name.startswith("jax.lax.") else name
        if isinstance(node.ctx, ast.Load) and (short in self.calls or name in self.calls):
            return ast.Name(self.calls.get(short) or self.calls[name], ast.Load())
        self.generic_visit(node)
        if node.attr == "T" and ".T" in self.calls and isinstance(node.ctx, ast.Load):
            return ast.Call(ast.Name(self.calls[".T"], ast.Load()), [node.value], [])
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.calls.get(node.id, node.id), node.ctx) if isinstance(node.ctx, ast.Load) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func
        if isinstance(called, ast.Attribute) and ast.unparse(called.value) not in MODULES:
            helper = self.calls.get(f".{called.attr}")
            return ast.Call(ast.Name(helper, ast.Load()), [called.value, *node.args], node.keywords) if helper else node
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        helper = self.operators.get(type(node.op).__name__)
        return ast.Call(ast.Name(helper, ast.Load()), [node.left, node.right], []) if helper else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        helper = self.operators.get("Subscript")
        plain = not isinstance(node.slice, ast.Slice | ast.Tuple | ast.Constant) and isinstance(node.ctx, ast.Load)
        return ast.Call(ast.Name(helper, ast.Load()), [node.value, node.slice], []) if helper and plain else node


# -- changes of syntax -------------------------------------------------------------------------


def functions(module: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]


def rename_variables(module: ast.Module, pick: random.Random) -> None:
    """Rename every variable that is local to a function, in the function and in functions inside it."""
    top = {name for s in module.body for name in stored([s], within=False)}
    for function in [s for s in module.body if isinstance(s, ast.FunctionDef)]:
        kept = {
            a.arg for f in ast.walk(function) if isinstance(f, ast.FunctionDef | ast.Lambda) for a in _every(f.args)
        }
        own = stored(function.body, within=True) - kept - top
        new = {name: f"value_{i}" for i, name in enumerate(pick.sample(sorted(own), len(own)))}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in new:
                node.id = new[node.id]
            elif isinstance(node, ast.FunctionDef) and node is not function:
                node.name = new.get(node.name, node.name)
            elif isinstance(node, ast.Nonlocal):
                node.names = [new.get(name, name) for name in node.names]


def _every(args: ast.arguments) -> list[ast.arg]:
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a)]


def stored(body: Sequence[ast.AST], *, within: bool) -> set[str]:
    """Return the names that statements assign. With ``within``, include assignments in nested functions."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if within or not isinstance(node, ast.FunctionDef | ast.Lambda):
            found |= stored(list(ast.iter_child_nodes(node)), within=within)
    return found


def reorder_statements(module: ast.Module, pick: random.Random) -> None:
    """Swap neighbouring assignments that do not depend on each other."""
    for function in functions(module):
        for _ in range(len(function.body)):
            for i in range(len(function.body) - 1):
                one, two = function.body[i : i + 2]
                if _swappable(one) and _swappable(two) and not _touch(one, two) and pick.random() < 0.6:
                    function.body[i : i + 2] = [two, one]


def _swappable(statement: ast.stmt) -> bool:
    """Return whether a statement only assigns names, without a change of a value in place."""
    return isinstance(statement, ast.Assign) and all(
        isinstance(n, ast.Name | ast.Tuple | ast.Starred | ast.expr_context)
        for target in statement.targets
        for n in ast.walk(target)
    )


def _touch(one: ast.stmt, two: ast.stmt) -> bool:
    names = [{n.id for n in ast.walk(s) if isinstance(n, ast.Name)} for s in (one, two)]
    return bool(stored([one], within=True) & names[1] or stored([two], within=True) & names[0])


def plain_assignments(module: ast.Module, pick: random.Random) -> None:
    """Write ``c += d`` as ``c = c + d``."""

    class Plain(ast.NodeTransformer):
        def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
            if not isinstance(node.target, ast.Name):
                return node
            was = ast.Name(node.target.id, ast.Load())
            return ast.Assign([node.target], ast.BinOp(was, node.op, node.value))

    Plain().visit(module)


def around_results(helper: str, *, outermost: bool) -> Callable[[ast.Module, random.Random], None]:
    """Pass the results of functions through a helper: of outermost functions, or of nested functions."""

    def change(module: ast.Module, pick: random.Random) -> None:
        top = [s for s in module.body if isinstance(s, ast.FunctionDef) and not s.name.startswith("again_")]
        for function in top if outermost else [f for f in functions(module) if f not in top]:
            for node in _returns(function):
                if node.value is not None:
                    node.value = ast.Call(ast.Name(helper, ast.Load()), [node.value], [])

    return change


def _returns(node: ast.AST) -> list[ast.Return]:
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            found.append(child)
        elif not isinstance(child, ast.FunctionDef | ast.Lambda):
            found += _returns(child)
    return found


def decorate(decorator: str, *, inner: bool) -> Callable[[ast.Module, random.Random], None]:
    """Decorate outermost functions or, with ``inner``, nested functions that take only arrays."""

    def change(module: ast.Module, pick: random.Random) -> None:
        top = [s for s in module.body if isinstance(s, ast.FunctionDef)]
        for function in [f for f in functions(module) if (f not in top) == inner]:
            arguments = function.args
            if not (arguments.vararg or arguments.kwarg or (inner and (arguments.kwonlyargs or arguments.defaults))):
                function.decorator_list.append(ast.parse(decorator, mode="eval").body)

    return change


def lambdas_as_functions(module: ast.Module, pick: random.Random) -> None:
    """Wrap each lambda in ``again_named``, which returns a named function."""

    class Named(ast.NodeTransformer):
        def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
            self.generic_visit(node)
            return ast.Call(ast.Name("again_named", ast.Load()), [node], [])

    Named().visit(module)


def keyword(function: str, name: str, value: str) -> Callable[[ast.Module, random.Random], None]:
    """Add the keyword argument ``name=value`` to every call of a function, or replace its value."""

    def change(module: ast.Module, pick: random.Random) -> None:
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == function:
                node.keywords = [k for k in node.keywords if k.arg != name]
                node.keywords.append(ast.keyword(name, ast.parse(value, mode="eval").body))

    return change


# -- all rewrites ------------------------------------------------------------------------------


def _rewrite(
    name: str,
    calls: str = "",
    helpers: str = "",
    operators: str = "",
    syntax: Callable | None = None,
    fits: Callable[[str], bool] = lambda text: True,
) -> Rewrite:
    """Return a rewrite. ``calls`` and ``operators`` have the form "name=helper name=helper"."""
    replaced, operated = (dict(pair.split("=") for pair in text.split()) for text in (calls, operators))
    return Rewrite(name, replaced, operated, syntax, helpers, fits)


def _can_reshard(text: str) -> bool:
    """Return whether helpers may reshard ``shard_map``'s arguments. In a vmap, this also gathers the vmap's axis."""
    return "jax.shard_map" in text and "vmap" not in text


def rewrites() -> list[Rewrite]:
    from tests.helpers import EXPLICIT, HELPERS, ON_EXPLICIT, PARTIAL, REDUCED

    found = [_rewrite(name, calls, helpers, operators) for name, (calls, operators, helpers) in HELPERS.items()]
    kept = (
        "def again_kept(tree):\n    return jax.tree.map(lambda v: ({})(v) if isinstance(v, jax.Array) else v, tree)\n"
    )
    arrays = "lambda v: v"
    found += [
        _rewrite("operands reduced", operators="MatMult=again_matmul", helpers=REDUCED, fits=lambda text: "reshard" in text),
        _rewrite("an Explicit mesh", "jax.shard_map=again_map", EXPLICIT + ON_EXPLICIT, fits=_can_reshard),
        _rewrite("results unreduced", "lax.psum=again_psum jax.shard_map=again_map", EXPLICIT + PARTIAL, fits=_can_reshard),
        _rewrite("other variables", syntax=rename_variables),
        _rewrite("other order", syntax=reorder_statements),
        _rewrite("plain assignments", syntax=plain_assignments),
        _rewrite("jit inside", syntax=decorate("jax.jit", inner=True)),
        _rewrite("jit outside", syntax=decorate("again_jit", inner=False), helpers=JIT),
        _rewrite("named call", syntax=decorate("jax.named_call", inner=True)),
        _rewrite("partial", syntax=decorate("functools.partial", inner=True)),
        _rewrite("wrapped", syntax=decorate("again_wrapped", inner=False), helpers=WRAPPED),
        _rewrite("an object", syntax=decorate("again_object", inner=False), helpers=OBJECT),
        _rewrite("lambdas named", syntax=lambdas_as_functions, helpers=NAMED),
        _rewrite("check_vma on", syntax=keyword("shard_map", "check_vma", "True")),
        _rewrite("check_vma off", syntax=keyword("shard_map", "check_vma", "False")),
        *(
            _rewrite(f"{name} {where}", syntax=around_results("again_kept", outermost=where == "outside"), helpers=kept.format(what))
            for where in ("inside", "outside")
            for name, what in {
                "tree map": arrays,
                "barrier": "lax.optimization_barrier",
                "its own dtype": "lambda v: lax.convert_element_type(v, v.dtype)",
                "asarray": "jnp.asarray",
                "a copy": "jnp.copy",
            }.items()
        ),
        *(_rewrite(f"range as {how}", syntax=loop_as(how)) for how in ("fori", "fori peeled", "scan peeled", "fori unrolled")),
    ]  # fmt: skip
    return found


JIT = """
def again_jit(f):
    import inspect
    static = [p.name for p in inspect.signature(f).parameters.values() if p.kind is p.KEYWORD_ONLY]
    def outer(*args, **static):
        return jax.jit(lambda *args: f(*args, **static))(*args)
    return outer
"""
WRAPPED = """
def again_wrapped(f):
    @functools.wraps(f)
    def inner(*args, **keywords):
        with jax.named_scope(f.__name__):
            return f(*args, **keywords)
    return inner
"""
OBJECT = """
class again_object:
    def __init__(self, f):
        self.f = f
    def __call__(self, *args, **keywords):
        return self.f(*args, **keywords)
"""
NAMED = """
def again_named(f):
    def named(*args, **keywords):
        return f(*args, **keywords)
    return named
"""


def written_again(module: ast.Module, ways: Sequence[Rewrite], pick: random.Random) -> str | None:
    """Apply rewrites one after the other and return the text; None if one of the rewrites changes nothing."""
    for way in ways:
        was, module = ast.unparse(module), way(module, pick)
        if ast.unparse(module) == was:
            return None
    helpers = "\n".join(way.helpers for way in ways)
    imports = [s for s in module.body if isinstance(s, ast.Import | ast.ImportFrom)]
    rest = [s for s in module.body if s not in imports]
    return "\n".join([*map(ast.unparse, imports), HEAD, helpers, "", *(ast.unparse(s) for s in rest), ""])
