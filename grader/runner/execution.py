"""Programs are compiled and executed here. No learner Python: only MLIR bytecode comes in.

A program is untrusted. ``program.canonical`` admits it and brings it into its one form; that form is read for facts,
compiled for the backend, executed on the inputs, and described. All else about it (devices, shardings of its arguments,
types of its results) comes from what was asked and from the form itself. What was run is remembered by all that it
depends on (``key_of``).
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from copy import copy
from typing import Any, Generic, TypeVar

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib.mlir import ir

from grader.common.observation import UNKNOWN
from grader.runner import facts, hlo, operations, ragged
from grader.runner.admission import Refused, walk
from grader.runner.program import Program, canonical
from grader.runner.steps import Steps
from grader.wire.frames import decode, dtype_of, is_inexact, pack_array, unpack_array
from grader.wire.limits import MAX_ARRAY, MAX_COLLECTIVES, MAX_MEMORY, MAX_OUTPUT, MAX_PAPER_ARRAY
from grader.wire.meshes import make_mesh, mesh_on
from grader.wire.operations import to_text
from grader.wire.text import one_line, without_marks

CPU = "cpu"  # as JAX calls the platform of simulated devices
# What is kept of earlier programs: bytes of replies (a submission of the whole course comes to half of it, and what is
# pushed out before it comes again is kept for nothing), and a number of compiled ones.
MAX_REMEMBERED = 128 << 20
MAX_COMPILED = 8
MAX_STAND_INS = 64
# Code is generated for small inputs and runs a few times: optimizing it takes longer than it saves.
# Collectives and memory are settled before code generation and stay as they are.
QUICKLY: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,  # each fusion would be taken through MLIR, with a context of its own; until 0.11
    "xla_cpu_parallel_codegen_split_count": 1,  # and each part of the program through LLVM
    "xla_cpu_experimental_ynn_fusion_type": "",  # a library that prepares sums and products when they first run, on each device
}
PRODUCTS = {"stablehlo.dot_general", "stablehlo.convolution"}  # whose factors a device may round
HIGHEST = "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
NOT_KNOWN = re.compile(r"No such compile option: '(\w+)'")

Reply = tuple[dict[str, Any], list[bytes]]
T = TypeVar("T")


def on_phase(phase: str) -> None:
    """Told what is about to happen, ``compiling`` or ``executing``; a worker puts its own in this place."""


class CannotRun(Exception):
    """XLA refuses or fails to run an admitted program; the message is for the learner."""


class Remembered(Generic[T]):
    """Things made before, the most recently used ones: many submissions hold the same program.

    Args:
        most: how much is kept, in the unit of ``size``.
        size: of one thing.
    """

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        self.most, self.size, self.held = most, size, 0
        self._made: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key]
        thing = self._made[key] = make()
        self.held += self.size(thing)
        while self.held > self.most:
            self.held -= self.size(self._made.popitem(last=False)[1])
        return thing


def size_of(reply: Reply) -> int:
    return 4096 + len(reply[0].get("operations") or "") + sum(map(len, set(reply[1])))


@dataclasses.dataclass(frozen=True)
class Compiled:
    """An executable on the mesh, and what is known of it without running it."""

    call: Any
    mesh: Any
    shardings: list[NamedSharding]
    about: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Read:
    """The one form of a program, and what is read in it; ``operations`` as ``wire.operations`` writes them, None where there are too many."""

    program: Program
    facts: facts.Facts
    operations: str | None


_answered: Remembered[Reply] = Remembered(MAX_REMEMBERED, size_of)
_executed: Remembered[Reply] = Remembered(MAX_REMEMBERED, size_of)
_compiled: Remembered[Compiled] = Remembered(MAX_COMPILED, lambda _: 1)
_stand_ins: Remembered[Any] = Remembered(MAX_STAND_INS, lambda _: 1)
_read: Remembered[Read] = Remembered(MAX_COMPILED, lambda _: 1)  # asked again with other inputs


def execute(ask: dict[str, Any], code: bytes, inputs: list[list[np.ndarray]]) -> Reply:
    """Execute a program once per list of inputs.

    Args:
        ask: the ask that was traced; says which arguments the program must have, and on which mesh.
        code: the program as MLIR bytecode.
        inputs: for each run, the arguments (and the cotangents) as NumPy arrays, then, for each step after the first,
            those arguments that are not fed.

    Returns:
        Facts, and the shards as blobs; or ``{"fault"}``, which is the learner's. Any other exception is ours.
    """
    try:
        return _answered.get(key_of(ask, inputs, code), lambda: _answer(ask, code, inputs))
    except Refused as error:
        return fault("refused", str(error), error.line, error.file), []
    except CannotRun as error:
        return fault("compile", str(error)), []


def values(ask: dict[str, Any], code: bytes, inputs: list[list[np.ndarray]], exact: bool = False) -> Reply:
    """The outputs alone of a program whose facts are known, on the devices of this process and those it was joined to.

    What they do with it decides nothing but values: an optimizer of theirs may add collectives, or take memory, as it likes.

    Args:
        exact: matrix products are those of float32, whatever they were asked to be.

    Returns:
        As ``execute``, without facts; ``devices`` that are held here, positions on the mesh; and whether it has ``products``.
    """
    arguments = ask["args"] + ask["cotangents"]
    try:
        program = canonical(code, ask["mesh"], arguments, set(ask["files"]))
        steps = Steps.of(ask)
        steps.check(program, arguments)
        key = key_of(ask | {"steps": steps}, [], program.text.encode())
        mesh = mesh_on(jax.devices(), ask["mesh"])
        here = [n for n, device in enumerate(mesh.devices.flat) if device.process_index == jax.process_index()]
        if not here:  # the mesh ends before the devices of this process begin
            return {"outputs": [], "devices": [], "products": False}, []
        compiled = _compiled.get(f"{key} {exact}", lambda: compiled_elsewhere(mesh, program, arguments, exact))
        header, blobs = outputs_of(compiled, inputs, steps)
    except Refused as error:
        return fault("refused", str(error), error.line, error.file), []
    except CannotRun as error:
        return fault("compile", str(error)), []
    return header | {"devices": here}, blobs


def times(ask: dict[str, Any], code: bytes, rounds: int, calls: int) -> Reply:
    """How long a program takes on these devices: ``seconds`` of a call, in each of so many rounds of so many calls.

    Its arguments are drawn where they lie, as large as was asked; a CPU has as much memory for it as for any program, others
    what they have. All processes are asked for the same number of calls: they wait for each other in each.
    """
    arguments = ask["args"] + ask["cotangents"]
    seconds: list[float] = []
    try:
        program = canonical(code, ask["mesh"], arguments, set(ask["files"]), MAX_PAPER_ARRAY)
        mesh = mesh_on(jax.devices(), ask["mesh"])
        if not mesh.local_devices:
            return {"seconds": []}, []
        key = key_of(ask, [], program.text.encode())
        compiled = _compiled.get(f"{key} False", lambda: compiled_elsewhere(mesh, program, arguments, exact=False))
        on_phase("executing")
        placed = [_drawn(a, s) for a, s in zip(arguments, compiled.shardings, strict=True)]
        jax.block_until_ready(compiled.call(*placed))
        for _ in range(rounds):
            begun = time.perf_counter()
            for _ in range(calls):
                out = compiled.call(*placed)
            jax.block_until_ready(out)
            seconds.append((time.perf_counter() - begun) / calls)
    except Refused as error:
        return fault("refused", str(error)), []
    except CannotRun as error:
        return fault("compile", str(error)), []
    except jax.errors.JaxRuntimeError as error:
        return fault("compile", reason("XLA cannot run it", error)), []
    return {"seconds": seconds}, []


def _drawn(about: dict[str, Any], sharding: NamedSharding) -> Any:
    """An argument of numbers from -1 to 1, all kinds, on its devices; whole numbers are 0, which is an index of anything."""

    def draw() -> Any:
        dtype = dtype_of(about["dtype"])
        if not is_inexact(dtype):
            return jax.numpy.zeros(about["shape"], dtype)
        count = jax.lax.iota(
            np.float32, math.prod(about["shape"])
        )  # a generator of random ones takes a second to compile
        return jax.numpy.cos(count).reshape(about["shape"]).astype(dtype)

    return jax.jit(draw, out_shardings=sharding)()


def fault(kind: str, message: str, line: int | None = None, file: str = "") -> dict[str, Any]:
    return {"fault": {"kind": kind, "message": message, "line": line, "file": file, "type": ""}}


def _answer(ask: dict[str, Any], code: bytes, inputs: list[list[np.ndarray]]) -> Reply:
    arguments = ask["args"] + ask["cotangents"]
    looked = looked_at(ask, code)
    program, found = looked.program, looked.facts
    if "timing" in ask:
        return _read_only(looked), []
    steps = Steps.of(ask)
    steps.check(program, arguments)
    needed = {"mesh": list(ask["mesh"].items()), "args": [[a["shape"], a["dtype"], a["spec"]] for a in arguments]}
    key = key_of(needed | {"steps": steps}, inputs, program.text.encode())

    def compiled() -> Compiled:
        return _compiled.get(
            key_of(needed, [], program.text.encode()),
            lambda: compiled_on(make_mesh(ask["mesh"]), program, arguments, found),
        )

    header, blobs = _executed.get(key, lambda: outputs_of(compiled(), inputs, steps))
    collectives = [dataclasses.asdict(c) for c in found.collectives] + header["added"]
    if len(collectives) > MAX_COLLECTIVES:
        raise Refused(
            f"the program has more than {MAX_COLLECTIVES:,} collectives, written out; use lax.fori_loop or lax.scan"
        )
    flops = header["compiled_flops"] if found.flops is None else dataclasses.asdict(found.flops)
    dots = header["compiled_dots"] if found.dot_flops is None else dataclasses.asdict(found.dot_flops)
    facts_of = {"collectives": collectives, "flops": flops, "dot_flops": dots}
    facts_of |= {"mapped": found.mapped, "operations": looked.operations}
    return header | facts_of | {"program": hashlib.sha256(program.text.encode()).hexdigest()}, blobs


def _read_only(looked: Read) -> dict[str, Any]:
    """What is known of a program that is never compiled: outside of ``shard_map`` it may cost anything."""
    found = looked.facts
    flops, dots = (dataclasses.asdict(UNKNOWN if n is None else n) for n in (found.flops, found.dot_flops))
    collectives = [dataclasses.asdict(c) for c in found.collectives]
    facts_of = {"collectives": collectives, "flops": flops, "dot_flops": dots, "memory": 0, "outputs": []}
    facts_of |= {"mapped": found.mapped, "operations": looked.operations}
    return facts_of | {"program": hashlib.sha256(looked.program.text.encode()).hexdigest()}


def looked_at(ask: dict[str, Any], code: bytes) -> Read:
    """The one form of a program, its facts and its operations; read once, however often it is asked."""
    return _read.get(key_of(ask, [], code), lambda: read(ask, code, ask["args"] + ask["cotangents"]))


def read(ask: dict[str, Any], code: bytes, arguments: list[dict[str, Any]]) -> Read:
    """The one form of a program, its facts and its operations."""
    files = set(ask["files"])
    most = MAX_PAPER_ARRAY if "timing" in ask else MAX_ARRAY
    program = canonical(code, ask["mesh"], arguments, files, most)
    module = program.parse()
    found = facts.read(module, ask["mesh"], files)
    graph = operations.read(module, ask["mesh"], files, compared="compared" in ask)
    return Read(program, found, None if graph is None else to_text(graph))


def key_of(about: dict[str, Any], inputs: Iterable[Iterable[np.ndarray]], code: bytes) -> str:
    """SHA-256 over what execution depends on: what was asked, every input's type, shape and bytes, and the program."""
    parts = [repr(about).encode(), code]
    for one in inputs:
        parts += [part for v in one for part in (repr((v.dtype.name, v.shape)).encode(), v.tobytes())] + [b"run"]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def compiled_on(mesh: Any, program: Program, arguments: list[dict[str, Any]], found: facts.Facts) -> Compiled:
    """Compile the one form of a program, with its own collectives marked (see ``hlo.added_by_compiler``).

    Args:
        found: what it says itself; of arithmetic that it does not say, only the compiler knows.
    """
    sizes = dict(mesh.shape)
    shardings = [NamedSharding(mesh, decode(a["spec"])) for a in arguments]
    # Types are as the program says; a mesh that somebody set, as in a notebook, says nothing about it.
    with jax.enable_x64(True), jax.set_mesh(None):  # type: ignore[arg-type]
        module = program.module()
        marked = facts.read(module, sizes, set()).marked if ragged.spell_out(module) else found.marked
        facts.mark(module)
        compiled = compiled_for(program, module, arguments, shardings, quickly)
    memory = checked_memory(compiled, mesh.size)
    text = compiled.as_text() or ""
    about = {"memory": memory, "added": [dataclasses.asdict(c) for c in hlo.added_by_compiler(text, sizes, marked)]}
    if found.flops is None or found.dot_flops is None:
        cost = hlo.compiled_cost(text)
        about |= {"compiled_flops": dataclasses.asdict(cost.flops), "compiled_dots": dataclasses.asdict(cost.dots)}
    return Compiled(compiled, mesh, shardings, about)


def compiled_elsewhere(mesh: Any, program: Program, arguments: list[dict[str, Any]], exact: bool) -> Compiled:
    """Compile the one form of a program for an accelerator, or for several processes, as anybody's program is compiled there."""
    shardings = [NamedSharding(mesh, decode(a["spec"])) for a in arguments]
    with jax.enable_x64(True), jax.set_mesh(None):  # type: ignore[arg-type]
        module = program.module()
        if jax.default_backend() == CPU:  # others have a ragged all-to-all of their own
            ragged.spell_out(module)
        products = [op for op in walk(module.operation) if op.name in PRODUCTS]
        if exact:
            with module.context:
                for op in products:
                    op.attributes["precision_config"] = ir.Attribute.parse(HIGHEST)
        compiled = compiled_for(program, module, arguments, shardings, lambda lowered: lowered.compile())
    if jax.default_backend() == CPU:  # others have a memory of their own, and say when it is too small
        checked_memory(compiled, mesh.size)
    return Compiled(compiled, mesh, shardings, {"products": bool(products)})


def compiled_for(
    program: Program,
    module: Any,
    arguments: list[dict[str, Any]],
    shardings: list[NamedSharding],
    compile_: Callable[[Any], Any],
) -> Any:
    """The executable of ``module``, which is the program's. Raises CannotRun."""
    lowered = standing_in(module, program, arguments, shardings)
    on_phase("compiling")
    try:
        return compile_(lowered)
    except Exception as error:  # many kinds, by the pass of XLA that refuses
        raise CannotRun(reason("XLA cannot compile it", error)) from error


def quickly(lowered: Any) -> Any:
    """What was lowered, compiled with those of the options that this XLA has."""
    while True:
        try:
            return lowered.compile(compiler_options=QUICKLY)
        except jax.errors.JaxRuntimeError as error:
            unknown = NOT_KNOWN.search(str(error))
            if unknown is None or QUICKLY.pop(unknown[1], None) is None:
                raise


def standing_in(module: Any, program: Program, arguments: list[dict[str, Any]], shardings: list[NamedSharding]) -> Any:
    """A module as JAX has it when it has lowered a function itself: so it places arguments and assembles results as ever."""
    key = repr((arguments, program.results)), *shardings
    lowered = copy(_stand_ins.get(key, lambda: lowered_stand_in(program, arguments, shardings)))
    lowered._lowering = copy(lowered._lowering)
    lowered._lowering._hlo = module
    return lowered


def lowered_stand_in(program: Program, arguments: list[dict[str, Any]], shardings: list[NamedSharding]) -> Any:
    """A function with the same arguments and results as a program, lowered, to be handed the program as its module."""

    def same_results(*_: Any) -> tuple:
        return tuple(jax.numpy.zeros(shape, dtype_of(dtype)) for shape, dtype in program.results)

    shapes = [jax.ShapeDtypeStruct(tuple(a["shape"]), dtype_of(a["dtype"])) for a in arguments]
    lowered: Any = jax.jit(same_results, keep_unused=True, in_shardings=tuple(shardings)).lower(*shapes)
    lowered._lowering._hlo = None
    return lowered


def checked_memory(compiled: Any, devices: int) -> int:
    """Bytes of temporary memory on each device. Raises Refused where all of it over all devices is too much."""
    memory = compiled.memory_analysis()
    if memory is None:
        return 0
    each = memory.temp_size_in_bytes + memory.output_size_in_bytes + memory.argument_size_in_bytes
    if each * devices > MAX_MEMORY:
        raise Refused(
            f"the program needs {each * devices / 2**20:,.0f} MiB over all devices; {MAX_MEMORY >> 20} MiB are the limit"
        )
    return int(memory.temp_size_in_bytes)


def outputs_of(compiled: Compiled, inputs: list[list[np.ndarray]], steps: Steps) -> Reply:
    """Run an executable on each list of inputs, ``steps.count`` times; the results of each time, one after another."""
    on_phase("executing")
    blobs: list[bytes] = []
    runs = []
    for values in inputs:
        fresh, count = iter(values), len(compiled.shardings)
        arguments = [next(fresh) for _ in range(count)]
        for step in range(steps.count):
            placed = [_placed(v, s) for v, s in zip(arguments, compiled.shardings, strict=True)]
            try:
                out = jax.block_until_ready(compiled.call(*placed))
            except Exception as error:  # XLA's own, and what its runtime raises
                raise CannotRun(reason("XLA cannot run it", error)) from error
            runs.append([describe(leaf, compiled.mesh, blobs) for leaf in out])
            if step + 1 < steps.count:
                arguments = steps.arguments_after(out, fresh, count)
    one_of: dict[bytes, bytes] = {}  # devices often hold the same
    return {"outputs": runs} | compiled.about, [one_of.setdefault(blob, blob) for blob in blobs]


def _placed(value: Any, sharding: NamedSharding) -> Any:
    """An argument on the devices; of several processes each lays out what its own hold."""
    if sharding.is_fully_addressable or isinstance(value, jax.Array):
        return jax.device_put(value, sharding)
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def reason(what: str, error: Exception) -> str:
    return f"{what}: {type(error).__name__}: {without_marks(one_line(error))[:300]}"


def runs() -> bool:
    """Whether a sum over all devices comes out right: the control where a program ended the process."""
    mesh = make_mesh({"x": jax.device_count()})
    placed = jax.device_put(np.ones(mesh.size, np.float32), NamedSharding(mesh, PartitionSpec("x")))
    total = jax.jit(
        jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec())
    )
    return bool(np.asarray(total(placed))[0] == mesh.size)


def look() -> dict[str, Any]:
    """Which devices there are: those of all processes that this one was joined to."""
    try:
        found = jax.devices()
    except Exception as error:  # of many kinds, by what is missing
        return {"problem": one_line(error) or f"{jax.config.jax_platforms} is nothing that this JAX knows"}  # type: ignore[attr-defined]
    return {"platform": found[0].platform, "kind": found[0].device_kind, "count": len(found)}


def join(address: str, processes: int, number: int) -> None:
    """Make this process one of several whose devices are one mesh; they find each other at this address."""
    if jax.config.jax_platforms == CPU:  # type: ignore[attr-defined]
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, processes, number)


def describe(leaf: Any, mesh: Any, blobs: list[bytes]) -> dict[str, Any]:
    """Shape, dtype, and per device of this process (in mesh order) the slice it holds and its data."""
    held = sum(shard.data.nbytes for shard in leaf.addressable_shards)
    if held + sum(map(len, blobs)) > MAX_OUTPUT:
        raise Refused("the results are larger than 64 MiB over all devices and runs")
    shards = {s.device: s for s in leaf.addressable_shards}
    places, about = [], {"shape": list(leaf.shape), "dtype": leaf.dtype.name}
    for device in mesh.local_devices:
        shard = shards.get(device)
        if shard is None:
            raise Refused("the result does not live on all devices of the mesh")
        try:
            index = shard.index
        except (NotImplementedError, ValueError) as error:  # JAX does not know it of what is unreduced
            raise Refused(
                "the devices do not hold slices of the result; is a sum over them still to be made?"
            ) from error
        places.append([list(s.indices(n)[:2]) for s, n in zip(index, leaf.shape, strict=True)])
        blobs.append(pack_array(np.asarray(shard.data))[1])
    return about | {"slices": places}


def unpack_inputs(header: dict[str, Any], blobs: list[bytes]) -> list[list[np.ndarray]]:
    """The inverse of what ``Worker.run_program`` packs: ``header["inputs"]`` describes one list of arrays per run."""
    rest = iter(blobs)
    return [[unpack_array(about, next(rest)) for about in one] for one in header["inputs"]]
