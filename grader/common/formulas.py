"""Parse and evaluate formulas that students write, in a confined process.

The grader compares the values of two formulas at random points. So it needs no computer algebra library, whose parser
may call ``eval``. ``ast`` parses the formula, and only nodes of an allow-list are evaluated. All numbers are float64,
so ``9**9**9`` gives infinity and not an integer with many digits.
"""

from __future__ import annotations

import ast
import hashlib
import keyword
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from grader.common.syntax import expression, parsed
from grader.wire.messages import FormulaText, RunnerAnswer

LONGEST, MOST_PARTS, POINTS = 500, 300, 32
"""Limits of a formula's characters and syntax nodes, and the number of points at which values are compared."""
OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "log2": np.log2,
    "max": np.maximum,
    "min": np.minimum,
    "sqrt": np.sqrt,
}
SUCH_AS = "write it like 2*D/(W*X), with * for products and ** for powers"


class BadFormula(ValueError):
    """The text is not a formula. The message is one line for the student."""


def points_of(symbols: Mapping[str, Sequence[float]]) -> list[list[float]]:
    """Return the points at which to compare formulas. A point has one value for each symbol, in order.

    The points are pseudorandom. Equal ``symbols`` give equal points.

    ``symbols``: the possible values of each symbol.
    """

    def drawn(name: str, number: int) -> float:
        digest = hashlib.sha256(f"{name} {number}".encode()).digest()
        return float(symbols[name][int.from_bytes(digest[:8], "big") % len(symbols[name])])

    return [[drawn(name, number) for name in symbols] for number in range(POINTS)]


def is_symbol(name: str) -> bool:
    """Return whether a formula can use ``name`` as a symbol.

    The name must be in Unicode's NFKC form, to which ``ast`` converts names.
    """
    plain = name.isidentifier() and unicodedata.normalize("NFKC", name) == name
    return plain and not keyword.iskeyword(name) and name not in FUNCTIONS


def evaluate(text: str, names: Sequence[str], points: Sequence[Sequence[float]]) -> list[float]:
    """Return the formula's value at each point. Raises only BadFormula, whatever the text is."""
    if len(text) > LONGEST:
        raise BadFormula(f"a formula has at most {LONGEST} characters")
    tree = _parsed(text)
    if sum(1 for _ in ast.walk(tree)) > MOST_PARTS:
        raise BadFormula("this formula is too long: simplify it")
    columns = np.array(points, float).reshape(len(points), len(names)).T
    with np.errstate(all="ignore"):
        values = np.broadcast_to(_value(tree, dict(zip(names, columns, strict=True))), len(points))
    for value, point in zip(values.tolist(), points, strict=True):
        if not math.isfinite(value):
            where = ", ".join(f"{name}={number:g}" for name, number in zip(names, point, strict=True))
            raise BadFormula(f"the formula has no finite value for {where}")
    return values.tolist()


def answer(request: FormulaText) -> RunnerAnswer:
    """Evaluate the formula of a request. Return ``{"values": ...}``, or ``{"problem": one line}``."""
    try:
        return {"values": evaluate(request["text"], request["names"], request["points"])}
    except BadFormula as error:
        return {"problem": str(error)}


def _parsed(text: str) -> ast.expr:
    tree = parsed(" ".join(text.split()), expression)
    if tree is not None:
        return tree.body
    if "=" in text:
        raise BadFormula("write only the right side of the formula, without =")
    raise BadFormula(f"this is not a formula: {SUCH_AS}")


def _value(node: ast.expr, symbols: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            try:
                return np.float64(value)
            except OverflowError:
                raise BadFormula("a number in this formula is too large") from None
        case ast.Name(id=name):
            return _symbol(name, symbols)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, symbols))
        case ast.BinOp(op=ast.BitXor()):
            raise BadFormula("write a power with **, not with ^")
        case ast.BinOp(op=op, left=left, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, symbols), _value(right, symbols))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name, [_value(arg, symbols) for arg in args], symbols)
    raise BadFormula(f"a formula has only numbers, symbols, + - * / ** and {', '.join(FUNCTIONS)}: {SUCH_AS}")


def _symbol(name: str, symbols: Mapping[str, Any]) -> Any:
    if name in symbols:
        return symbols[name]
    if name in FUNCTIONS:
        raise BadFormula(f"{name} is a function: write {name}(...)")
    raise BadFormula(f"there is no symbol {name[:40]!r}: the symbols are {', '.join(symbols)}")


def _call(name: str, args: Sequence[Any], symbols: Mapping[str, Any]) -> Any:
    if name in symbols:
        raise BadFormula(f"{name} is a symbol and not a function: write a product as {name}*(...)")
    if name not in FUNCTIONS:
        raise BadFormula(f"there is no function {name[:40]!r}: the functions are {', '.join(FUNCTIONS)}")
    due = 2 if name in ("max", "min") else 1
    if len(args) != due:
        raise BadFormula(f"{name} takes {due} argument{'s' if due > 1 else ''}, but you gave {len(args)}")
    return FUNCTIONS[name](*args)
