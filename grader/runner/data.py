"""Find the values of a program that are *data*: values that depend on the program's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grader.runner.admission import callee_of, walk

RETURNS = {"func.return", "stablehlo.return", "sdy.return"}
BRANCHES = {"stablehlo.case", "stablehlo.if"}
BODIES = {"sdy.manual_computation", "sdy.named_computation"}


def data_of(functions: Mapping[str, Any]) -> set[Any]:
    """Return the values that depend on an argument of main. ``functions``: the functions of a module by name.

    All other values follow from the program alone: constants, positions of devices on the mesh, and values computed
    only from these. If the condition of a branch or a loop is data, all results of this branch or loop are data. A
    value in a function is data if it is data in at least one call of the function.
    """
    calls: dict[str, list[Any]] = {name: [] for name in functions}
    for function in functions.values():
        for op in walk(function):
            if (callee := callee_of(op)) is not None:
                calls[callee].append(op)
    found: set[Any] = set()
    left = list(_arguments(functions["main"]))
    while left:
        value = left.pop()
        if value not in found:
            found.add(value)
            for use in value.uses:
                left += _reached(use.owner.operation, use.operand_number, functions, calls)
    return found


def _reached(op: Any, number: int, functions: Mapping[str, Any], calls: Mapping[str, list[Any]]) -> Iterator[Any]:
    """Yield the values that depend directly on operand ``number`` of ``op``."""
    if op.name in RETURNS:
        yield from _returned(op, number, calls)
    elif (callee := callee_of(op)) is not None:
        yield _first(functions[callee]).arguments[number]
    elif op.name == "stablehlo.while":
        yield from _carried(op, number)
    elif op.name in BODIES:
        yield _first(op).arguments[number]
    else:  # any other operand, such as a branch's condition, may affect all results
        yield from op.results
        yield from _arguments(op)


def _returned(op: Any, number: int, calls: Mapping[str, list[Any]]) -> Iterator[Any]:
    """Yield the values that depend directly on operand ``number`` of ``op``, the return operation of a region."""
    around = op.parent.operation
    if around.name == "func.func":
        for call in calls[around.attributes["sym_name"].value]:
            yield call.results[number]
    elif around.name == "stablehlo.while" and op != list(_first(around))[-1].operation:
        yield from _carried(around, number)
    elif around.name in BODIES or around.name in BRANCHES:
        yield around.results[number]
    else:  # any other returned value, such as a loop's condition, may affect all results of ``around``
        yield from around.results
        yield from _arguments(around)


def _carried(loop: Any, number: int) -> Iterator[Any]:
    """Yield argument ``number`` of a loop's condition, argument ``number`` of its body, and its result ``number``."""
    for region in loop.regions:
        yield region.blocks[0].arguments[number]
    yield loop.results[number]


def _first(op: Any) -> Any:
    return op.regions[0].blocks[0]


def _arguments(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region:
            yield from block.arguments
