"""The package keeps limits: complexity of a function (as radon counts it), lines of a function, lines of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "grader").rglob("*.py"))
MOST_BRANCHES, MOST_LINES, MOST_LINES_OF_A_FILE = 15, 50, 400

Function = ast.FunctionDef | ast.AsyncFunctionDef


def decisions(node: ast.AST) -> int:
    """Return how much one node adds to a function's complexity, as radon counts it."""
    match node:
        case ast.If() | ast.IfExp() | ast.Assert():
            return 1
        case ast.For() | ast.While() | ast.AsyncFor():
            return 1 + bool(node.orelse)
        case ast.Try():
            return len(node.handlers) + bool(node.orelse)
        case ast.BoolOp():
            return len(node.values) - 1
        case ast.comprehension():
            return 1 + len(node.ifs)
        case ast.Match():
            return len(node.cases) - any(
                isinstance(c.pattern, ast.MatchAs) and not c.pattern.pattern for c in node.cases
            )
    return 0


def within(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, except the nodes of nested functions."""
    left: list[ast.AST] = [*function.body]
    while left:
        node = left.pop()
        if not isinstance(node, Function):
            yield node
            left += [] if isinstance(node, ast.Assert) else ast.iter_child_nodes(node)


def complexity(function: Function) -> int:
    return 1 + sum(map(decisions, within(function)))


def functions(text: str) -> list[Function]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, Function)]


def test_no_function_is_complex_or_long() -> None:
    odd = {
        f"{path.relative_to(ROOT)} {one.name}": (complexity(one), lines)
        for path in FILES
        for one in functions(path.read_text(encoding="utf-8"))
        if (lines := (one.end_lineno or 0) - one.lineno + 1) > MOST_LINES or complexity(one) > MOST_BRANCHES
    }
    assert odd == {}


def test_no_file_is_long() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: size for name, size in sizes.items() if size > MOST_LINES_OF_A_FILE} == {}


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        ("return 1", 1),
        ("return a and b and c", 3),
        ("return [x for x in a if x if c for y in x]", 5),
        ("if a: pass\n elif b: pass\n else: pass", 3),
        ("for x in a: pass\n else: pass", 3),
        ("try: pass\n except A: pass\n except B: pass\n else: pass", 4),
        ("match a:\n  case 1: pass\n  case b: pass\n  case _: pass", 3),
        ("assert a and b", 2),
        ("def g():\n  return a or b\n return g if a else b", 2),
    ],
)
def test_complexity_is_counted_as_radon_does(body: str, counted: int) -> None:
    assert complexity(functions(f"def f():\n {body}")[0]) == counted
