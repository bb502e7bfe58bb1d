"""An interpreter of StableHLO in NumPy, on simulated devices. It derives the facts of `grader.runner.facts` in a second way.

The interpreter uses no code of `grader`. A value is a list with one entry per device. All devices that reach an
operation execute the operation before any device continues. The interpreter counts each device's sent bytes,
arithmetic and matmuls. It supports programs with one `jax.shard_map` over all axes of a mesh, and only reshapes
outside of the shard_map.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

Array = np.ndarray
Values = list[Any]  # one entry per device


@dataclass
class Counts:
    """Bytes sent, collectives and FLOPs of each device."""

    devices: int
    sent: list[Counter[str]] = field(default_factory=list)  # bytes, by kind
    ran: list[Counter[str]] = field(default_factory=list)  # collectives that this device took part in, by kind
    flops: list[int] = field(default_factory=list)
    dots: list[int] = field(default_factory=list)  # FLOPs of dot_general only

    def __post_init__(self) -> None:
        self.sent, self.ran = ([Counter() for _ in range(self.devices)] for _ in range(2))
        self.flops, self.dots = [0] * self.devices, [0] * self.devices


DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8,
    "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "bf16": ml_dtypes.bfloat16, "complex<f32>": np.complex64,
}  # fmt: skip


def run(module: Any, mesh: Mapping[str, int], inputs: Sequence[Array]) -> tuple[list[Values], Counts]:
    """Return the results of ``main`` on each device, and the counts."""
    machine = Machine(module, mesh)
    results = machine.main(inputs)
    return results, machine.counts


class Machine:
    def __init__(self, module: Any, mesh: Mapping[str, int]) -> None:
        self.mesh, self.devices = mesh, math.prod(mesh.values())
        self.points = [dict(zip(mesh, p, strict=True)) for p in itertools.product(*(range(n) for n in mesh.values()))]
        top = [op.operation for op in module.body]
        self.functions = {op.attributes["sym_name"].value: op for op in top if op.name == "func.func"}
        self.meshes: dict[str, Any] = {
            op.attributes["sym_name"].value: sdy.MeshAttr(op.attributes["mesh"]) for op in top if op.name == "sdy.mesh"
        }
        self.counts = Counts(self.devices)
        self.counting = True

    # -- arguments and results -----------------------------------------------------------------------

    def main(self, inputs: Sequence[Array]) -> list[Values]:
        """Run ``main``. Every device has whole arguments; only the results of a shard_map are sharded."""
        block = self.functions["main"].regions[0].blocks[0]
        env = {arg: [value] * self.devices for arg, value in zip(block.arguments, inputs, strict=True)}
        return self.block(block, env, list(range(self.devices)))

    def cut(self, value: Array, sharding: Any, device: int) -> tuple[slice, ...]:
        """Return the slices of a whole array that this device holds."""
        dims = sdy.TensorShardingAttr(sharding).dimension_shardings
        place = []
        for size, dim in zip(value.shape, dims, strict=True):
            index, parts = 0, 1
            for axis in sdy.DimensionShardingAttr(dim).axes:
                name = sdy.AxisRefAttr(axis).name
                index, parts = index * self.mesh[name] + self.points[device][name], parts * self.mesh[name]
            place.append(slice(index * size // parts, (index + 1) * size // parts))
        return tuple(place)

    def manual(self, op: Any, env: dict, who: list[int]) -> list[Values]:
        ins = sdy.TensorShardingPerValueAttr(op.attributes["in_shardings"]).shardings
        outs = sdy.TensorShardingPerValueAttr(op.attributes["out_shardings"]).shardings
        if any(getattr(sdy.TensorShardingAttr(s), "unreduced_axes", ()) for s in [*ins, *outs]):
            raise NotImplementedError("the compiler adds them up, and says so among what it added")
        block = op.regions[0].blocks[0]
        inner = dict(env)
        for arg, operand, sharding in zip(block.arguments, op.operands, ins, strict=True):
            whole = env[operand]
            inner[arg] = [whole[d][self.cut(whole[d], sharding, d)] for d in range(self.devices)]
        results = []
        for out, value, sharding in zip(op.results, self.block(block, inner, who), outs, strict=True):
            whole = np.zeros(list(out.type.shape), value[0].dtype)
            for d in reversed(range(self.devices)):
                whole[self.cut(whole, sharding, d)] = value[d]
            results.append([whole] * self.devices)
        return results

    # -- control -------------------------------------------------------------------------------------

    def block(self, block: Any, env: dict, who: list[int]) -> list[Values]:
        """Run a block on the devices ``who``. The values of other devices have no meaning."""
        for op in block:
            op = op.operation
            if op.name.endswith("return"):
                return [env[o] for o in op.operands]
            for result, value in zip(op.results, self.step(op, env, who), strict=True):
                env[result] = value
        raise AssertionError("a block without an end")

    def step(self, op: Any, env: dict, who: list[int]) -> list[Values]:
        if op.name == "sdy.manual_computation":
            return self.manual(op, env, who)
        if op.name in ("func.call", "stablehlo.composite"):
            name = op.attributes["callee" if op.name == "func.call" else "decomposition"].value
            block = self.functions[name].regions[0].blocks[0]
            return self.block(block, dict(zip(block.arguments, [env[o] for o in op.operands], strict=True)), who)
        if op.name == "stablehlo.while":
            return self.loop(op, env, who)
        if op.name in ("stablehlo.case", "stablehlo.if"):
            return self.choose(op, env, who)
        short = op.name.partition(".")[2]
        if short == "custom_call" and op.attributes["call_target_name"].value == "ragged_all_to_all":
            return self.ragged(op, env)
        if short in COLLECTIVES:
            return self.collective(short, op, env, who)
        results: list[Values] = [[None] * self.devices for _ in op.results]
        for device in who:
            values = self.local(short, op, [env[o][device] for o in op.operands], device, env)
            for i, value in enumerate(values):
                results[i][device] = value
        return results

    def loop(self, op: Any, env: dict, who: list[int]) -> list[Values]:
        condition, body = (region.blocks[0] for region in op.regions)
        state: list[Values] = [list(env[o]) for o in op.operands]
        running = list(who)
        while running:
            (go,) = self.block(condition, env | dict(zip(condition.arguments, state, strict=True)), running)
            running = [d for d in running if bool(go[d])]
            if running:
                after = self.block(body, env | dict(zip(body.arguments, state, strict=True)), running)
                state = [
                    [a[d] if d in running else s[d] for d in range(self.devices)]
                    for s, a in zip(state, after, strict=True)
                ]
        return state

    def choose(self, op: Any, env: dict, who: list[int]) -> list[Values]:
        number = len(op.regions)
        results: list[Values] = [[None] * self.devices for _ in op.results]
        taken: dict[int, list[int]] = {}
        for device in who:
            index = int(env[op.operands[0]][device])
            if op.name == "stablehlo.if":
                index = 0 if index else 1
            taken.setdefault(index if 0 <= index < number else number - 1, []).append(device)
        for index, devices in sorted(taken.items()):
            for result, value in zip(results, self.block(op.regions[index].blocks[0], dict(env), devices), strict=True):
                for device in devices:
                    result[device] = value[device]
        return results

    # -- collectives -----------------------------------------------------------------------------------

    def collective(self, kind: str, op: Any, env: dict, who: list[int]) -> list[Values]:
        assert sorted(who) == list(range(self.devices)), "devices would wait for each other for ever"
        results = []
        for operand in op.operands:
            shards: Values = env[operand]
            if kind == "collective_permute":
                pairs = np.array(op.attributes["source_target_pairs"]).tolist()
                out: Values = [np.zeros_like(shards[d]) for d in range(self.devices)]
                for a, b in pairs:
                    out[b] = shards[a]
                    if a != b:
                        self.counts.sent[a]["permute"] += shards[a].nbytes
                if any(a != b for a, b in pairs):
                    for d in range(self.devices):
                        self.counts.ran[d]["permute"] += 1
            else:
                out: Values = [None] * self.devices
                for group in self.groups(op.attributes["replica_groups"]):
                    parts = self.in_group(kind, op, [shards[d] for d in group], group, env)
                    for d, part in zip(group, parts, strict=True):
                        out[d] = part
            results.append(out)
        return results

    def ragged(self, op: Any, env: dict) -> list[Values]:
        """Copy slices one by one. As in JAX's documentation, the sender knows the offset in the receiver's result."""
        operand, output, starts, sizes, to, expected = (env[o] for o in op.operands)
        out: Values = [array.copy() for array in output]
        for group in self.groups(ir.DictAttr(op.attributes["backend_config"])["replica_groups"]):
            each = len(starts[group[0]]) // len(group)
            for (i, a), k in itertools.product(enumerate(group), range(len(starts[group[0]]))):
                b, size = group[k // each], int(sizes[a][k])
                assert size == expected[b][i * each + k % each], "the receiver expects another size"
                rows = operand[a][int(starts[a][k]) : int(starts[a][k]) + size]
                out[b][int(to[a][k]) : int(to[a][k]) + size] = rows
                self.counts.sent[a]["ragged_all_to_all"] += rows.nbytes * (a != b)
            for a in group if len(group) > 1 else []:
                self.counts.ran[a]["ragged_all_to_all"] += 1
        return [out]

    def groups(self, attribute: Any) -> list[list[int]]:
        if not stablehlo.ReplicaGroupMeshAxesAttr.isinstance(attribute):
            return np.array(attribute).tolist()
        named: Any = stablehlo.ReplicaGroupMeshAxesAttr(attribute)
        mesh = self.meshes[named.mesh.value]
        sizes = [(sdy.MeshAxisAttr(a).name, sdy.MeshAxisAttr(a).size) for a in mesh.axes]
        chosen = [stablehlo.AxisRefAttr(a).name for a in named.axes]
        found: dict[tuple, list[tuple]] = {}
        for device, point in enumerate(itertools.product(*(range(n) for _, n in sizes))):
            at = dict(zip([a for a, _ in sizes], point, strict=True))
            rest = tuple(i for a, i in at.items() if a not in chosen)
            found.setdefault(rest, []).append((tuple(at[a] for a in chosen), device))
        return [[device for _, device in sorted(group)] for group in found.values()]

    def in_group(self, kind: str, op: Any, parts: list[Array], group: list[int], env: dict) -> list[Array]:
        """Return the results of a collective in one group. Gathers and sums go around a ring, chunk by chunk."""
        n = len(parts)
        if n > 1:
            for d in group:
                self.counts.ran[d][kind] += 1

        def send(place: int, array: Array) -> None:
            if n > 1:
                self.counts.sent[group[place]][kind] += array.nbytes

        if kind == "all_gather":
            dim = op.attributes["all_gather_dim"].value
            for _, i in itertools.product(range(n - 1), range(n)):
                send(i, parts[i])
            return [np.concatenate(parts, dim)] * n
        if kind == "all_to_all":
            split, join = op.attributes["split_dimension"].value, op.attributes["concat_dimension"].value
            chunks = [np.split(p, n, split) for p in parts]
            for i, j in itertools.product(range(n), range(n)):
                if i != j:
                    send(i, chunks[i][j])
            return [np.concatenate([chunks[j][i] for j in range(n)], join) for i in range(n)]
        add = op.regions[0].blocks[0]
        self.counting = False  # arithmetic inside a collective does not count
        whole = parts[0]
        for part in parts[1:]:
            whole = self.apply(add, [whole, part], env, group[0])[0]
        self.counting = True
        chunk = parts[0].reshape(-1)
        for i, hop in itertools.product(range(n), range((n - 1) * (2 if kind == "all_reduce" else 1))):
            a, b = (hop % n) * chunk.size // n, (hop % n + 1) * chunk.size // n
            send(i, chunk[a:b])
        if kind == "all_reduce":
            return [whole] * n
        return np.split(whole, n, op.attributes["scatter_dimension"].value)

    # -- on one device ---------------------------------------------------------------------------------

    def count(self, device: int, operations: int, complex_: bool = False, dot: bool = False) -> None:
        if self.counting:
            self.counts.flops[device] += operations * (4 if complex_ else 1)
            self.counts.dots[device] += operations * (4 if complex_ else 1) * dot

    def apply(self, block: Any, values: list[Any], env: dict, device: int) -> list[Any]:
        """Apply a region of scalars to arrays of any shape at once."""
        inner = dict(env)
        for arg, value in zip(block.arguments, values, strict=True):
            inner[arg] = [value] * self.devices
        return [v[device] for v in self.block(block, inner, [device])]

    def local(self, name: str, op: Any, args: list[Any], device: int, env: dict) -> list[Any]:
        types = [r.type for r in op.results]
        shapes = [tuple(t.shape) for t in types]
        dtypes = [DTYPES[str(t.element_type)] for t in types]
        attr = op.attributes
        if name in UNARY or name in BINARY:
            with np.errstate(all="ignore"):
                out = np.asarray((UNARY.get(name) or BINARY[name])(*args)).astype(dtypes[0])
            if name not in LOGIC:
                self.count(device, out.size, out.dtype.kind == "c")
            return [out]
        if name == "constant":
            return [_dense(attr["value"], shapes[0], dtypes[0])]
        if name == "compare":
            how = stablehlo.ComparisonDirectionAttr(attr["comparison_direction"]).value
            return [np.asarray(COMPARE[how](args[0], args[1]))]
        if name == "optimization_barrier":
            return args
        if name == "partition_id":
            return [np.uint32(device)]
        if name == "reduce":
            return self.reduce(op, args, device, env)
        if name == "dot_general":
            out = _dot(stablehlo.DotDimensionNumbers(attr["dot_dimension_numbers"]), *args)
            self.count(
                device, 2 * out.size * _contracted(attr["dot_dimension_numbers"], args[0]), out.dtype.kind == "c", True
            )
            return [out.astype(dtypes[0])]
        if name == "sort":
            return self.sort(op, args, device, env)
        if name == "scatter":
            return self.scatter(op, args, device, env)
        return [np.asarray(MOVES[name](attr, args, shapes[0])).astype(dtypes[0])]

    def reduce(self, op: Any, args: list[Any], device: int, env: dict) -> list[Any]:
        """Reduce one element after the other, from the initial value on."""
        half, dims = len(args) // 2, sorted(op.attributes["dimensions"])
        arrays, found = args[:half], args[half:]
        kept = [n for i, n in enumerate(arrays[0].shape) if i not in dims]
        found = [np.broadcast_to(f, kept) for f in found]
        for point in itertools.product(*(range(arrays[0].shape[d]) for d in dims)):
            index: list[Any] = [slice(None)] * arrays[0].ndim
            for d, i in zip(dims, point, strict=True):
                index[d] = i
            found = self.apply(op.regions[0].blocks[0], [*found, *(a[tuple(index)] for a in arrays)], env, device)
        return found

    def scatter(self, op: Any, args: list[Any], device: int, env: dict) -> list[Any]:
        """Scatter one element at a time, as the specification says. Ignore elements with an index out of bounds."""
        how: Any = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        whole, indices, updates = args
        whole = whole.copy()
        if how.index_vector_dim == indices.ndim:
            indices = indices[..., None]
        hidden = {*how.inserted_window_dims, *how.input_batching_dims}
        free = [d for d in range(whole.ndim) if d not in hidden]
        for point in np.ndindex(updates.shape):
            at = [point[d] for d in range(updates.ndim) if d not in how.update_window_dims]
            where: list[Any] = list(at)
            where.insert(how.index_vector_dim, slice(None))
            start = [0] * whole.ndim
            for value, d in zip(indices[tuple(where)], how.scattered_dims_to_operand_dims, strict=True):
                start[d] = int(value)
            for d, i in zip(how.input_batching_dims, how.scatter_indices_batching_dims, strict=True):
                start[d] = at[i - (i > how.index_vector_dim)]
            for d, o in zip(free, how.update_window_dims, strict=True):
                start[d] += point[o]
            if all(0 <= i < n for i, n in zip(start, whole.shape, strict=True)):
                old = whole[tuple(start)]
                whole[tuple(start)] = self.apply(op.regions[0].blocks[0], [old, updates[point]], env, device)[0]
        return [whole]

    def sort(self, op: Any, args: list[Any], device: int, env: dict) -> list[Any]:
        """Sort by insertion, pair by pair. Comparisons do not count as arithmetic."""
        axis, block = op.attributes["dimension"].value, op.regions[0].blocks[0]
        moved = [np.moveaxis(a, axis, -1).copy() for a in args]
        for row in np.ndindex(moved[0].shape[:-1]):
            order: list[int] = []
            for i in range(moved[0].shape[-1]):
                place = len(order)
                while place and bool(
                    self.apply(block, [x for m in moved for x in (m[row][i], m[row][order[place - 1]])], env, device)[0]
                ):
                    place -= 1
                order.insert(place, i)
            for m in moved:
                m[row] = m[row][order]
        return [np.moveaxis(m, -1, axis) for m in moved]


COLLECTIVES = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"}
LOGIC = {
    "and",
    "or",
    "xor",
    "not",
    "convert",
    "is_finite",
    "select",
    "shift_left",
    "shift_right_logical",
    "real",
    "imag",
}
COMPARE: dict[str, Callable] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
UNARY: dict[str, Callable] = {
    "abs": np.abs, "negate": np.negative, "exponential": np.exp, "log": np.log, "log_plus_one": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a), "tanh": np.tanh, "sine": np.sin, "cosine": np.cos,
    "floor": np.floor, "ceil": np.ceil, "sign": np.sign, "logistic": lambda a: 1 / (1 + np.exp(-a)), "not": np.invert,
    "square": np.square, "is_finite": np.isfinite, "convert": lambda a: a, "exponential_minus_one": np.expm1,
    "round_nearest_even": np.rint, "real": np.real, "imag": np.imag,
}  # fmt: skip
BINARY: dict[str, Callable] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "power": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "remainder": np.fmod,
    "divide": lambda a, b: np.trunc(a / b) if a.dtype.kind in "iu" else a / b, "shift_left": np.left_shift,
    "shift_right_logical": np.right_shift, "select": lambda p, a, b: np.where(p, a, b), "atan2": np.arctan2,
    "clamp": lambda low, a, high: np.clip(a, low, high),
}  # fmt: skip


def _dense(attribute: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    if attribute.is_splat:
        value = attribute.get_splat_value().value
        return np.full(shape, value, dtype)
    return np.array(attribute).astype(dtype).reshape(shape)


def _contracted(numbers: Any, left: Array) -> int:
    return math.prod(left.shape[d] for d in stablehlo.DotDimensionNumbers(numbers).lhs_contracting_dimensions)


def _dot(numbers: Any, a: Array, b: Array) -> Array:
    """Multiply by einsum, in the wider dtype of accumulators."""
    names = iter("abcdefghijklmnopqrstuvwxyz")
    left, right = [""] * a.ndim, [""] * b.ndim
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    for i, j in [*batch, *zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)]:
        left[i] = right[j] = next(names)
    contracted = {left[i] for i in numbers.lhs_contracting_dimensions}
    left, right = ([n or next(names) for n in side] for side in (left, right))
    shared = [left[i] for i, _ in batch]
    out = shared + [n for n in left + right if n not in shared and n not in contracted]
    wide = np.complex128 if a.dtype.kind == "c" else np.int64 if a.dtype.kind in "iu" else np.float64
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", a.astype(wide), b.astype(wide))


def _broadcast(attr: Any, args: list[Array], shape: tuple[int, ...]) -> Array:
    full = [1] * len(shape)
    for size, dim in zip(args[0].shape, attr["broadcast_dimensions"], strict=True):
        full[dim] = size
    return np.broadcast_to(args[0].reshape(full), shape)


def _slice(attr: Any, args: list[Array], shape: tuple[int, ...]) -> Array:
    cuts = zip(attr["start_indices"], attr["limit_indices"], attr["strides"], strict=True)
    return args[0][tuple(slice(a, b, s) for a, b, s in cuts)]


def _start(array: Array, starts: list[Array], sizes: Sequence[int]) -> tuple[slice, ...]:
    at = [int(np.clip(int(s), 0, n - m)) for s, n, m in zip(starts, array.shape, sizes, strict=True)]
    return tuple(slice(a, a + m) for a, m in zip(at, sizes, strict=True))


def _update(attr: Any, args: list[Array], shape: tuple[int, ...]) -> Array:
    whole = args[0].copy()
    whole[_start(whole, args[2:], args[1].shape)] = args[1]
    return whole


def _pad(attr: Any, args: list[Array], shape: tuple[int, ...]) -> Array:
    array, (low, inner) = args[0], ([*attr["edge_padding_low"]], [*attr["interior_padding"]])
    wide = np.full(
        [max(0, n + (n - 1) * i) if n else 0 for n, i in zip(array.shape, inner, strict=True)], args[1], array.dtype
    )
    wide[tuple(slice(None, None, i + 1) for i in inner)] = array
    out = np.full(shape, args[1], array.dtype)
    to = tuple(slice(max(0, a), max(0, min(n, a + w))) for a, n, w in zip(low, shape, wide.shape, strict=True))
    out[to] = wide[tuple(slice(max(0, -a), max(0, -a) + t.stop - t.start) for a, t in zip(low, to, strict=True))]
    return out


def _gather(attr: Any, args: list[Array], shape: tuple[int, ...]) -> Array:
    """Gather one element at a time, as the specification says."""
    how: Any = stablehlo.GatherDimensionNumbers(attr["dimension_numbers"])
    operand, indices = args
    sizes = [*attr["slice_sizes"]]
    if how.index_vector_dim == indices.ndim:
        indices = indices[..., None]
    offset, batch = how.offset_dims, [d for d in range(len(shape)) if d not in how.offset_dims]
    hidden = {*how.collapsed_slice_dims, *how.operand_batching_dims}
    free = [d for d in range(operand.ndim) if d not in hidden]
    out = np.zeros(shape, operand.dtype)
    for point in np.ndindex(shape):
        at = [point[d] for d in batch]
        where = list(at)
        where.insert(how.index_vector_dim, slice(None))
        start = [0] * operand.ndim
        for value, d in zip(indices[tuple(where)], how.start_index_map, strict=True):
            start[d] = int(np.clip(int(value), 0, operand.shape[d] - sizes[d]))
        for d, i in zip(how.operand_batching_dims, how.start_indices_batching_dims, strict=True):
            start[d] = at[i - (i > how.index_vector_dim)]
        for d, o in zip(free, offset, strict=True):
            start[d] += point[o]
        out[point] = operand[tuple(start)]
    return out


def _iota(attr: Any, args: list[Array], shape: tuple[int, ...]) -> Array:
    dim = attr["iota_dimension"].value
    return np.broadcast_to(np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))]), shape)


MOVES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast, "slice": _slice, "dynamic_update_slice": _update, "pad": _pad, "gather": _gather,
    "iota": _iota, "reshape": lambda attr, args, shape: args[0].reshape(shape),
    "transpose": lambda attr, args, shape: args[0].transpose([*attr["permutation"]]),
    "concatenate": lambda attr, args, shape: np.concatenate(args, attr["dimension"].value),
    "reverse": lambda attr, args, shape: np.flip(args[0], tuple(attr["dimensions"])),
    "dynamic_slice": lambda attr, args, shape: args[0][_start(args[0], args[1:], [*attr["slice_sizes"]])],
    "sharding_constraint": lambda attr, args, shape: args[0],
}  # fmt: skip


def arguments(module: Any) -> list[tuple[tuple[int, ...], Any]]:
    """Return the shapes and dtypes of the arguments of ``main``."""
    (main,) = [
        op for op in module.body if op.operation.name == "func.func" and op.attributes["sym_name"].value == "main"
    ]
    types = [a.type for a in main.operation.regions[0].blocks[0].arguments]
    return [(tuple(t.shape), DTYPES[str(t.element_type)]) for t in types if isinstance(t, ir.RankedTensorType)]
