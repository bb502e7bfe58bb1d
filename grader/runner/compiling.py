"""Compile programs that the grader allows (see ``admission``) for the devices of this process."""

from __future__ import annotations

import dataclasses
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Any, Generic, TypeVar

import jax
from jax.sharding import NamedSharding
from jaxlib.mlir import ir

from grader.runner import facts, hlo, ragged
from grader.runner.admission import ProgramRefused, walk
from grader.runner.program import Program
from grader.wire.frames import decode, dtype_of
from grader.wire.limits import MAX_MEMORY
from grader.wire.messages import Argument, RunnerAnswer
from grader.wire.text import one_line, without_marks

MAX_STAND_INS = 64
CPU = "cpu"  # JAX's name for the platform of simulated devices.
# Compiled code runs a few times on small inputs, so optimizing the code costs more time than it saves. These options
# change neither collectives nor memory, which XLA decides before it generates code.
QUICKLY: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    # If True, compiling is slow until JAX 0.11, because MLIR compiles each fusion in a context of its own.
    "xla_cpu_use_fusion_emitters": False,
    # With more than one part, compiling is slower, because LLVM runs once for each part.
    "xla_cpu_parallel_codegen_split_count": 1,
    # If not empty, XLA uses the YNN library, which takes time at the first run of each sum and matmul on each device.
    "xla_cpu_experimental_ynn_fusion_type": "",
}
MATMULS = {"stablehlo.dot_general", "stablehlo.convolution"}  # accelerators may round the operands of these operations
HIGHEST = "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
NOT_KNOWN = re.compile(r"No such compile option: '(\w+)'")
T = TypeVar("T")


def on_phase(phase: str) -> None:
    """Do nothing. A worker process replaces this function to report that a phase begins, such as "compiling"."""


class CannotRun(Exception):
    """XLA cannot compile or run a program that the grader allows. The message is for the learner."""


@dataclasses.dataclass(frozen=True)
class Executable:
    """A compiled program for a mesh. ``about``: the facts of the compiled program, for the answer to the grader."""

    call: Any
    mesh: Any
    shardings: list[NamedSharding]
    about: RunnerAnswer


class LRUCache(Generic[T]):
    """A cache that evicts the least recently used values.

    Args:
        most: the largest total size of the cached values.
        size: a function that returns the size of one value.
    """

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        self.most, self.size, self.held = most, size, 0
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached value of a key, or call ``make`` and cache its value."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        value = self._values[key] = make()
        self.held += self.size(value)
        while self.held > self.most:
            self.held -= self.size(self._values.popitem(last=False)[1])
        return value


_stand_ins: LRUCache[Any] = LRUCache(MAX_STAND_INS, lambda _: 1)


def compiled_on(mesh: Any, program: Program, arguments: Sequence[Argument], found: facts.Facts) -> Executable:
    """Compile a program for simulated devices, and find the collectives that the compiler adds.

    Args:
        program: the program in canonical form.
        found: the program's facts before compilation. If they lack the FLOPs, the result's ``about`` has the FLOPs of
            the compiled program.
    """
    sizes = dict(mesh.shape)
    shardings = [NamedSharding(mesh, decode(a["spec"])) for a in arguments]
    # The program states its types and shardings, so settings of this process must not change them.
    with jax.enable_x64(True), jax.set_mesh(None):  # type: ignore[arg-type]
        module = program.module()
        marked = facts.read(module, sizes, set()).marked if ragged.spell_out(module) else found.marked
        facts.mark(module)
        compiled = compiled_for(program, module, arguments, shardings, quickly)
    memory = checked_memory(compiled, mesh.size)
    text = compiled.as_text() or ""
    added = [dataclasses.asdict(c) for c in hlo.added_by_compiler(text, sizes, marked)]
    about: RunnerAnswer = {"memory": memory, "added": added}
    if found.flops is None or found.dot_flops is None:
        cost = hlo.compiled_cost(text)
        about |= {"compiled_flops": dataclasses.asdict(cost.flops), "compiled_dots": dataclasses.asdict(cost.dots)}
    return Executable(compiled, mesh, shardings, about)


def compiled_elsewhere(mesh: Any, program: Program, arguments: Sequence[Argument], exact: bool) -> Executable:
    """Compile a program for accelerators or for devices of several processes, with XLA's default options.

    Args:
        program: the program in canonical form.
        exact: True to compute every matmul in float32.
    """
    shardings = [NamedSharding(mesh, decode(a["spec"])) for a in arguments]
    with jax.enable_x64(True), jax.set_mesh(None):  # type: ignore[arg-type]
        module = program.module()
        if jax.default_backend() == CPU:  # the CPU backend does not support a ragged all-to-all
            ragged.spell_out(module)
        matmuls = [op for op in walk(module.operation) if op.name in MATMULS]
        if exact:
            with module.context:
                for op in matmuls:
                    op.attributes["precision_config"] = ir.Attribute.parse(HIGHEST)
        compiled = compiled_for(program, module, arguments, shardings, lambda lowered: lowered.compile())
    if jax.default_backend() == CPU:  # a CPU, unlike other devices, does not report a lack of memory itself
        checked_memory(compiled, mesh.size)
    return Executable(compiled, mesh, shardings, {"matmuls": bool(matmuls)})


def compiled_for(
    program: Program,
    module: Any,
    arguments: Sequence[Argument],
    shardings: list[NamedSharding],
    compile_: Callable[[Any], Any],
) -> Any:
    """Compile ``module``, which is ``program`` or a changed copy of ``program``. Raises CannotRun."""
    lowered = standing_in(module, program, arguments, shardings)
    on_phase("compiling")
    try:
        return compile_(lowered)
    except Exception as error:  # each pass of XLA raises its own type of error
        raise CannotRun(reason("XLA cannot compile the program", error)) from error


def quickly(lowered: Any) -> Any:
    """Compile with the options ``QUICKLY``, except those that the installed version of XLA does not know."""
    while True:
        try:
            return lowered.compile(compiler_options=QUICKLY)
        except jax.errors.JaxRuntimeError as error:
            unknown = NOT_KNOWN.search(str(error))
            if unknown is None or QUICKLY.pop(unknown[1], None) is None:
                raise


def standing_in(module: Any, program: Program, arguments: Sequence[Argument], shardings: list[NamedSharding]) -> Any:
    """Return ``module`` in the form of a result of ``jax.jit(...).lower(...)``, which JAX can compile."""
    key = repr((arguments, program.results)), *shardings
    lowered = copy(_stand_ins.get(key, lambda: lowered_stand_in(program, arguments, shardings)))
    lowered._lowering = copy(lowered._lowering)
    lowered._lowering._hlo = module
    return lowered


def lowered_stand_in(program: Program, arguments: Sequence[Argument], shardings: list[NamedSharding]) -> Any:
    """Lower a placeholder with the program's shapes, dtypes and shardings, and delete the placeholder's MLIR module."""

    def same_results(*_: Any) -> tuple:
        return tuple(jax.numpy.zeros(shape, dtype_of(dtype)) for shape, dtype in program.results)

    shapes = [jax.ShapeDtypeStruct(tuple(a["shape"]), dtype_of(a["dtype"])) for a in arguments]
    lowered: Any = jax.jit(same_results, keep_unused=True, in_shardings=tuple(shardings)).lower(*shapes)
    lowered._lowering._hlo = None
    return lowered


def checked_memory(compiled: Any, devices: int) -> int:
    """Return the bytes of temporaries on one device.

    Raises ProgramRefused if arguments, results and temporaries of all devices together exceed MAX_MEMORY.
    """
    memory = compiled.memory_analysis()
    if memory is None:
        return 0
    each = memory.temp_size_in_bytes + memory.output_size_in_bytes + memory.argument_size_in_bytes
    if each * devices > MAX_MEMORY:
        needs = f"{each * devices / 2**20:,.0f} MiB over all devices"
        raise ProgramRefused(f"the program needs {needs}; {MAX_MEMORY >> 20} MiB are the limit")
    return int(memory.temp_size_in_bytes)


def reason(what: str, error: Exception) -> str:
    return f"{what}: {type(error).__name__}: {without_marks(one_line(error))[:300]}"
