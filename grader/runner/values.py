"""What a program shows about its values without a run: data, rounds of loops, entries of arrays.

- *Data* are values that depend on the program's arguments.
- The grader knows the rounds of loops that count from one constant to another without overflow.
- An *entry* is the part of an array at one index of the first dimension. Only pictures of programs use entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from grader.runner.admission import callee_of, shaped, walk

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


# -- rounds of loops -------------------------------------------------------------------------------


def trip_count(loop: Any) -> int | None:
    """Return the number of rounds of a loop like ``for i in range(a, b, c)`` with constants; None for other loops."""
    condition, body = (next(iter(region)) for region in loop.regions)
    limit = _limit(condition)
    if limit is None:
        return None
    counter, position, end = limit
    start, step = _constant(loop.operands[position]), _step(body, position)
    if start is None or step is None:
        return None
    rounds = max(0, -(-(end - start) // step))
    # If the counter's dtype cannot hold the counter's last value, the counter overflows. Then the number of rounds is
    # unknown.
    return rounds if _holds(counter.type, start + rounds * step) else None


def _limit(condition: Any) -> tuple[Any, int, int] | None:
    """Return a loop's counter, its position among the values that the loop carries, and its exclusive upper bound.

    Return None if the condition does not compare a counter with a constant.
    """
    *_, result = list(condition)
    compared = defining(result.operands[0])
    if compared is None or compared.name != "stablehlo.compare" or not _compares_as_typed(compared):
        return None
    direction = stablehlo.ComparisonDirectionAttr(compared.attributes["comparison_direction"]).value
    counter, bound = compared.operands[0], _constant(compared.operands[1])
    position = _position(counter, condition)
    if bound is None or position is None or direction not in ("LT", "LE"):
        return None
    return counter, position, bound + (1 if direction == "LE" else 0)


def _step(body: Any, position: int) -> int | None:
    """Return the positive constant that each round adds to the counter; None if the counter changes in another way."""
    *_, returned = list(body)
    added = defining(returned.operands[position])
    if added is None or added.name != "stablehlo.add":
        return None
    steps = [_constant(o) for o in added.operands if _position(o, body) != position]
    return steps[0] if len(steps) == 1 and steps[0] and steps[0] > 0 else None


def _compares_as_typed(compared: Any) -> bool:
    """Return whether a comparison of integers is unsigned for unsigned dtypes, and signed for signed dtypes."""
    if "compare_type" not in compared.attributes:
        return True
    unsigned = getattr(compared.operands[0].type.element_type, "is_unsigned", False)
    how = stablehlo.ComparisonTypeAttr(compared.attributes["compare_type"]).value
    return how == ("UNSIGNED" if unsigned else "SIGNED")


def defining(value: Any) -> Any:
    """Return the operation that defines a value, or None for an argument of a block."""
    owner = value.owner
    return getattr(owner, "operation", owner) if hasattr(owner, "name") or hasattr(owner, "operation") else None


def _position(value: Any, block: Any) -> int | None:
    for number, argument in enumerate(block.arguments):
        if argument == value:
            return number
    return None


def _constant(value: Any) -> int | None:
    """Return the value of an integer constant; None for other values.

    A converted constant counts, and so does a loop's argument that is a constant in every round.
    """
    types = [value.type]
    while True:
        op = defining(value)
        if op is None:
            carried = _initial(value)
            if carried is None:
                return None
            value = carried
        elif op.name == "stablehlo.convert":
            value = op.operands[0]
            types.append(value.type)
        else:
            break
    if op.name != "stablehlo.constant" or not all(_holds(t, 0) for t in types):
        return None
    number = number_of(op.attributes["value"])
    return number if number is not None and all(_holds(t, number) for t in types) else None


def _initial(argument: Any) -> Any:
    """Return the initial value of a loop's argument if no round changes the argument, else None."""
    argument = ir.BlockArgument(argument)
    loop = argument.owner.owner.operation
    if loop.name != "stablehlo.while":
        return None
    body = next(iter(loop.regions[1]))
    *_, returned = list(body)
    position = argument.arg_number
    same = _position(returned.operands[position], body) == position
    return loop.operands[position] if same else None


def number_of(elements: Any) -> int | None:
    """Return the value of an attribute that is one integer; None for other attributes."""
    if not isinstance(elements, ir.DenseIntElementsAttr) or len(elements) != 1:
        return None
    try:
        return int(elements[0])
    except TypeError:  # MLIR's Python API cannot read int2 and int4
        return None


def _holds(kind: Any, number: int) -> bool:
    element = getattr(kind, "element_type", None)
    if not isinstance(element, ir.IntegerType) or list(kind.shape):
        return False
    bits = element.width - (0 if element.is_unsigned else 1)
    return -(0 if element.is_unsigned else 1 << bits) <= number < 1 << bits


# -- entries of arrays -----------------------------------------------------------------------------


def entries_of(op: Any) -> tuple[int | None, bool]:
    """Return the pair ``(start_of(op), is_entry(op))``."""
    return start_of(op), is_entry(op)


def start_of(op: Any) -> int | None:
    """Return a slice's first index along dimension 0. Return None if its stride is not 1, or ``op`` is not a slice."""
    if op.name != "stablehlo.slice":
        return None
    starts, strides = (list(ir.DenseI64ArrayAttr(op.attributes[of])) for of in ("start_indices", "strides"))
    return starts[0] if starts and strides[0] == 1 else None


def is_entry(op: Any) -> bool:
    """Return whether the operation is a gather of one whole entry, or a scatter that replaces one whole entry."""
    if op.name == "stablehlo.gather":
        about: Any = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
        dims, named = about.collapsed_slice_dims, about.start_index_map
        moved, whole = shaped(op.results[0].type)[0], shaped(op.operands[0].type)[0]
    elif op.name == "stablehlo.scatter" and len(op.operands) == 3 and _replaces(op):
        about = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        dims, named = about.inserted_window_dims, about.scattered_dims_to_operand_dims
        moved, whole = shaped(op.operands[2].type)[0], shaped(op.operands[0].type)[0]
    else:
        return False
    index, _ = shaped(op.operands[1].type)
    return list(dims) == list(named) == [0] and index in ((), (1,)) and moved == whole[1:]


def _replaces(op: Any) -> bool:
    """Return whether a scatter overwrites old values instead of combining them with new values."""
    (block,) = op.regions[0].blocks
    (last, *others) = list(block.operations)
    return not others and list(last.operands) == [block.arguments[1]]
