"""What defines an operation beside its name, operands and types, as text: two programs are compared by it."""

from __future__ import annotations

import math
from typing import Any

from jaxlib.mlir import ir

# Who talks to whom is read apart (``Communication``); the rest are numbers and names that decide nothing.
READ_APART = {
    "backend_config", "call_target_name", "callee", "channel_handle", "channel_id", "replica_groups",
    "source_target_pairs",
}  # fmt: skip
BODIES = ("stablehlo.while", "stablehlo.case", "stablehlo.if")


def attributes_of(op: Any) -> str:
    """Return the attributes of an operation, sorted by name, then what it applies to single elements.

    Of a constant only the kind of its value, see ``_kind_of_constant``: numbers such as 1/N may follow the sizes.
    """
    if op.name == "stablehlo.constant":
        return _kind_of_constant(op)
    names = sorted(a if isinstance(a, str) else a.name for a in op.attributes)
    parts = [f"{name} = {op.attributes[name]}" for name in names if name not in READ_APART]
    if op.name not in BODIES:
        parts += [_region(region) for region in op.regions]
    return ", ".join(parts)


def _region(region: Any) -> str:
    inner = (o.operation for block in region for o in block)
    return "{" + "; ".join(f"{op.name} {attributes_of(op)}".strip() for op in inner) + "}"


def _kind_of_constant(op: Any) -> str:
    """Return "true", "false", "zero", "infinite" or "nan"; "" for other values, several values and complex ones."""
    try:
        elements = op.attributes["value"]
        if not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
            return ""
        value: Any = elements.get_splat_value()
        value = value.value
    except (AttributeError, TypeError, ValueError):  # Python has no class for this type: complex, int4, ...
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if value == 0:
        return "zero"
    return "nan" if math.isnan(value) else "infinite" if math.isinf(value) else ""
