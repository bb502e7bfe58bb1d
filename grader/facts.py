"""Read a program's facts from its StableHLO: collectives, bytes, loops, FLOPs; and refuse unfit programs.

Read before any optimization, because XLA merges and rewrites collectives (two psums become one).
What only the partitioner adds (a reshard because shardings do not match) is read from the compiled
HLO, where it is the only kind of collective without a counterpart in the source.
"""

from __future__ import annotations

import itertools
import math
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grader.observation import Collective

DIALECTS = {"builtin", "func", "stablehlo", "sdy", "chlo"}
FORBIDDEN = {
    "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv", "stablehlo.dynamic_reshape",
    "stablehlo.rng", "stablehlo.create_token", "stablehlo.after_all",
}  # fmt: skip
# Custom calls that compute on the device and touch nothing else.
CUSTOM_CALLS = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "TopK", "mhlo.topk", "mhlo.erf"}
MAX_OPS = 20_000
MAX_STEPS = 10 * MAX_OPS  # with every call written out
MAX_ARRAY = 1 << 30

KINDS = {
    "stablehlo.all_reduce": "all_reduce",
    "stablehlo.all_gather": "all_gather",
    "stablehlo.reduce_scatter": "reduce_scatter",
    "stablehlo.all_to_all": "all_to_all",
    "stablehlo.collective_permute": "permute",
    "stablehlo.collective_broadcast": "broadcast",
}


# Operations that stand for a function of the program, and the attribute that names it.
CALLS = {"func.call": "callee", "stablehlo.composite": "decomposition"}


class Refused(Exception):
    """A program that is not admitted; the message is for the learner."""


@dataclass(frozen=True)
class Facts:
    """``flops`` is None when products lie outside shard_map: only the compiler knows each device's share.

    ``typed``: the results' types say how they are sharded, as on Explicit axes only.
    ``mapped``: there is a ``shard_map``, and no matrix product outside of one.
    """

    collectives: list[Collective]
    flops: int | None
    typed: bool
    mapped: bool


def parse(serialized: bytes) -> Any:
    """The MLIR module of a portable StableHLO artifact."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo  # noqa: F401  func registers itself

    context = ir.Context()
    sdy.register_dialect(context)
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    return stablehlo.deserialize_portable_artifact(context, serialized)


def admit(module: Any) -> None:
    """Raises Refused when the program could do more than compute, or is too large to compile."""
    for ops, op in enumerate(walk(module.operation), 1):
        if ops > MAX_OPS:
            raise Refused(f"the program has more than {MAX_OPS:,} operations; use lax.fori_loop or lax.scan")
        name = op.name
        if name.split(".")[0] not in DIALECTS or name in FORBIDDEN:
            raise Refused(f"the program uses {name}, which is not allowed")
        if name == "stablehlo.custom_call":
            target = str(op.attributes["call_target_name"]).strip('"')
            if target not in CUSTOM_CALLS:
                raise Refused(f"the program calls {target!r} outside XLA, which is not allowed")
        for result in op.results:
            if "?" in str(result.type).split(",")[0]:
                raise Refused("the program makes an array whose shape is not fixed")
            size = array_bytes(result.type)
            if size > MAX_ARRAY:
                raise Refused(f"the program makes an array of {size / 2**30:,.1f} GiB; 1 GiB is the limit")


def walk(op: Any) -> Iterator[Any]:
    """Every operation, in program order, without recursion (nesting comes from the learner)."""
    stack = [iter([op])]
    while stack:
        try:
            current = next(stack[-1]).operation
        except StopIteration:
            stack.pop()
            continue
        yield current
        if len(stack) > 200:
            raise Refused("the program is nested more than 200 levels deep")
        stack.append(inner for region in current.regions for block in region for inner in block)


def read(module: Any, mesh: Mapping[str, int], files: set[str]) -> Facts:
    """Collectives and FLOPs with the loops around them multiplied out.

    Args:
        module: an admitted module.
        mesh: axis sizes, in order.
        files: names of the learner's chunks, to find their lines in source locations.
    """
    functions = {
        str(op.attributes["sym_name"]).strip('"'): op for op in walk(module.operation) if op.name == "func.func"
    }
    reader = _Reader(functions, mesh, files)
    reader.visit(functions["main"], 1)
    main = functions["main"].attributes
    results = list(main["res_attrs"]) if "res_attrs" in main else []
    typed = bool(results) and all("sdy.sharding" in about for about in results)
    return Facts(reader.collectives, None if reader.auto else reader.flops, typed, reader.mapped and not reader.auto)


GLOBAL = {"all_reduce", "all_gather", "reduce_scatter"}


class _Reader:
    """Walks a program along its calls; ``times`` is the product of the loops around, None when unknown."""

    def __init__(self, functions: dict[str, Any], mesh: Mapping[str, int], files: set[str]) -> None:
        self.functions, self.mesh, self.files = functions, mesh, files
        self.collectives: list[Collective] = []
        self.flops = 0
        self.depth = self.steps = 0
        self.manual = self.mapped = False
        self.auto = False

    def visit(self, op: Any, times: int | None) -> None:
        self.depth += 1
        if self.depth > 400:
            raise Refused("the program's calls are nested too deeply")
        for region in op.regions:
            for block in region:
                for inner in block:
                    self.one(inner.operation, times)
        self.depth -= 1

    def one(self, op: Any, times: int | None) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Refused("the program is too large with every call written out; use lax.fori_loop or lax.scan")
        if op.name in KINDS:
            collective, members = self.collective(op, times)
            if members > 1:  # over an axis of size 1 nothing moves
                self.collectives.append(collective)
        elif op.name == "stablehlo.dot_general":
            self.flops += dot_flops(op) * (1 if times is None else times)
            self.auto = self.auto or not self.manual
        elif op.name == "sdy.manual_computation":
            before, self.manual, self.mapped = self.manual, True, True
            self.visit(op, times)
            self.manual = before
        elif op.name in CALLS:
            self.visit(self.functions[str(op.attributes[CALLS[op.name]]).lstrip("@").strip('"')], times)
        elif op.name == "stablehlo.while":
            rounds = trip_count(op)
            self.visit(op, None if times is None or rounds is None else times * rounds)
        elif op.name in ("stablehlo.case", "stablehlo.if"):
            self.branches(op, times)
        else:
            self.visit(op, times)

    def branches(self, op: Any, times: int | None) -> None:
        """Of a conditional's branches only the one that sends most is counted: one of them runs."""
        before, flops = self.collectives, self.flops
        options = []
        for region in op.regions:
            self.collectives, self.flops = [], 0
            for block in region:
                for inner in block:
                    self.one(inner.operation, times)
            options.append(
                (
                    sum(c.sent * (1 if c.count is None else c.count) for c in self.collectives),
                    self.flops,
                    self.collectives,
                )
            )
        _, most, sent = max(options, key=lambda o: o[:2], default=(0, 0, []))
        self.collectives, self.flops = before + sent, flops + most

    def collective(self, op: Any, times: int | None) -> tuple[Collective, int]:
        """The collective and how many devices take part in it."""
        kind = KINDS[op.name]
        size = sum(array_bytes(o.type) for o in op.operands)
        devices = list(range(math.prod(self.mesh.values())))
        shift = None
        if kind == "permute":
            pairs = numbers(op.attributes["source_target_pairs"])
            if not {d for pair in pairs for d in pair} <= set(devices):
                raise Refused(f"a {kind} names a device that the mesh does not have")
            axes, members = permute_axes(pairs, self.mesh)
            shift = cyclic_shift(pairs, self.mesh)
        else:
            groups = numbers(op.attributes["replica_groups"])
            # Other spellings of groups mean something else, and a device left out would hold arbitrary memory.
            is_global = kind not in GLOBAL or "use_global_device_ids" in op.attributes
            if not is_global or sorted(d for group in groups for d in group) != devices:
                raise Refused(f"a {kind} does not name every device of the mesh once")
            axes, members = group_axes(groups, self.mesh)
        line, file = source_line(op.location, self.files)
        return Collective(kind, axes, size, sent_bytes(kind, size, members), times, line, file, shift=shift), members


# -- sizes -------------------------------------------------------------------------------------


def array_bytes(kind: Any) -> int:
    """Bytes of a ranked tensor type; 0 for tokens and tuples."""
    text = str(kind)
    if not text.startswith("tensor<"):
        return 0
    match = re.fullmatch(r"tensor<((?:\d+x)*)(complex<)?[a-z]+(\d+)\w*>?(?:, .*)?>", text)
    if match is None:
        raise Refused(f"the program uses arrays of an unusual type, {text[:60]}")
    dims = [int(d) for d in match[1].split("x") if d]
    bits = max(int(match[3]), 8) * (2 if match[2] else 1)
    return math.prod(dims) * bits // 8


def sent_bytes(kind: str, size: int, members: int) -> int:
    """Bytes one device sends on a ring of ``members`` for an input of ``size`` bytes (bandwidth-optimal)."""
    if members < 2:
        return 0
    return {
        "all_gather": size * (members - 1),
        "reduce_scatter": size * (members - 1) // members,
        "all_reduce": 2 * size * (members - 1) // members,
        "all_to_all": size * (members - 1) // members,
        "permute": size,
        "broadcast": size,
    }[kind]


def dot_flops(op: Any) -> int:
    """``2 * |result| * |contracted|`` of one dot_general."""
    text = str(op.attributes["dot_dimension_numbers"])
    match = re.search(r"lhs_contracting_dimensions = \[([\d, ]*)\]", text)
    contracted = [int(d) for d in match[1].split(",")] if match and match[1].strip() else []
    left = op.operands[0].type.shape
    return 2 * math.prod(op.results[0].type.shape) * math.prod(left[d] for d in contracted)


# -- who talks to whom -------------------------------------------------------------------------


def numbers(attribute: Any) -> list[list[int]]:
    """A two-dimensional dense integer attribute."""
    import numpy as np

    return np.array(attribute).tolist()


def group_axes(groups: list[list[int]], mesh: Mapping[str, int]) -> tuple[tuple[str, ...], int]:
    """The mesh axes along which these groups lie, and the size of a group.

    No axes are named when the groups are not the fibres of any set of axes.
    """
    wanted = {frozenset(g) for g in groups}
    members = max((len(g) for g in groups), default=1)
    real = [a for a, n in mesh.items() if n > 1]
    for count in range(len(real) + 1):
        for axes in itertools.combinations(real, count):
            if {frozenset(f) for f in fibres(axes, mesh)} == wanted:
                return axes, members
    return (), members


def fibres(axes: tuple[str, ...], mesh: Mapping[str, int]) -> list[list[int]]:
    """Device numbers grouped by equal coordinates on all other axes."""
    found: dict[tuple[int, ...], list[int]] = {}
    names = list(mesh)
    for device, point in enumerate(itertools.product(*(range(n) for n in mesh.values()))):
        rest = tuple(i for name, i in zip(names, point, strict=True) if name not in axes)
        found.setdefault(rest, []).append(device)
    return list(found.values())


def permute_axes(pairs: list[list[int]], mesh: Mapping[str, int]) -> tuple[tuple[str, ...], int]:
    """The axes along which any pair's coordinates differ; 2 members unless nobody sends to another."""
    points = list(itertools.product(*(range(n) for n in mesh.values())))
    moved = {axis for a, b in pairs for axis, i, j in zip(mesh, points[a], points[b], strict=True) if i != j}
    return tuple(a for a in mesh if a in moved), 2 if moved else 1


def cyclic_shift(pairs: list[list[int]], mesh: Mapping[str, int]) -> int | None:
    """By how many places every device sends round one and the same axis, the shorter way; None when not so.

    From -N/2 (left out) to N/2 on an axis of N: halfway round has no shorter way and counts as forwards.
    """
    axes, _ = permute_axes(pairs, mesh)
    if len(axes) != 1 or {a for a, _ in pairs} != set(range(math.prod(mesh.values()))):
        return None
    place, size = list(mesh).index(axes[0]), mesh[axes[0]]
    points = list(itertools.product(*(range(n) for n in mesh.values())))
    steps = {(points[b][place] - points[a][place]) % size for a, b in pairs}
    if len(steps) != 1:
        return None
    step = steps.pop()
    return step if 2 * step <= size else step - size


# -- loops and lines ---------------------------------------------------------------------------


def trip_count(loop: Any) -> int | None:
    """Rounds of a counting loop ``for i in range(constant, constant)``; None when it is not one."""
    condition, body = (next(iter(region)) for region in loop.regions)
    *_, result = list(condition)
    compared = _defining(result.operands[0])
    if compared is None or compared.name != "stablehlo.compare":
        return None
    direction = str(compared.attributes["comparison_direction"])
    counter, bound = compared.operands[0], _constant(compared.operands[1], loop)
    position = _argument(counter, condition)
    if bound is None or position is None or not re.search(r"\bL[TE]\b", direction):
        return None
    start = _constant(loop.operands[position], loop)
    *_, returned = list(body)
    step_op = _defining(returned.operands[position])
    if start is None or step_op is None or step_op.name != "stablehlo.add":
        return None
    steps = [_constant(o, loop) for o in step_op.operands if _argument(o, body) != position]
    if len(steps) != 1 or not steps[0] or steps[0] < 0:
        return None
    end = bound + (1 if re.search(r"\bLE\b", direction) else 0)
    rounds = max(0, -(-(end - start) // steps[0]))
    return rounds if _holds(counter.type, start + rounds * steps[0]) else None  # else it overflows and goes on


def _defining(value: Any) -> Any:
    owner = value.owner
    return getattr(owner, "operation", owner) if hasattr(owner, "name") or hasattr(owner, "operation") else None


def _argument(value: Any, block: Any) -> int | None:
    for number, argument in enumerate(block.arguments):
        if argument == value:
            return number
    return None


def _constant(value: Any, loop: Any) -> int | None:
    import numpy as np

    op, types = _defining(value), [value.type]
    while op is not None and op.name == "stablehlo.convert":
        types.append(op.operands[0].type)
        op = _defining(op.operands[0])
    if op is None or op.name != "stablehlo.constant":
        return None
    try:
        array = np.array(op.attributes["value"])
    except Exception:  # a splat of a type that NumPy does not know
        return None
    if array.size != 1 or array.dtype.kind not in "iu":
        return None
    number = int(array.reshape(-1)[0])
    return number if all(_holds(t, number) for t in types) else None


def _holds(kind: Any, number: int) -> bool:
    """Whether an integer tensor type can hold a number."""
    match = re.fullmatch(r"tensor<(u?)i(\d+)>", str(kind))
    if match is None:
        return False
    bits = int(match[2]) - (0 if match[1] else 1)
    return -(0 if match[1] else 1 << bits) <= number < 1 << bits


_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')


def source_line(location: Any, files: set[str]) -> tuple[int | None, str | None]:
    """The innermost line of the learner's own source in a location."""
    for file, line in _PLACE.findall(str(location)):
        if file in files:
            return int(line), file
    return None, None


# -- what the compiler added -------------------------------------------------------------------

_HLO = re.compile(
    r"= (?P<shape>\(?[^=]*?) (?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)"
    r"(?:-start)?\((?P<rest>.*)"
)
_HLO_KINDS = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all", "collective-permute": "permute",
}  # fmt: skip
MARK = f"by_hand_{secrets.token_hex(8)}"  # not to be guessed: names of a learner's can show up in a line, too


def added_by_compiler(hlo: str, mesh: Mapping[str, int]) -> list[Collective]:
    """Collectives of the compiled program that no collective of the source became.

    The source's own carry ``MARK`` in their op_name (see ``run.compile_marked``).
    """
    found = []
    for line in hlo.splitlines():
        match = _HLO.search(line)
        if match is None or MARK in line:
            continue
        kind = _HLO_KINDS[match["kind"]]
        size = sum(hlo_bytes(s) for s in re.findall(r"\w+\[[\d,]*\]", match["shape"]))
        if kind == "permute":
            pairs = re.search(r"source_target_pairs=\{(.*?\})\}", line)
            axes, members = permute_axes(_lists(pairs[1] if pairs else ""), mesh)
        else:
            axes, members = group_axes(replica_groups(line, mesh), mesh)
        if kind == "all_gather":
            size //= max(members, 1)  # the text shows the result
        elif kind == "reduce_scatter":
            size *= members
        if members > 1:
            found.append(Collective(kind, axes, size, sent_bytes(kind, size, members), by_compiler=True))
    return found


_DOT = re.compile(r"= (?P<out>\w+\[[\d,]*\])\S* dot\(%?(?P<left>[\w.-]+).*?lhs_contracting_dims=\{(?P<dims>[\d,]*)\}")


def compiled_flops(hlo: str) -> int:
    """FLOPs of the matrix products one device executes, from the compiled program; loops count once."""
    shapes = {n: _dims(s) for n, s in re.findall(r"%?([\w.-]+)(?: = |: )(\w+\[[\d,]*\])", hlo)}
    total = 0
    for dot in _DOT.finditer(hlo):
        left = shapes.get(dot["left"], [])
        contracted = [left[int(d)] for d in dot["dims"].split(",") if d and int(d) < len(left)]
        total += 2 * math.prod(_dims(dot["out"])) * math.prod(contracted)
    return total


def _dims(shape: str) -> list[int]:
    return [int(n) for n in shape[shape.index("[") + 1 : -1].split(",") if n]


def hlo_bytes(shape: str) -> int:
    """Bytes of an HLO shape such as ``f32[16,24]``."""
    name, dims = shape.rstrip("]").split("[")
    digits = re.search(r"\d+", name)
    bits = 8 if name == "pred" else int(digits[0]) if digits else 32
    return math.prod(int(d) for d in dims.split(",") if d) * max(bits, 8) // 8


def replica_groups(line: str, mesh: Mapping[str, int]) -> list[list[int]]:
    """The spellings of HLO: ``{{0,2},{1,3}}``, ``[2,4]<=[4,2]T(1,0)``, ``mesh['a'=4,'b'=2] {'b'}``.

    The last may number its devices otherwise, ``mesh[...], device_ids=([4,2]T(1,0)) {'b'}``, and name a part of
    an axis: ``'a':(2)2`` is the second factor of an axis 2 * 2 * ...
    """
    import numpy as np

    devices = math.prod(mesh.values())

    def iota(dims: str, order: str | None) -> np.ndarray:
        ids = np.arange(devices).reshape([int(n) for n in dims.split(",")])
        return ids.transpose([int(n) for n in order.split(",")]) if order else ids

    if match := re.search(r"replica_groups=\{(\{.*?\})\}", line):
        return _lists(match[1])
    if match := re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line):
        return iota(match[2], match[3]).reshape([int(n) for n in match[1].split(",")]).tolist()
    named = r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))? \{([^}]*)\}"
    if match := re.search(named, line):
        sizes = {n: int(s) for n, s in re.findall(r"'(\w+)'=(\d+)", match[1])}
        ids = (iota(match[2], match[3]) if match[2] else np.arange(devices)).reshape(-1)
        parts, chosen = _factors(match[4], sizes)
        return [[int(ids[i]) for i in group] for group in fibres(chosen, parts)]
    return [list(range(devices))]


def _factors(axes: str, sizes: Mapping[str, int]) -> tuple[dict[str, int], tuple[str, ...]]:
    """The axes cut into the factors that ``'a':(2)2,'b'`` speaks of, with their sizes; and those it names."""
    named = [(n, int(before or 1), int(size or sizes[n])) for n, before, size in
             re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", axes)]  # fmt: skip
    parts, chosen = {}, []
    for axis, whole in sizes.items():
        mine = [(b, b * s) for n, b, s in named if n == axis]
        cuts = sorted({1, whole, *(c for pair in mine for c in pair)})
        for a, b in itertools.pairwise(cuts):
            parts[f"{axis}:{a}"] = b // a
            if any(first <= a and b <= last for first, last in mine):
                chosen.append(f"{axis}:{a}")
    return parts, tuple(chosen)


def _lists(text: str) -> list[list[int]]:
    return [[int(n) for n in part.split(",") if n] for part in re.findall(r"\{([\d,]*)\}", text)]
