"""Read a canonical program's operations as plain data, with calls and ``shard_map`` inlined and all values numbered.

The caller must have called ``facts.read``, which refuses collectives whose groups do not fit the mesh.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from grader.common.drawing import drawn
from grader.runner.admission import CUSTOM, RAGGED, array_bytes, callee_of, kind_of, names_of, place_of, shaped
from grader.runner.facts import cost_of
from grader.runner.flops import ELEMENTWISE
from grader.runner.groups import crossed_axes, numbers
from grader.runner.ragged import groups_of, moved_by
from grader.runner.values import entries_of, number_of, trip_count
from grader.wire.operations import (
    MATMULS,
    MAX_ATTRIBUTES,
    MAX_LEVELS,
    MAX_OPERATIONS,
    MAX_USES,
    MAX_VALUES,
    Body,
    Communication,
    Operation,
    Operations,
    Value,
)

# Attributes that do not go into the text: groups of devices, which are in ``Communication``, and attributes that have
# no effect on results.
READ_APART = {
    "backend_config", "call_target_name", "callee", "channel_handle", "channel_id", "replica_groups",
    "source_target_pairs",
}  # fmt: skip
BODIES = ("stablehlo.while", "stablehlo.case", "stablehlo.if")


def attributes_of(op: Any) -> str:
    """Return an operation's attributes, sorted by name, and the operations of its regions, as one text.

    The grader compares these texts between programs that may differ in sizes. So the text of a constant, such as 1/N,
    has only the kind of its value (``_kind_of_constant``). The text leaves out the attributes READ_APART, and the
    regions of loops and conditionals (BODIES).
    """
    if op.name == "stablehlo.constant":
        return _kind_of_constant(op)
    parts = [f"{name} = {op.attributes[name]}" for name in sorted(names_of(op)) if name not in READ_APART]
    if op.name not in BODIES:
        parts += [_region(region) for region in op.regions]
    return ", ".join(parts)


def _region(region: Any) -> str:
    inner = (o.operation for block in region for o in block)
    return "{" + "; ".join(f"{op.name} {attributes_of(op)}".strip() for op in inner) + "}"


def _kind_of_constant(op: Any) -> str:
    """Return "true", "false", "zero", "infinite" or "nan" if all elements have this value; "" for other constants."""
    try:
        elements = op.attributes["value"]
        if not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
            return ""
        value: Any = elements.get_splat_value()
        value = value.value
    except (AttributeError, TypeError, ValueError):  # MLIR's Python API has no class for some types, such as int4
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if value == 0:
        return "zero"
    return "nan" if math.isnan(value) else "infinite" if math.isinf(value) else ""


MAX_MEMBERS = 200_000  # largest number of devices in all groups of all collectives, added up
PASSES = {"DEFAULT": 1, "HIGH": 3, "HIGHEST": 6}
# Outside shard_map, the compiler shards the results of these operations like their operands.
FOLLOWS = ELEMENTWISE | {"and", "compare", "convert", "not", "optimization_barrier", "or", "select", "xor"}
Layout = tuple[tuple[str, ...], ...] | None
Env = dict[Any, int]


class _TooManyOperations(Exception):
    """The inlined program exceeds a limit, such as ``MAX_OPERATIONS`` or ``MAX_VALUES``."""


def read(module: Any, mesh: Mapping[str, int], files: set[str], *, compared: bool = False) -> Operations | None:
    """Return the operations of a module, or None if the inlined program exceeds a limit such as ``MAX_OPERATIONS``.

    ``compared``: True to keep the operations' attributes for a comparison with another program.
    """
    try:
        return _OperationsReader(module, mesh, files, compared).program()
    except _TooManyOperations:
        return None


class _OperationsReader:
    """Reads the operations of a program, and visits the operations of a function again for each call.

    The argument ``env`` maps the MLIR values in one call of a function to their numbers.
    """

    def __init__(self, module: Any, mesh: Mapping[str, int], files: set[str], compared: bool) -> None:
        named: dict[str, dict[str, Any]] = {"func.func": {}, "sdy.mesh": {}}
        for op in (o.operation for o in module.body.operations):
            named[op.name][op.attributes["sym_name"].value] = op
        self.functions = named["func.func"]
        self.meshes = {name: op.attributes["mesh"] for name, op in named["sdy.mesh"].items()}
        self.mesh, self.files, self.compared = dict(mesh), files, compared
        self.devices = math.prod(mesh.values())
        self.real = {axis for axis, size in mesh.items() if size > 1}
        self.manual: frozenset[str] = frozenset()
        self.values: list[Value] = []
        self.layouts: list[Layout] = []
        self.count = self.members = self.level = self.uses = 0

    def program(self) -> Operations:
        main = self.functions["main"]
        env: Env = {}
        for argument, layout in zip(main.regions[0].blocks[0].arguments, self.asked(main), strict=True):
            parts = math.prod(self.mesh[axis] for axes in layout or () for axis in axes)
            env[argument] = self.new(argument, parts, layout)
        arguments = tuple(env.values())
        operations, results = self.block(main.regions[0].blocks[0], env)
        return Operations(self.mesh, tuple(self.values), Body(arguments, operations, results))

    def asked(self, main: Any) -> list[Layout]:
        """Return the layout of each argument of main."""
        about = [ir.DictAttr(a) for a in main.attributes["arg_attrs"]]
        return [self.layout(a["sdy.sharding"]) for a in about]

    def layout(self, sharding: Any) -> Layout:
        """Return for each dimension the axes that shard it, without axes of size 1.

        Return None if a part of an axis shards a dimension.
        """
        dims = [sdy.DimensionShardingAttr(d) for d in sdy.TensorShardingAttr(sharding).dimension_shardings]
        names = [[sdy.AxisRefAttr(a) for a in d.axes] for d in dims]
        if any(a.sub_axis_info is not None for axes in names for a in axes):
            return None
        return tuple(tuple(str(a.name) for a in axes if a.name in self.real) for axes in names)

    # values

    def new(self, value: Any, parts: int = 1, layout: Layout = None) -> int:
        shape, dtype = shaped(value.type)
        if len(self.values) == MAX_VALUES:
            raise _TooManyOperations
        self.values.append(Value(shape, dtype, max(parts, 1)))
        self.layouts.append(layout)
        return len(self.values) - 1

    def like(self, value: Any, at: int) -> int:
        """Give ``value`` a new number and the layout of the value with number ``at``. Return the new number."""
        return self.new(value, self.values[at].parts, self.layouts[at])

    def made(self, value: Any, name: str, operands: Sequence[int]) -> int:
        """Give an operation's result a number, and return the number.

        Outside shard_map, elementwise and similar operations (FOLLOWS) pass on the layout of their operands, if all
        sharded operands have one layout. Constants and broadcast scalars are not sharded. All other layouts are unknown
        (None).
        """
        if self.real <= self.manual:
            return self.new(value)
        shape, _ = shaped(value.type)
        same = [n for n in operands if self.values[n].shape == shape]
        parts = max((self.values[n].parts for n in same), default=1)
        given = name == "broadcast_in_dim" and self.layouts[operands[0]] == ()
        if given or not operands:  # every device can compute the result without communication
            return self.new(value, 1, ((),) * len(shape))
        layouts = {self.layouts[n] for n in same}
        cut = [layout for layout in layouts if layout is None or any(layout)] or list(layouts)
        return self.new(value, parts, cut[0] if name in FOLLOWS and len(cut) == 1 else None)

    # operations

    def block(self, block: Any, env: Env) -> tuple[tuple[Operation, ...], tuple[int, ...]]:
        """Return the operations of a block in order, and the numbers of the values that the block returns."""
        self.level += 1
        found: list[Operation] = []
        returned: tuple[int, ...] = ()
        for op in (o.operation for o in block):
            operands = tuple(env[o] for o in op.operands)
            if op.name in ("func.return", "stablehlo.return", "sdy.return"):
                returned = operands
                self.used(operands)
            elif op.name == "sdy.manual_computation":
                found += self.shard_map(op, env, operands)
            elif (inner := self.written_out(op, operands)) is not None:
                operations, values = inner
                found += operations
                env |= dict(zip(op.results, values, strict=True))
            else:
                found.append(self.one(op, env, operands))
        self.level -= 1
        return tuple(found), returned

    def counted(self) -> None:
        self.count += 1
        if self.count > MAX_OPERATIONS or self.level > MAX_LEVELS:
            raise _TooManyOperations

    def written_out(self, op: Any, operands: tuple[int, ...]) -> tuple[tuple[Operation, ...], tuple[int, ...]] | None:
        """Return a call's inlined operations and the values that they return; None if ``op`` is not a call."""
        if (callee := callee_of(op)) is not None:
            block = self.functions[callee].regions[0].blocks[0]
        elif op.name == "sdy.named_computation":
            block = op.regions[0].blocks[0]
        else:
            return None
        self.level -= 1  # the operations of an inlined function are at the level of the call
        found = self.block(block, dict(zip(block.arguments, operands, strict=True)))
        self.level += 1
        return found

    def shard_map(self, op: Any, env: Env, operands: tuple[int, ...]) -> list[Operation]:
        """Return a shard_map's operations: "shard" operations, the body's operations, "unshard" operations.

        A "shard" cuts an argument into the devices' parts, and an "unshard" joins the parts of a result.
        """
        before, block = self.manual, op.regions[0].blocks[0]
        named: Any = sdy.ManualAxesAttr(op.attributes["manual_axes"])
        axes = set(named) & self.real
        cuts, wholes = (
            [self.layout(s) for s in sdy.TensorShardingPerValueAttr(op.attributes[name]).shardings]
            for name in ("in_shardings", "out_shardings")
        )
        laid = [self.laid(op, i, operands[i], layout, axes) for i, layout in enumerate(cuts)]
        found = [step for step, _ in laid if step is not None]
        self.manual |= axes
        parts = [self.left(a, n) for a, (_, n) in zip(block.arguments, laid, strict=True)]
        inside = [
            self.new(a, p, _without(layout, axes)) for a, p, layout in zip(block.arguments, parts, cuts, strict=True)
        ]
        found += [self.step(op, "shard", (n,), (v,)) for (_, n), v in zip(laid, inside, strict=True)]
        env |= dict(zip(block.arguments, inside, strict=True))
        self.level -= 1
        operations, results = self.block(block, env)
        self.level += 1
        self.manual = before
        for value, local, layout in zip(op.results, results, wholes, strict=True):
            each = math.prod(self.values[local].shape) // self.values[local].parts
            env[value] = self.new(value, math.prod(shaped(value.type)[0]) // max(each, 1), layout)
            operations += (self.step(op, "unshard", (local,), (env[value],)),)
        return [*found, *operations]

    def laid(self, op: Any, i: int, at: int, layout: Layout, axes: set[str]) -> tuple[Operation | None, int]:
        """Move operand ``i`` of a shard_map (value number ``at``) to the layout that the shard_map requires.

        Return the operation that moves the operand (None if the move needs no communication), and the moved value's
        number.
        """
        now = self.layouts[at]
        if now is not None and layout is not None and (_only(now, axes) == _only(layout, axes) or not any(now)):
            return None, at
        if not axes or math.prod(self.values[at].shape) <= 1:
            return None, at
        moved = self.new(op.operands[i], 1, layout)
        return self.step(op, "reshard", (at,), (moved,)), moved

    def left(self, argument: Any, whole: int) -> int:
        """Return the number of shards of an argument of a shard_map's body, along the mesh axes that are not manual."""
        value = self.values[whole]
        each = max(math.prod(value.shape) // value.parts, 1)
        return 1 if self.real <= self.manual else max(math.prod(shaped(argument.type)[0]) // each, 1)

    def used(self, values: Sequence[int]) -> None:
        self.uses += len(values)
        if self.uses > MAX_USES:
            raise _TooManyOperations

    def step(self, op: Any, name: str, operands: tuple[int, ...], results: tuple[int, ...]) -> Operation:
        self.counted()
        self.used(operands)
        file, line = self.place(op)
        return Operation(name, operands, results, manual=name != "reshard", file=file, line=line)

    def place(self, op: Any) -> tuple[str | None, int | None]:
        return place_of(op.location, self.files) or (None, None)

    def one(self, op: Any, env: Env, operands: tuple[int, ...]) -> Operation:
        self.counted()
        self.used(operands)
        name = RAGGED if op.name == CUSTOM else op.name.partition(".")[2]
        bodies = self.bodies(op, env, operands)
        results = []
        for i, value in enumerate(op.results):
            env[value] = self.like(value, operands[i]) if name == "while" else self.made(value, name, operands)
            results.append(env[value])
        file, line = self.place(op)
        start, entry = drawn((None, False), entries_of, op)
        return Operation(
            name,
            operands,
            tuple(results),
            flops=int(cost_of(op, 0).dots.most) if name in MATMULS else 0,
            precision=_passes(op) if name in MATMULS else 1,
            length=_sorted_together(op) if name == "sort" else 0,
            number=_number(op) if name == "constant" else None,
            direction=_direction(op) if name == "compare" else "",
            start=start,
            entry=entry,
            rounds=trip_count(op) if name == "while" else None,
            manual=self.real <= self.manual,
            communication=self.communication(op) if kind_of(op) else None,
            bodies=bodies,
            attributes=self.attributes(op),
            file=file,
            line=line,
        )

    def attributes(self, op: Any) -> str:
        text = attributes_of(op) if self.compared else ""
        if len(text) > MAX_ATTRIBUTES:
            raise _TooManyOperations
        return text

    def bodies(self, op: Any, env: Env, operands: tuple[int, ...]) -> tuple[Body, ...]:
        """Return a loop's condition and body, or a conditional's branches; () for other operations."""
        if op.name not in ("stablehlo.while", "stablehlo.case", "stablehlo.if"):
            return ()
        found = []
        for region in op.regions:
            block = region.blocks[0]
            carried = [self.like(a, n) for a, n in zip(block.arguments, operands, strict=False)]
            env |= dict(zip(block.arguments, carried, strict=True))
            operations, results = self.block(block, env)
            found.append(Body(tuple(carried), operations, results))
        return tuple(found)

    def communication(self, op: Any) -> Communication:
        kind = kind_of(op)
        assert kind is not None
        size = sum(array_bytes(o.type) for o in moved_by(op))
        if kind == "permute":
            groups = numbers(op.attributes["source_target_pairs"])
        else:
            groups = groups_of(op, self.meshes, self.devices) or []
        self.members += sum(map(len, groups))
        if self.members > MAX_MEMBERS:
            raise _TooManyOperations
        return Communication(kind, tuple(map(tuple, groups)), crossed_axes(groups, self.mesh), size)


def _only(layout: tuple[tuple[str, ...], ...], axes: set[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(a for a in names if a in axes) for names in layout)


def _without(layout: Layout, axes: set[str]) -> Layout:
    return None if layout is None else tuple(tuple(a for a in names if a not in axes) for names in layout)


def _passes(op: Any) -> int:
    """Return how many passes of a bfloat16 matrix unit a matmul needs at its precision; 1 for operands below 32 bit."""
    narrow = all(shaped(o.type)[1] not in ("float32", "float64", "complex64", "complex128") for o in op.operands)
    if narrow or "precision_config" not in op.attributes:
        return 1
    return max((PASSES[stablehlo.PrecisionAttr(p).value] for p in op.attributes["precision_config"]), default=1)


def _sorted_together(op: Any) -> int:
    shape = shaped(op.operands[0].type)[0]
    return shape[op.attributes["dimension"].value if "dimension" in op.attributes else -1] if shape else 1


def _direction(op: Any) -> str:
    return stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value


def _number(op: Any) -> int | None:
    """Return the value of a constant that is an integer scalar; None for other constants."""
    shape, dtype = shaped(op.results[0].type)
    if shape or not dtype.lstrip("u").startswith(("int", "bool")):
        return None
    return number_of(op.attributes["value"])
