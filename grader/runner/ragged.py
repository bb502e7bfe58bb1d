"""Read ``ragged_all_to_all``, the only admitted custom call, as JAX 0.10 and 0.12 write it, and replace it on CPUs.

Each device sends slices of its operand's rows to the devices of its group. For each slice, the
sending device gives the first row in the receiver's result (``output_offsets``)::

    ragged_all_to_all(operand[N, ...], output[M, ...], input_offsets[K], send_sizes[K],
                      output_offsets[K], recv_sizes[K])

Slice k goes to member k // (K / members) of the group.

XLA:CPU cannot run the call ("not supported by XLA:CPU ThunkEmitter"), so other operations replace it on a CPU. They
copy each slice into a block of M rows, exchange the blocks by an all_to_all, and combine the received blocks. If a
learner's offsets or sizes are wrong, the original call has an undefined result. The replacement shows the mistake
instead. It drops a slice that does not fit in the operand or the result. It also drops a slice if the receiver expects
a different size. If two slices would write one row of the result, the row keeps its old value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
from jax import lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from grader.runner.admission import (
    CUSTOM,
    RAGGED,
    ProgramRefused,
    array_bytes,
    kind_of,
    names_of,
    place_of,
    shaped,
    walk,
)
from grader.runner.groups import Groups, numbers, replica_groups
from grader.wire.frames import dtype_of

CONFIG = "backend_config"
API = 4  # the version of XLA's custom calls in which the attribute backend_config is a dictionary


def clean(op: Any, devices: int, files: set[str]) -> None:
    """Drop all attributes of a ``ragged_all_to_all`` except its groups and its name.

    Raises ProgramRefused for a call that JAX would not make.
    """
    try:
        groups = numbers(ir.DenseIntElementsAttr(ir.DictAttr(op.attributes[CONFIG])["replica_groups"]))
    except (KeyError, ValueError, TypeError):
        raise ProgramRefused(f"a {RAGGED} does not name its groups of devices", place_of(op.location, files)) from None
    if sorted(d for group in groups for d in group) != list(range(devices)):
        raise ProgramRefused(
            f"the groups of a {RAGGED} do not contain every device of the mesh once", place_of(op.location, files)
        )
    if (wrong := _misfit(op, len(groups[0]))) is not None:
        raise ProgramRefused(f"a {RAGGED} {wrong}", place_of(op.location, files))
    for name in names_of(op):
        del op.attributes[name]
    op.attributes["call_target_name"] = ir.StringAttr.get(RAGGED)
    op.attributes["api_version"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), API)
    rows = ", ".join(str(group) for group in groups)
    dense = f"dense<[{rows}]> : tensor<{len(groups)}x{len(groups[0])}xi64>"
    op.attributes[CONFIG] = ir.Attribute.parse(f"{{channel_id = 1 : i64, replica_groups = {dense}}}")


def _misfit(op: Any, members: int) -> str | None:
    """Return what is wrong with the types of ``op``, or None if they are as in the module's docstring."""
    if (len(op.operands), len(op.results), len(op.regions)) != (6, 1, 0):
        return "does not have six operands and one result"
    (operand, kind), (output, kind_out), *offsets_and_sizes = (shaped(o.type) for o in op.operands)
    if shaped(op.results[0].type) != (output, kind_out):
        return "has a result whose type differs from its output operand"
    if kind != kind_out or not operand or not output or operand[1:] != output[1:]:
        return f"cannot move rows of {kind}{list(operand)} into {kind_out}{list(output)}"
    if not _are_vectors_of_integers(offsets_and_sizes):
        return "needs vectors of integers, with one number for each slice, as offsets and sizes"
    slices = offsets_and_sizes[0][0][0]
    if not slices or slices % members or not operand[0] or not output[0]:
        return (
            f"needs at least one row and a multiple of {members} slices, but has {operand[0]} rows to send, "
            f"{output[0]} rows for the result and {slices} slices"
        )
    return None


def _are_vectors_of_integers(arrays: Sequence[tuple[tuple[int, ...], str]]) -> bool:
    length = arrays[0][0]
    return len(length) == 1 and all(shape == length and dtype_of(dtype).kind in "iu" for shape, dtype in arrays)


def groups_of(op: Any, meshes: Mapping[str, Any], devices: int) -> Groups | None:
    """Return the groups of a collective (see ``replica_groups``). A ragged all-to-all must have passed ``clean``."""
    return _groups(op) if op.name == CUSTOM else replica_groups(op.attributes["replica_groups"], meshes, devices)


def _groups(op: Any) -> Groups:
    return numbers(ir.DictAttr(op.attributes[CONFIG])["replica_groups"])


def moved_by(op: Any) -> list[Any]:
    """Return the operands of a collective that hold data to send, not offsets or sizes."""
    return list(op.operands)[: 1 if op.name == CUSTOM else None]


def most_sent(op: Any, members: int) -> int:
    """Return the largest number of bytes that a device can send to the other members of its group.

    Each other member gets at most the bytes of all slices that go to it, and at most the bytes of its result.
    """
    operand, output, offsets, *_ = op.operands
    slices = shaped(offsets.type)[0][0] // members
    return (members - 1) * min(slices * array_bytes(operand.type), array_bytes(output.type))


# -- replaced by operations that XLA:CPU can run -----------------------------------------------


def spell_out(module: Any) -> bool:
    """Replace every ``ragged_all_to_all`` by operations that XLA:CPU can run. Return whether the module changed."""
    found = [op for op in walk(module.operation) if op.name == CUSTOM and kind_of(op)]
    with module.context:
        for number, op in enumerate(found):
            _spell_out(module, op, f"ragged_{number}")
    return bool(found)


def _spell_out(module: Any, op: Any, name: str) -> None:
    operand, output, starts, send, to, expected = op.operands
    rows, members = output.type.shape[0], len(_groups(op)[0])
    before = _added(module, partial(laid_out, rows=rows), f"{name}_before", [operand, starts, send, to])
    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        "split_dimension": ir.IntegerAttr.get(i64, 0),
        "concat_dimension": ir.IntegerAttr.get(i64, 0),
        "split_count": ir.IntegerAttr.get(i64, members),
        "replica_groups": ir.DictAttr(op.attributes[CONFIG])["replica_groups"],
        "channel_handle": stablehlo.ChannelHandle.get(1, 1),
    }

    with op.location, ir.InsertionPoint(op):

        def made(name: str, operands: list, types: list, attributes: dict) -> list:
            return list(ir.Operation.create(name, types, operands, attributes).results)

        def called(function: Any, operands: list) -> list:
            types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
            callee = ir.FlatSymbolRefAttr.get(function.attributes["sym_name"].value)
            return made("func.call", operands, types, {"callee": callee})

        blocks = called(before, [operand, starts, send, to])
        got = [made("stablehlo.all_to_all", [b], [b.type], attributes)[0] for b in blocks]
        after = _added(module, put_together, f"{name}_after", [output, *got, expected])
        op.results[0].replace_all_uses_with(called(after, [output, *got, expected])[0])
    op.erase()


def _added(module: Any, fn: Callable, name: str, operands: Sequence[Any]) -> Any:
    """Add ``fn``, lowered for the types of ``operands``, to the module as a private function. Return it."""
    arrays = [jax.ShapeDtypeStruct(s, dtype_of(d)) for s, d in (shaped(o.type) for o in operands)]
    return add_function(module, jax.jit(fn).lower(*arrays).as_text(), name)


def add_function(module: Any, text: str, name: str) -> Any:
    """Copy the function in the StableHLO text ``text`` into ``module`` as a private function. Return the copy."""
    made = ir.Module.parse(text, module.context)  # this module must exist until its function is copied
    (main,) = made.body.operations
    main.attributes["sym_name"] = ir.StringAttr.get(name)
    main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    return main.operation.clone(ir.InsertionPoint(module.body)).operation


def laid_out(operand: Any, starts: Any, sizes: Any, to: Any, *, rows: int) -> tuple[Any, Any]:
    """Copy each slice into its own block, to the rows that the slice will have in the receiver's result.

    Returns:
        The blocks, of shape [K, rows, ...], and an array of shape [K, 2] with each slice's first row in the result and
        its size. The size is -1 for a slice that does not fit in the operand or the result.
    """
    starts, sizes, to = (lax.convert_element_type(n, "int64") for n in (starts, sizes, to))
    inside = (starts >= 0) & (sizes >= 0) & (to >= 0) & (starts <= operand.shape[0] - sizes) & (to <= rows - sizes)
    row = lax.broadcasted_iota("int64", (starts.size, rows), 1)
    source = row + lax.broadcast_in_dim(starts - to, row.shape, (0,))
    blocks = _rows(operand, source[..., None], 1)
    return blocks, lax.concatenate([to[:, None], lax.select(inside, sizes, lax.full_like(sizes, -1))[:, None]], 1)


def put_together(output: Any, blocks: Any, places: Any, expected: Any) -> Any:
    """Return ``output`` with the rows of the received slices copied into it.

    Args:
        blocks: the received blocks, of shape [K, rows, ...].
        places: each slice's first row in the result and its size, of shape [K, 2].
        expected: the size that the receiver expects of each slice, of shape [K]. A slice of another size is not copied.
    """
    shape = blocks.shape[:2]
    to, sizes = (lax.broadcast_in_dim(places[:, i], shape, (0,)) for i in (0, 1))
    due = lax.broadcast_in_dim(lax.convert_element_type(expected, "int64"), shape, (0,))
    row = lax.broadcasted_iota("int64", shape, 1)
    here = (sizes == due) & (row >= to) & (row < to + sizes)
    here = lax.convert_element_type(here, "int64")
    block = lax.reduce_sum(here * lax.broadcasted_iota("int64", shape, 0), (0,))
    found = _rows(blocks, lax.concatenate([block[:, None], row[0][:, None]], 1), 2)
    once = lax.reduce_sum(here, (0,)) == 1
    return lax.select(lax.broadcast_in_dim(once, output.shape, (0,)), found, output)


def _rows(array: Any, places: Any, dims: int) -> Any:
    """Return ``array[i]`` for every index i in ``places``; an index out of range becomes the nearest valid index.

    An index has one number for each of the first ``dims`` dimensions.
    """
    batch, rest = places.ndim - 1, array.ndim - dims
    numbers = lax.GatherDimensionNumbers(tuple(range(batch, batch + rest)), tuple(range(dims)), tuple(range(dims)))
    return lax.gather(array, places, numbers, (1,) * dims + array.shape[dims:], mode="clip")
