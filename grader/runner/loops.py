"""The number of rounds of loops that count from one constant to another without overflow."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


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
    position = _argument(counter, condition)
    if bound is None or position is None or direction not in ("LT", "LE"):
        return None
    return counter, position, bound + (1 if direction == "LE" else 0)


def _step(body: Any, position: int) -> int | None:
    """Return the positive constant that each round adds to the counter; None if the counter changes in another way."""
    *_, returned = list(body)
    added = defining(returned.operands[position])
    if added is None or added.name != "stablehlo.add":
        return None
    steps = [_constant(o) for o in added.operands if _argument(o, body) != position]
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


def _argument(value: Any, block: Any) -> int | None:
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
            carried = _carried(value)
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
    number = _number(op.attributes["value"])
    return number if number is not None and all(_holds(t, number) for t in types) else None


def _carried(argument: Any) -> Any:
    """Return the initial value of a loop's argument if no round changes the argument, else None."""
    argument = ir.BlockArgument(argument)
    loop = argument.owner.owner.operation
    if loop.name != "stablehlo.while":
        return None
    body = next(iter(loop.regions[1]))
    *_, returned = list(body)
    position = argument.arg_number
    same = _argument(returned.operands[position], body) == position
    return loop.operands[position] if same else None


def _number(elements: Any) -> int | None:
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
