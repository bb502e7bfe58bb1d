"""Exported programs are compiled and executed here. No learner Python: only bytes come in.

A program is untrusted. It is admitted (size, argument types and shardings as asked, an allow-list of
operations), compiled for the backend, executed on hidden inputs, and described.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.export
import numpy as np
from jax.sharding import NamedSharding

from grader import facts
from grader.trace import make_mesh
from grader.wire import decode, pack_array, unpack_array

MAX_PROGRAM = 4 << 20
MAX_OUTPUT = 64 << 20
MAX_MEMORY = 512 << 20  # well below the least memory_mib of a course
MAX_REMEMBERED = 64 << 20
# Code is generated for small inputs and runs three times: optimizing it takes longer than it saves.
# Collectives and memory are settled before code generation and stay as they are.
QUICKLY: Any = {"xla_backend_optimization_level": 0}

Reply = tuple[dict[str, Any], list[bytes]]


class Remembered:
    """What programs did, the most recently used ones: many submissions hold the same program."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self._done: OrderedDict[str, Reply] = OrderedDict()

    def get(self, key: str, make: Callable[[], Reply]) -> Reply:
        if key in self._done:
            self._done.move_to_end(key)
            return self._done[key]
        reply = self._done[key] = make()
        self.size += _size(reply)
        while self.size > self.most:
            self.size -= _size(self._done.popitem(last=False)[1])
        return reply


def _size(reply: Reply) -> int:
    return 4096 + sum(map(len, reply[1]))


_executed = Remembered(MAX_REMEMBERED)  # by what a program computes
_answered = Remembered(MAX_REMEMBERED)  # by its very bytes, which say from which lines it came


def run(ask: dict[str, Any], program: bytes, inputs: list[list[np.ndarray]]) -> Reply:
    """Execute ``program`` once per list of inputs.

    Args:
        ask: the ask that was traced; says which arguments the program must have.
        program: a serialized ``jax.export.Exported``.
        inputs: for each run, the arguments (and the cotangent) as NumPy arrays.

    Returns:
        ``{"facts", "outputs"}`` and the shards as blobs, or ``{"fault"}``.
    """
    try:
        return _run(ask, program, inputs)
    except facts.Refused as error:
        return {"fault": {"kind": "refused", "message": str(error), "line": None, "file": "", "type": ""}}, []


def _run(ask: dict[str, Any], program: bytes, inputs: list[list[np.ndarray]]) -> Reply:
    if len(program) > MAX_PROGRAM:
        raise facts.Refused(f"the program takes {len(program):,} bytes; {MAX_PROGRAM:,} are the limit")
    values = _digest(v.tobytes() for one in inputs for v in one)
    key = _digest([repr(ask).encode(), values.encode(), program])
    return _answered.get(key, lambda: _answer(ask, program, inputs, values))


def _answer(ask: dict[str, Any], program: bytes, inputs: list[list[np.ndarray]], values: str) -> Reply:
    exported = deserialize(program)
    module = facts.parse(exported.mlir_module_serialized)
    facts.admit(module)
    arguments = ask["args"] + ([ask["cotangent"]] if ask["wrt"] else [])
    expect_arguments(exported, arguments)
    found = facts.read(module, ask["mesh"], set(ask["files"]))

    bare = module.operation.get_asm(enable_debug_info=False)
    key = _digest([repr((bare, ask["mesh"], arguments)).encode(), values.encode()])
    header, blobs = _executed.get(key, lambda: execute(ask, exported, module, arguments, inputs))
    collectives = [dataclasses.asdict(c) for c in found.collectives] + header["added"]
    flops = header["compiled_flops"] if found.flops is None else found.flops
    return header | {"collectives": collectives, "flops": flops, "typed": found.typed, "mapped": found.mapped}, blobs


def _digest(parts: Iterable[bytes]) -> str:
    """SHA-256 of these parts, whatever their lengths."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def execute(ask: dict, exported: Any, module: Any, arguments: list, inputs: list) -> Reply:
    mesh = make_mesh(ask["mesh"])
    shardings = [NamedSharding(mesh, decode(a["spec"])) for a in arguments]
    marked = mark_collectives(exported, module)
    abstract = [
        jax.ShapeDtypeStruct(tuple(a["shape"]), jax.numpy.dtype(a["dtype"]), sharding=s)
        for a, s in zip(arguments, shardings, strict=True)
    ]
    compiled = jax.jit(marked.call).lower(*abstract).compile(compiler_options=QUICKLY)
    memory = compiled.memory_analysis()
    if memory is not None:
        each = memory.temp_size_in_bytes + memory.output_size_in_bytes + memory.argument_size_in_bytes
        if each * mesh.size > MAX_MEMORY:
            raise facts.Refused(
                f"the program needs {each * mesh.size / 2**20:,.0f} MiB over all devices; "
                f"{MAX_MEMORY >> 20} MiB are the limit"
            )
    blobs: list[bytes] = []
    runs = []
    for values in inputs:
        placed = [jax.device_put(v, s) for v, s in zip(values, shardings, strict=True)]
        out = jax.block_until_ready(compiled(*placed))
        runs.append([describe(leaf, mesh, blobs) for leaf in jax.tree.leaves(out)])
    hlo = compiled.as_text() or ""
    added = facts.added_by_compiler(hlo, ask["mesh"])
    return {
        "outputs": runs,
        "tuple_out": not jax.tree_util.treedef_is_leaf(exported.out_tree),
        "memory": int(memory.temp_size_in_bytes) if memory is not None else 0,
        "added": [dataclasses.asdict(c) for c in added],
        "compiled_flops": facts.compiled_flops(hlo),
    }, blobs


def deserialize(program: bytes) -> Any:
    try:
        return jax.export.deserialize(bytearray(program))
    except Exception as error:  # flatbuffers raises many kinds on bytes that are not an Exported
        raise facts.Refused("the program cannot be read") from error


def expect_arguments(exported: Any, arguments: list[dict[str, Any]]) -> None:
    """The program takes what was asked: the same shapes and dtypes, in the same order, all of them."""
    asked = [(tuple(a["shape"]), a["dtype"]) for a in arguments]
    takes = [(tuple(a.shape), a.dtype.name) for a in exported.in_avals]
    if takes != asked:
        raise facts.Refused(f"the program takes {takes}, asked was {asked}")
    if exported.nr_devices < 1 or len(exported.out_avals) > 64:
        raise facts.Refused("the program has more than 64 results")


def mark_collectives(exported: Any, module: Any) -> Any:
    """The same program with its own collectives named MARK, so that the compiler's can be told apart.

    All other debug information is dropped: what the learner's source was called must not matter.
    """
    from jaxlib import _jax  # type: ignore[attr-defined]
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with module.context:
        bare = ir.Module.parse(module.operation.get_asm(enable_debug_info=False))
        mark = ir.Location.name(facts.MARK)
        for op in facts.walk(bare.operation):
            if op.name in facts.KINDS:
                op.location = mark
        # stablehlo's own serializer knows no Shardy; this is the one jax.export uses.
        text = _jax.mlir.serialize_portable_artifact(bare, stablehlo.get_current_version(), True)
    return dataclasses.replace(exported, mlir_module_serialized=text)


def describe(leaf: Any, mesh: Any, blobs: list[bytes]) -> dict[str, Any]:
    """Shape, dtype, and per device (in mesh order) the slice it holds and its data."""
    held = sum(shard.data.nbytes for shard in leaf.addressable_shards)
    if held + sum(map(len, blobs)) > MAX_OUTPUT:
        raise facts.Refused("the results are larger than 64 MiB over all devices and runs")
    shards = {s.device: s for s in leaf.addressable_shards}
    places, about = [], {"shape": list(leaf.shape), "dtype": leaf.dtype.name}
    for device in mesh.devices.flat:
        shard = shards.get(device)
        if shard is None:
            raise facts.Refused("the result does not live on all devices of the mesh")
        places.append([list(s.indices(n)[:2]) for s, n in zip(shard.index, leaf.shape, strict=True)])
        blobs.append(pack_array(np.asarray(shard.data))[1])
    return about | {"slices": places}


def unpack_inputs(header: dict[str, Any], blobs: list[bytes]) -> list[list[np.ndarray]]:
    """The inverse of what ``grade`` packs: ``header["inputs"]`` describes one list of arrays per run."""
    rest = iter(blobs)
    return [[unpack_array(about, next(rest)) for about in one] for one in header["inputs"]]


def crash_reason(stderr: str) -> str:
    """One line of what XLA said last, without addresses, for the person who must look."""
    lines = [s for s in stderr.splitlines() if s.strip()]
    told = next((s for s in reversed(lines) if re.search(r"F\d{4}|Check failed|terminate|rror", s)), "")
    return re.sub(r"0x[0-9a-f]+|\b\d{6,}\b", "...", without_marks(told))[:200]


def without_marks(text: str) -> str:
    """A message of XLA's without MARK, which is another one in every process: reports are the same every time."""
    return re.sub(r"by_hand_[0-9a-f]{16}", "collective", text)
