"""Write a Python loop over a ``range`` as a loop of JAX."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable, Sequence

ROUNDS = {
    "fori": "{carry} = jax.lax.fori_loop({start}, {stop}, {round}, {carry})",
    "fori unrolled": "{carry} = jax.lax.fori_loop({start}, {stop}, {round}, {carry}, unroll=True)",
    "scan": "{carry}, _ = jax.lax.scan(lambda c, i: ({round}(i, c), None), {carry}, jnp.arange({start}, {stop}))",
}


def loop_as(how: str) -> Callable[[ast.Module, random.Random], None]:
    """Return a function that rewrites Python loops as loops of JAX.

    "peeled" runs the first round before the loop, so that the carried values already have their final types.
    """
    kind, peeled = how.removesuffix(" peeled"), how.endswith(" peeled")

    def change(module: ast.Module, pick: random.Random) -> None:
        for function in [n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)]:
            arguments = [a.arg for a in (*function.args.args, *function.args.kwonlyargs)]
            function.body = _body(function.body, set(arguments), kind, peeled)

    return change


def _body(body: Sequence[ast.stmt], bound: set[str], kind: str, peeled: bool) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in body:
        bounds = _range(statement)
        if bounds is None or not isinstance(statement, ast.For):
            found.append(statement)
        else:
            found += _loop(statement, *bounds, sorted(_given([statement]) & bound), kind, peeled)
        bound |= _given([statement])
    return found


def _range(loop: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """Return start and stop of a loop over a ``range``; None if the loop does more than assign names."""
    match loop:
        case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name("range"), args=args, keywords=[])) if len(args) < 3:
            inside = [n for s in loop.body for n in ast.walk(s)]
            if all(not isinstance(n, ast.Break | ast.Continue | ast.Return | ast.Expr) for n in inside):
                return (ast.Constant(0), args[0]) if len(args) == 1 else (args[0], args[1])
    return None


def _loop(loop: ast.For, start: ast.expr, stop: ast.expr, carry: list[str], kind: str, peeled: bool) -> list[ast.stmt]:
    assert isinstance(loop.target, ast.Name)
    index, name = loop.target.id, f"again_round_{loop.lineno}"
    carried = f"({', '.join(carry)},)"
    round_ = ast.parse(f"def {name}({index}, again_carry):\n    {carried} = again_carry\n    return {carried}").body[0]
    assert isinstance(round_, ast.FunctionDef)
    round_.body[1:1] = copy.deepcopy(loop.body)
    begin, end = ast.unparse(start), ast.unparse(stop)
    first = [*ast.parse(f"{index} = {begin}").body, *loop.body] if peeled else []
    call = ROUNDS[kind].format(carry=carried, start=f"{begin} + 1" if peeled else begin, stop=end, round=name)
    return [*first, round_, *ast.parse(call).body]


def _given(body: Sequence[ast.AST]) -> set[str]:
    """Return the names that statements assign, except those inside functions."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif not isinstance(node, ast.Lambda | ast.comprehension):
            found |= _given(list(ast.iter_child_nodes(node)))
    return found
