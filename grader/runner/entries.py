"""Find operations that read or replace one entry of an array, and find the first indices of slices.

An entry is the part of the array at one index of the first dimension. Only pictures of programs use these facts.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from grader.runner.admission import shaped


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
