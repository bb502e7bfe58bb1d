"""Read a program's facts from its canonical form: collectives, bytes, loops, FLOPs.

Facts are read before any optimization, because XLA merges and rewrites collectives (two psums become one). The FLOPs
are intervals that cover all paths through branches. A collective has the branches around it (``path``), and
``common.observation.total`` adds up collectives over all paths. XLA's partitioner adds more collectives, for example to
reshard an array. The module ``hlo`` reads the added collectives from the compiled program.

This module also refuses a program if its calls are nested too deeply, if inlining gives too many operations, or if the
groups of a collective do not fit the mesh.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from grader.common.intervals import UNKNOWN, ZERO, Interval, Path
from grader.common.observation import Collective
from grader.runner import flops
from grader.runner.admission import (
    RAGGED,
    ProgramRefused,
    array_bytes,
    callee_of,
    is_transposed,
    kind_of,
    place_of,
    shaped,
    walk,
)
from grader.runner.flops import FREE, FlopCount
from grader.runner.groups import (
    Groups,
    are_partial,
    crossed_axes,
    cyclic_shift,
    numbers,
    sent_in_group,
    some_senders,
)
from grader.runner.hlo_text import MARK
from grader.runner.ragged import groups_of, most_sent, moved_by
from grader.runner.values import data_of, defining, trip_count
from grader.wire.limits import MAX_NESTED, MAX_STEPS


@dataclass(frozen=True)
class Facts:
    """Facts from the text of a program, before compilation.

    Attributes:
        collectives: in program order; a collective in a function occurs once for each call of the function.
        flops: arithmetic operations of one device; None if some operations are outside of shard_map, because only the
            compiler knows how the devices share these operations.
        dot_flops: FLOPs that count as matmuls (see ``flops.elementwise``); None if some are outside of shard_map.
        marked: the collectives, keyed by the numbers that ``mark`` gives them.
        mapped: True if the results depend on a ``shard_map``, and the program does little arithmetic outside of it.
            "Little" is at most one operation on data for each element of the program's arguments and results. Data are
            values that depend on the arguments.
    """

    collectives: list[Collective]
    flops: Interval | None
    dot_flops: Interval | None
    mapped: bool
    marked: dict[int, list[Collective]] = field(default_factory=dict)


def mark(module: Any) -> None:
    """Write a number into the location of each collective, and delete all other source locations.

    The compiler copies locations into the compiled program. In the compiled program, collectives without a number come
    from the compiler (see ``hlo.added_by_compiler``). Locations from the learner's source are deleted because the
    grader parses the compiled text, and a name in a location could mislead the parser.
    """
    with module.context:
        number, unknown = itertools.count(), ir.Location.unknown()
        for op in walk(module.operation):
            op.location = ir.Location.name(f"{MARK}_{next(number)}_") if kind_of(op) else unknown


def collective_places(module: Any) -> list[int]:
    """Return the index of each collective among all operations, in program order."""
    with module.context:
        return [i for i, op in enumerate(walk(module.operation)) if kind_of(op)]


def read(module: Any, mesh: Mapping[str, int], files: set[str]) -> Facts:
    """Return the facts of a program. An operation in a loop counts once for each round of the loop.

    Args:
        module: the program, which must have passed ``admission``.
        mesh: axis sizes, in order.
        files: names of the learner's files and cells, to find their lines in source locations.
    """
    named = {"func.func": {}, "sdy.mesh": {}}
    marks: dict[Any, int] = {}
    for op in walk(module.operation):
        if op.name in named:
            named[op.name][op.attributes["sym_name"].value] = op
        elif kind_of(op):
            marks[op] = len(marks)  # the number that the function ``mark`` writes for this collective
    functions, meshes = named["func.func"], {n: op.attributes["mesh"] for n, op in named["sdy.mesh"].items()}
    reader = _FactsReader(functions, meshes, mesh, files, marks)
    reader.visit(functions["main"], Interval.of(1))
    return Facts(
        reader.collectives,
        None if reader.auto.flops.most else reader.cost.flops,
        None if reader.auto.dots.most else reader.cost.dots,
        reader.mapped and reader.beside.most <= elements_of(functions["main"]),
        reader.marked,
    )


def elements_of(main: Any) -> int:
    """Return the number of elements in the arguments and results of a program."""
    kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    return sum(math.prod(shaped(one)[0]) for one in (*kind.inputs, *kind.results))


def needed(functions: Mapping[str, Any]) -> set[Any]:
    """Return the values that main's results depend on. Values that only debug code uses are not among them."""
    found: set[Any] = set()
    owners, left = set(), _yielded(functions["main"])
    while left:
        value = left.pop()
        if value in found:
            continue
        found.add(value)
        op = defining(value)
        if op is None or op in owners:
            continue
        owners.add(op)
        left += op.operands
        left += _yielded(op)
        if (callee := callee_of(op)) is not None:
            left += _yielded(functions[callee])
    return found


def _yielded(op: Any) -> list[Any]:
    """Return the values that the regions of an operation return."""
    return [value for region in op.regions for block in region for value in list(block)[-1].operation.operands]


GLOBAL = {"all_reduce", "all_gather", "reduce_scatter"}


class _FactsReader:
    """Reads the facts of a program, and visits the operations of a function again for each call.

    The methods' argument ``times`` is how often the surrounding loops run an operation. The attribute ``path`` lists
    the branches of conditionals around the current operation.
    """

    def __init__(
        self,
        functions: dict[str, Any],
        meshes: dict[str, Any],
        mesh: Mapping[str, int],
        files: set[str],
        marks: Mapping[Any, int],
    ) -> None:
        self.functions, self.meshes, self.mesh, self.files, self.marks = functions, meshes, mesh, files, marks
        self.devices = math.prod(mesh.values())
        self.collectives: list[Collective] = []
        self.marked: dict[int, list[Collective]] = {}
        self.cost = FREE
        self.auto = FREE  # The cost of operations that are not in a shard_map over all axes.
        self.depth = self.steps = self.cases = self.numbered = 0
        self.path: Path = ()
        self.manual: frozenset[str] = frozenset()
        self.needed = needed(functions)
        self.mapped = False  # True if the results depend on a shard_map.
        # FLOPs outside of every shard_map over all axes. Only operations on data count, and only if results need them.
        self.beside = ZERO
        # The largest number of shards of an array at this point of the walk. In a shard_map over all axes, this number
        # is 1.
        self.share = self.devices
        self.data = data_of(functions)

    def visit(self, op: Any, times: Interval) -> None:
        for region in op.regions:
            self.region(region, times)

    def region(self, region: Any, times: Interval) -> None:
        self.depth += 1
        if self.depth > MAX_NESTED:
            raise ProgramRefused("the program's calls are nested too deeply")
        for block in region:
            for inner in block:
                self.one(inner.operation, times)
        self.depth -= 1

    def one(self, op: Any, times: Interval) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise ProgramRefused(
                "the program has too many operations (each call of a function counts its operations again); "
                "use lax.fori_loop or lax.scan"
            )
        if kind_of(op):
            self.collective(op, times)
        elif op.name == "sdy.manual_computation":
            self.mapped |= self.needs(op)
            self.manual_computation(op, times)
        elif (callee := callee_of(op)) is not None:
            self.visit(self.functions[callee], times)
        elif op.name == "stablehlo.while":
            rounds = trip_count(op)
            known = UNKNOWN if rounds is None else Interval.of(rounds)
            condition, body = op.regions
            self.region(condition, times * (known + 1))  # the condition runs once more than the body
            self.region(body, times * known)
        elif op.name in ("stablehlo.case", "stablehlo.if"):
            self.branches(op, times)
        else:
            self.arithmetic(op, times)

    def needs(self, op: Any) -> bool:
        return any(result in self.needed for result in op.results)

    def arithmetic(self, op: Any, times: Interval) -> None:
        regions = list(op.regions)
        data = [o in self.data for o in op.operands]
        dialect, _, name = op.name.partition(".")
        if dialect in ("stablehlo", "chlo"):
            cost = cost_of(op, sum(data)) * times if name not in flops.NONE else FREE
            logic = flops.logic(name, _shape(op.results[0]) if op.results else (), data) * times
            self.cost += cost
            if self.share > 1:
                self.auto += cost
                self.beside += cost.flops + logic.flops if any(data) and self.needs(op) else 0
            else:
                self.cost += logic
        if regions:
            for region, applied in zip(regions, applications(op), strict=True):
                self.region(region, times * applied)

    def manual_computation(self, op: Any, times: Interval) -> None:
        """Read the body of a shard_map. In the body, a shape is the shape of one device's part along manual axes."""
        before = self.manual, self.share
        axes: Any = sdy.ManualAxesAttr(op.attributes["manual_axes"])
        self.manual |= set(axes)
        meshes = [{a.name: a.size for a in map(sdy.MeshAxisAttr, sdy.MeshAttr(m).axes)} for m in self.meshes.values()]
        cut = [math.prod(m[a] for a in self.manual) for m in meshes if self.manual <= set(m)]
        self.share = self.devices // min(cut, default=1)
        self.visit(op, times)
        self.manual, self.share = before

    def branches(self, op: Any, times: Interval) -> None:
        """Add the FLOPs of a conditional: an interval, because the program does not show which branch runs."""
        before, path, case, number = self.cost, self.path, self.cases, len(op.regions)
        self.cases += 1
        options = []
        for branch, region in enumerate(op.regions):
            self.cost = FREE
            self.path = (*path, (case, branch, number)) if number > 1 else path
            self.region(region, times)
            options.append(self.cost)
        self.path, self.cost = path, before
        if options:
            least_most = options[0]
            for option in options[1:]:
                least_most = least_most.either(option)
            self.cost += least_most

    def collective(self, op: Any, times: Interval) -> None:
        kind, number = kind_of(op), self.numbered
        assert kind is not None
        self.numbered += 1
        groups = self.who(op, kind)
        axes = crossed_axes(groups, self.mesh)
        if not axes:  # a collective over axes of size 1 sends nothing
            return
        members = max(map(len, groups))
        operands = tuple((dtype, shape) for shape, dtype in (shaped(o.type) for o in moved_by(op)))
        size = sum(array_bytes(o.type) for o in moved_by(op))
        sent = Interval(0, most_sent(op, members)) if kind == RAGGED else sent_in_group(kind, size, members)
        shift = sending = None
        if kind == "permute":
            shift, sending = cyclic_shift(groups, self.mesh), some_senders(groups, self.devices)
        # Along axes that are not manual, the compiler may split the operand further, so that a device sends less.
        sent = Interval(0 if sending is not None else sent.least // self.share, sent.most)
        file, line = place_of(op.location, self.files) or (None, None)
        found = Collective(
            kind, axes, size, sent, times, line, file, shift=shift, senders=sending, path=self.path, operands=operands,
            groups=tuple(map(tuple, groups)), partial=kind != "permute" and are_partial(groups, axes, self.mesh),
            number=number, transposed=is_transposed(op.location),
        )  # fmt: skip
        self.collectives.append(found)
        self.marked.setdefault(self.marks[op], []).append(found)

    def who(self, op: Any, kind: str) -> Groups:
        """Return a collective's groups of devices, or the (source, target) pairs of a permute."""
        if kind == "permute":
            pairs = numbers(op.attributes["source_target_pairs"])
            if not {d for pair in pairs for d in pair} <= set(range(self.devices)):
                raise ProgramRefused(f"a {kind} names a device that the mesh does not have")
            return pairs
        groups = groups_of(op, self.meshes, self.devices) or []
        # Without use_global_device_ids, the numbers in groups are not device numbers. A device that is in no group
        # would get arbitrary memory as its result.
        is_global = kind not in GLOBAL or "use_global_device_ids" in op.attributes
        if not is_global or sorted(d for group in groups for d in group) != list(range(self.devices)):
            raise ProgramRefused(f"the groups of a {kind} do not contain every device of the mesh once")
        return groups


# -- sizes -------------------------------------------------------------------------------------


def _shape(value: Any) -> list[int]:
    return list(getattr(value.type, "shape", ()))


def _is_complex(value: Any) -> bool:
    return isinstance(getattr(value.type, "element_type", None), ir.ComplexType)


def cost_of(op: Any, data: int) -> FlopCount:
    """Return the FLOPs of one operation, without the FLOPs of its regions.

    ``data``: the number of operands that depend on the program's arguments.
    """
    name, results, operands = op.name.partition(".")[2], list(op.results), list(op.operands)
    shape = _shape(results[0]) if results else []
    is_complex = any(map(_is_complex, results)) or any(map(_is_complex, operands))
    if name == "dot_general":
        dims = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"]).lhs_contracting_dimensions
        left = _shape(operands[0])
        return flops.dot(shape, math.prod(left[d] for d in dims), is_complex)
    if name in ("dot", "ragged_dot"):
        return flops.dot(shape, _shape(operands[0])[-1], is_complex)
    if name == "convolution":
        kernel = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"]).kernel_output_feature_dimension
        taps = _shape(operands[1])
        return flops.dot(shape, math.prod(taps) // max(taps[kernel], 1), is_complex)
    if name == "fft":
        return flops.fft(math.prod(_shape(operands[0])), math.prod(op.attributes["fft_length"]))
    if name in ("cholesky", "triangular_solve"):
        return flops.solve(math.prod(shape), shape[-1] if name == "cholesky" else _shape(operands[0])[-1])
    return flops.elementwise(name, shape, is_complex, data)


def applications(op: Any) -> list[Interval]:
    """Return how often one execution of an operation runs each of its regions, such as the addition in a reduction."""
    name, operands = op.name.partition(".")[2], list(op.operands)
    first = math.prod(_shape(operands[0])) if operands else 0
    if name == "reduce":
        return [Interval.of(first)]
    if name == "scatter":
        return [Interval.of(math.prod(_shape(operands[-1])))]
    if name in ("reduce_window", "select_and_scatter"):
        window = math.prod(op.attributes["window_dimensions"]) if "window_dimensions" in op.attributes else 1
        where = math.prod(_shape(op.results[0] if name == "reduce_window" else operands[1]))
        return [Interval.of(where * window), Interval.of(where)][: len(op.regions)]
    if name == "sort":  # a sort compares every pair at most once
        along = _shape(operands[0])[op.attributes["dimension"].value] if first and "dimension" in op.attributes else 1
        return [Interval(0, first * along)]
    return [ZERO if kind_of(op) else UNKNOWN for _ in op.regions]
