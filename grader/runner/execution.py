"""Execute programs on the devices of this process.

Programs are untrusted. The devices and the shardings of the arguments come from the grader's request. The types of the
results come from the program's canonical form, which passed all checks, and not from the bytecode. A program of several
steps runs once for each step, and some results become arguments of the next step.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from grader.common.intervals import UNKNOWN
from grader.runner import compiling, facts, operations
from grader.runner.admission import ProgramRefused
from grader.runner.compiling import CPU, CannotRun, Executable, LRUCache, compiled_elsewhere, compiled_on, reason
from grader.runner.program import Program, canonical
from grader.wire.frames import dtype_of, is_inexact, pack_array, unpack_array
from grader.wire.limits import MAX_ARRAY, MAX_COLLECTIVES, MAX_OUTPUT, MAX_PAPER_ARRAY
from grader.wire.meshes import make_mesh, mesh_on
from grader.wire.messages import Argument, CallAsk, ResultArray, RunnerAnswer, RunRequest
from grader.wire.operations import to_text
from grader.wire.text import one_line


@dataclass(frozen=True)
class Steps:
    """How many steps a program runs on one set of inputs, and which results become arguments of the next step.

    ``fed`` maps an argument's position to the position of the result that becomes this argument. A position is an index
    into the leaves of all arguments, or of all results.
    """

    count: int
    fed: Mapping[int, int]

    @classmethod
    def of(cls, ask: CallAsk) -> Steps:
        return cls(ask["steps"], {argument: result for result, argument in ask["fed"]})

    def check(self, program: Program, arguments: Sequence[Argument]) -> None:
        """Raise ProgramRefused if a result in ``fed`` is missing or does not fit.

        A result fits if it has the shape and dtype of the argument that it becomes.
        """
        for argument, result in self.fed.items():
            asked = arguments[argument]
            if result >= len(program.results):
                raise ProgramRefused(f"the program does not return {asked['name']} for the next step")
            shape, dtype = program.results[result]
            if (list(shape), dtype) != (list(asked["shape"]), asked["dtype"]):
                takes = f"the next step takes {asked['dtype']}{list(asked['shape'])}"
                raise ProgramRefused(f"returned {dtype}{list(shape)} for {asked['name']}, {takes}")


# Limits of the caches: the bytes of all replies, and the numbers of executables and of canonical programs. A submission
# of all exercises needs half of MAX_REPLIES.
MAX_REPLIES = 128 << 20
MAX_COMPILED = 8
MAX_PROGRAMS = 64

Message = tuple[RunnerAnswer, list[bytes]]
P = ParamSpec("P")


def size_of(reply: Message) -> int:
    return 4096 + len(reply[0].get("operations") or "") + sum(map(len, set(reply[1])))


@dataclasses.dataclass(frozen=True)
class Read:
    """A canonical program, its facts, and its operations as text (None if there are too many)."""

    program: Program
    facts: facts.Facts
    operations: str | None


_executed: LRUCache[Message] = LRUCache(MAX_REPLIES, size_of)
_compiled: LRUCache[Executable] = LRUCache(MAX_COMPILED, lambda _: 1)
_read: LRUCache[Read] = LRUCache(MAX_PROGRAMS, lambda _: 1)  # one program is often executed with several sets of inputs


def with_faults(run: Callable[P, Message]) -> Callable[P, Message]:
    """Return a function that calls ``run``, and returns a reply with a ``fault`` if the program is at fault."""

    @wraps(run)
    def run_or_fault(*args: P.args, **options: P.kwargs) -> Message:
        try:
            return run(*args, **options)
        except ProgramRefused as error:
            return fault("refused", str(error), error.line, error.file), []
        except CannotRun as error:
            return fault("compile", str(error)), []

    return run_or_fault


@with_faults
def execute(ask: CallAsk, code: bytes, inputs: list[list[np.ndarray]]) -> Message:
    """Execute a program once for each list of inputs, and read its facts.

    Args:
        ask: the grader's request, with the mesh and the arguments that the program must have.
        code: the program as MLIR bytecode.
        inputs: a list of NumPy arrays for each set of inputs. The list has the arguments of the first step (with
            cotangents, if the program has any), then the arguments of each later step. It leaves out results of one
            step that become arguments of the next step.

    Returns:
        The facts and the shapes of results as JSON, and the shards of results as blobs. If the program is at fault, the
        JSON has only a ``fault``. An exception means that the grader is at fault.
    """
    arguments = [*ask["args"], *ask["cotangents"]]
    looked = read_program(ask, code)
    program, found = looked.program, looked.facts
    if "timing" in ask:
        flops, dots = (dataclasses.asdict(UNKNOWN if n is None else n) for n in (found.flops, found.dot_flops))
        collectives = [dataclasses.asdict(c) for c in found.collectives]
        return {**_facts_of(looked, collectives, flops, dots), "memory": 0, "outputs": []}, []
    steps = Steps.of(ask)
    steps.check(program, arguments)
    needed = {"mesh": list(ask["mesh"].items()), "args": [[a["shape"], a["dtype"], a["spec"]] for a in arguments]}
    key = key_of(needed | {"steps": steps}, inputs, program.text.encode())

    def compiled() -> Executable:
        return _compiled.get(
            key_of(needed, [], program.text.encode()),
            lambda: compiled_on(make_mesh(ask["mesh"]), program, arguments, found),
        )

    def executed() -> Message:
        before = time.process_time()
        header, blobs = outputs_of(compiled(), inputs, steps)
        return {**header, "cpu": time.process_time() - before}, blobs

    header, blobs = _executed.get(key, executed)
    return {**header, **_facts_of(looked, *_with_compiled(found, header))}, blobs


@with_faults
def values(ask: CallAsk, code: bytes, inputs: list[list[np.ndarray]], exact: bool = False) -> Message:
    """Run a program on the devices of this process and of the processes that ``join`` connected to it.

    The grader judges only the values. So this function ignores the collectives that the compiler adds. It limits the
    program's memory only on a CPU.

    Args:
        exact: True to compute every matmul in float32, even if the program requests another precision.

    Returns:
        The reply of ``execute`` without facts, with two more fields. ``devices``: for each device of the mesh that
        belongs to this process, its position on the mesh. ``matmuls``: whether the program has matmuls or
        convolutions.
    """
    arguments = [*ask["args"], *ask["cotangents"]]
    program = canonical(code, ask["mesh"], arguments, set(ask["files"]))
    steps = Steps.of(ask)
    steps.check(program, arguments)
    key = key_of(ask | {"steps": steps}, [], program.text.encode())
    mesh = mesh_on(jax.devices(), ask["mesh"])
    here = [n for n, device in enumerate(mesh.devices.flat) if device.process_index == jax.process_index()]
    if not here:  # this process has no device of the mesh
        return {"outputs": [], "devices": [], "matmuls": False}, []
    compiled = _compiled.get(f"{key} {exact}", lambda: compiled_elsewhere(mesh, program, arguments, exact))
    header, blobs = outputs_of(compiled, inputs, steps)
    return {**header, "devices": here}, blobs


@with_faults
def times(ask: CallAsk, code: bytes, rounds: int, calls: int) -> Message:
    """Time a program on the devices of this process and of the processes that ``join`` connected to it.

    The arguments are made on the devices. On a CPU, the grader limits the program's memory; on other devices, only the
    device's own memory is a limit. All processes make equally many calls, because each call waits for all processes.

    The reply's ``seconds`` has one number for each of ``rounds`` rounds. The number is the mean time of the round's
    ``calls`` calls, in seconds.
    """
    arguments = [*ask["args"], *ask["cotangents"]]
    seconds: list[float] = []
    program = canonical(code, ask["mesh"], arguments, set(ask["files"]), MAX_PAPER_ARRAY)
    mesh = mesh_on(jax.devices(), ask["mesh"])
    if not mesh.local_devices:
        return {"seconds": []}, []
    key = key_of(ask, [], program.text.encode())
    compiled = _compiled.get(f"{key} False", lambda: compiled_elsewhere(mesh, program, arguments, exact=False))
    compiling.on_phase("executing")
    try:
        placed = [_drawn(a, s) for a, s in zip(arguments, compiled.shardings, strict=True)]
        jax.block_until_ready(compiled.call(*placed))
        for _ in range(rounds):
            begun = time.perf_counter()
            for _ in range(calls):
                out = compiled.call(*placed)
            jax.block_until_ready(out)
            seconds.append((time.perf_counter() - begun) / calls)
    except jax.errors.JaxRuntimeError as error:
        raise CannotRun(reason("XLA cannot run the program", error)) from error
    return {"seconds": seconds}, []


def _drawn(about: Argument, sharding: NamedSharding) -> Any:
    """Return an argument with which to time a program: floats from -1 to 1, or integers 0.

    The integer 0 is a valid index of every array.
    """

    def draw() -> Any:
        dtype = dtype_of(about["dtype"])
        if not is_inexact(dtype):
            return jax.numpy.zeros(about["shape"], dtype)
        # Compiling a random generator takes a second, so arguments are made without a generator.
        count = jax.lax.iota(np.float32, math.prod(about["shape"]))
        return jax.numpy.cos(count).reshape(about["shape"]).astype(dtype)

    return jax.jit(draw, out_shardings=sharding)()


def fault(kind: str, message: str, line: int | None = None, file: str = "") -> RunnerAnswer:
    return {"fault": {"kind": kind, "message": message, "line": line, "file": file, "type": ""}}


def _with_compiled(found: facts.Facts, header: Mapping[str, Any]) -> tuple[list[dict], dict, dict]:
    """Return a program's collectives, its FLOPs and the FLOPs of its matmuls as JSON.

    ``header``: has the facts of the compiled program.
    """
    collectives = [*(dataclasses.asdict(c) for c in found.collectives), *header["added"]]
    if len(collectives) > MAX_COLLECTIVES:
        raise ProgramRefused(
            f"the program has more than {MAX_COLLECTIVES:,} collectives "
            "(each call of a function counts its collectives again); use lax.fori_loop or lax.scan"
        )
    flops = header["compiled_flops"] if found.flops is None else dataclasses.asdict(found.flops)
    dots = header["compiled_dots"] if found.dot_flops is None else dataclasses.asdict(found.dot_flops)
    return collectives, flops, dots


def _facts_of(looked: Read, collectives: list[dict], flops: dict, dots: dict) -> RunnerAnswer:
    """Return the facts of a program as JSON."""
    return {
        "collectives": collectives,
        "flops": flops,
        "dot_flops": dots,
        "mapped": looked.facts.mapped,
        "operations": looked.operations,
        "program": hashlib.sha256(looked.program.text.encode()).hexdigest(),
    }


def read_program(ask: CallAsk, code: bytes) -> Read:
    """Return the result of ``read``, from a cache if possible."""
    return _read.get(key_of(ask, [], code), lambda: read(ask, code, [*ask["args"], *ask["cotangents"]]))


def read(ask: CallAsk, code: bytes, arguments: Sequence[Argument]) -> Read:
    """Return the canonical form of a program, its facts and its operations."""
    files = set(ask["files"])
    most = MAX_PAPER_ARRAY if "timing" in ask else MAX_ARRAY
    program = canonical(code, ask["mesh"], arguments, files, most)
    module = program.parse()
    found = facts.read(module, ask["mesh"], files)
    graph = operations.read(module, ask["mesh"], files, compared="compared" in ask)
    return Read(program, found, None if graph is None else to_text(graph))


def key_of(about: Mapping[str, Any], inputs: Iterable[Iterable[np.ndarray]], code: bytes) -> str:
    """Return the cache key of an execution: SHA-256 of the request, the program and all inputs."""
    parts = [repr(about).encode(), code]
    for one in inputs:
        parts += [part for v in one for part in (repr((v.dtype.name, v.shape)).encode(), v.tobytes())] + [b"run"]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def outputs_of(compiled: Executable, inputs: list[list[np.ndarray]], steps: Steps) -> Message:
    """Run an executable for ``steps.count`` steps on each list of inputs. Return the results of all steps in order."""
    compiling.on_phase("executing")
    blobs: list[bytes] = []
    outputs = []
    for values in inputs:
        for out in run_steps(compiled, values, steps):
            outputs.append([describe(leaf, compiled.mesh, blobs) for leaf in out])
    one_of: dict[bytes, bytes] = {}  # devices often hold equal shards: keep one copy of each
    return {"outputs": outputs, **compiled.about}, [one_of.setdefault(blob, blob) for blob in blobs]


def run_steps(compiled: Executable, values: Iterable[Any], steps: Steps, *more: Any) -> Iterator[Sequence[Any]]:
    """Run an executable for ``steps.count`` steps, and yield the results of each step. Raises CannotRun.

    Args:
        values: the arguments of the first step, then those arguments of each later step that are not in ``steps.fed``.
        more: further arguments, which are equal in all steps.
    """
    fresh, count = iter(values), len(compiled.shardings) - len(more)
    arguments = list(itertools.islice(fresh, count))
    for step in range(steps.count):
        placed = [_placed(v, s) for v, s in zip([*arguments, *more], compiled.shardings, strict=True)]
        try:
            out = jax.block_until_ready(compiled.call(*placed))
        except Exception as error:  # XLA and its runtime raise many types of errors
            raise CannotRun(reason("XLA cannot run the program", error)) from error
        yield out
        if step + 1 < steps.count:
            arguments = [out[steps.fed[i]] if i in steps.fed else next(fresh) for i in range(count)]


def _placed(value: Any, sharding: NamedSharding) -> Any:
    """Put an argument on the devices. If there are several processes, each process places its own devices' shards."""
    if sharding.is_fully_addressable or isinstance(value, jax.Array):
        return jax.device_put(value, sharding)
    return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def runs() -> bool:
    """Return whether a test program, a sum over all devices, gives the right result in this process.

    A failure shows that the process itself cannot run programs, so the learner's program is not at fault.
    """
    mesh = make_mesh({"x": jax.device_count()})
    placed = jax.device_put(np.ones(mesh.size, np.float32), NamedSharding(mesh, PartitionSpec("x")))
    total = jax.jit(
        jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec())
    )
    return bool(np.asarray(total(placed))[0] == mesh.size)


def look() -> dict[str, Any]:
    """Return the platform, kind and number of all connected devices, or the reason (``problem``) why there are none."""
    try:
        found = jax.devices()
    except Exception as error:  # the error's type depends on what the platform lacks
        platforms = jax.config.jax_platforms  # type: ignore[attr-defined]
        return {"problem": one_line(error) or f"this JAX does not know the platform {platforms}"}
    return {"platform": found[0].platform, "kind": found[0].device_kind, "count": len(found)}


def join(address: str, processes: int, number: int) -> None:
    """Connect this process to other processes, so that a mesh can have the devices of all processes."""
    if jax.config.jax_platforms == CPU:  # type: ignore[attr-defined]
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(address, processes, number)


def describe(leaf: Any, mesh: Any, blobs: list[bytes]) -> ResultArray:
    """Return a result's shape, dtype and slice on each device of this process. Append the slices' data to ``blobs``."""
    held = sum(shard.data.nbytes for shard in leaf.addressable_shards)
    if held + sum(map(len, blobs)) > MAX_OUTPUT:
        raise ProgramRefused("the results of all devices and runs together are larger than 64 MiB")
    shards = {s.device: s for s in leaf.addressable_shards}
    places = []
    for device in mesh.local_devices:
        shard = shards.get(device)
        if shard is None:
            raise ProgramRefused("some devices of the mesh hold no part of the result")
        try:
            index = shard.index
        except (NotImplementedError, ValueError) as error:  # JAX gives no slices for unreduced arrays
            raise ProgramRefused(
                "the devices do not hold slices of the result: is a sum over the devices missing?"
            ) from error
        places.append([list(s.indices(n)[:2]) for s, n in zip(index, leaf.shape, strict=True)])
        blobs.append(pack_array(np.asarray(shard.data))[1])
    return {"shape": list(leaf.shape), "dtype": leaf.dtype.name, "slices": places}


def unpack_inputs(header: RunRequest, blobs: list[bytes]) -> list[list[np.ndarray]]:
    """Return one list of arrays per set of inputs, from the bytes that ``Worker.run_program`` packed."""
    rest = iter(blobs)
    return [[unpack_array(about, next(rest)) for about in one] for one in header["inputs"]]
