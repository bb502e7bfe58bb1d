"""Find out how far a program's results depend on an operation: replace the operation's result and run again.

This module changes a copy of the program. In the copy, each operation of one kind (collectives or matmuls) has a
number, in the order of ``wire.operations``. The ``main`` of the copy has two additional arguments: the number of the
operation that returns replacement values, and a *salt*, which selects these values (see ``others``). So the copy is
compiled only once, and each run tests one operation. An operation in a loop returns replacement values in every round.
If a function is called several times, its operations have different numbers in each call.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from grader.common.dependency import COLLECTIVES, LARGEST_BOUND
from grader.runner import compiling, execution, others, ragged
from grader.runner.admission import callee_of, kind_of, names_of, shaped
from grader.runner.execution import Steps, run_steps, with_faults
from grader.runner.program import OWN, Program
from grader.wire.frames import decode, is_inexact, wide
from grader.wire.meshes import make_mesh
from grader.wire.messages import Argument, CallAsk, RunnerAnswer
from grader.wire.operations import MATMULS

BRANCHES = {"stablehlo.while", "stablehlo.case", "stablehlo.if"}
# Blocks in these operations cannot use values from outside.
SHUT_OFF = {"sdy.manual_computation", "sdy.named_computation"}
# The most sets of replacement values that are tried for one operation. Once a result changes by more than LARGEST_BOUND
# times its largest magnitude, further sets are not tried.
SALTS = 3
NO_DEVICE = -1
SCALAR: Argument = {"name": "", "shape": [], "dtype": "int32", "spec": {"spec": []}}


@with_faults
def moved(
    ask: CallAsk, code: bytes, inputs: list[list[np.ndarray]], what: str, numbers: Sequence[int]
) -> execution.Message:
    """Return how much the results on the first set of inputs change if one operation returns replacement values.

    Args:
        ask, code, inputs: the grader's request, the program and its inputs, as for ``execution.execute``.
        what: the kind of operation: COLLECTIVES or MATMULS, of ``common.dependency``.
        numbers: the numbers of the operations to change, one at a time.

    Returns:
        A reply with two fields. ``largest``: for each result of each step, the largest finite magnitude. ``moved``: for
        each changed operation, the largest change of each result of each step. If the changed program cannot be
        compiled or run, the reply has only ``fault``.
    """
    arguments = [*ask["args"], *ask["cotangents"]]
    program = execution.read_program(ask, code).program
    steps = Steps.of(ask)
    steps.check(program, arguments)
    key = execution.key_of(ask | {"steps": steps, "poison": what}, [], program.text.encode())
    made = execution._compiled.get(key, lambda: compiled(ask["mesh"], program, arguments, what))
    return _distances(made, inputs[0], steps, numbers), []


def _distances(compiled: compiling.Executable, values: list[Any], steps: Steps, numbers: Sequence[int]) -> RunnerAnswer:
    compiling.on_phase("executing")
    # Put the first step's arguments on the devices only once, because all runs use them.
    first = len(compiled.shardings) - 2
    placed = map(jax.device_put, values[:first], compiled.shardings[:first])
    values = [*placed, *values[first:]]
    own = _run(compiled, values, steps, NO_DEVICE, 0)
    largest = [max((_largest(shard) for shard in result), default=0.0) for result in own]
    found = []
    for number in numbers:
        compiling.on_phase(f"poisoning {number}")
        far = [0.0] * len(own)
        for salt in range(SALTS):
            try:
                now = _run(compiled, values, steps, number, salt)
            except compiling.CannotRun:
                # Only the replacement values can have caused the error, so the operation matters.
                far = [sys.float_info.max] * len(own)
                break
            each = [max(map(_distance, *pair), default=0.0) for pair in zip(own, now, strict=True)]
            far = [max(pair) for pair in zip(far, each, strict=True)]
            if any(f > LARGEST_BOUND * n for f, n in zip(far, largest, strict=True)):
                break
        found.append(far)
    return {"largest": largest, "moved": found}


def _run(
    compiled: compiling.Executable, values: list[Any], steps: Steps, number: int, salt: int
) -> list[list[np.ndarray]]:
    """Run the program with the salt's replacement values in operation ``number``. Return the shards of each result."""
    results = (leaf for out in run_steps(compiled, values, steps, np.int32(number), np.int32(salt)) for leaf in out)
    return [[np.asarray(shard.data) for shard in leaf.addressable_shards] for leaf in results]


def _largest(array: np.ndarray) -> float:
    size = np.abs(wide(array))
    return float(np.max(size, initial=0.0, where=np.isfinite(size)))


def _distance(own: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference between corresponding elements of two arrays; NaN equals NaN.

    Return ``sys.float_info.max`` if integers or booleans differ, or if one of two differing floats is infinite or NaN.
    """
    if not is_inexact(own.dtype):
        return 0.0 if np.array_equal(own, other) else sys.float_info.max
    one, two = wide(own), wide(other)
    with np.errstate(all="ignore"):
        apart = np.where((one == two) | (np.isnan(one) & np.isnan(two)), 0.0, np.abs(one - two))
    return float(np.max(np.nan_to_num(apart, nan=sys.float_info.max, posinf=sys.float_info.max), initial=0.0))


def compiled(mesh: dict[str, int], program: Program, arguments: Sequence[Argument], what: str) -> compiling.Executable:
    """Compile a copy of a program with two more arguments: the number of the operation to change, and the salt."""
    devices = make_mesh(mesh)
    more = [*arguments, SCALAR, SCALAR]
    shardings = [NamedSharding(devices, decode(a["spec"])) for a in more]
    with jax.enable_x64(True), jax.set_mesh(None):  # type: ignore[arg-type]
        module = program.module()
        try:
            PoisonedModule(module, mesh, what)
        except Exception as error:  # MLIR raises many types of errors for programs that JAX did not write
            raise compiling.CannotRun(
                compiling.reason("the program cannot be changed to test which operations matter", error)
            ) from error
        ragged.spell_out(module)
        call = compiling.compiled_for(program, module, more, shardings, compiling.quickly)
    compiling.checked_memory(call, devices.size)
    return compiling.Executable(call, devices, shardings, {})


@dataclass
class Salt:
    """The random numbers that replace results in one block of operations.

    Attributes:
        value: a number that selects the random numbers.
        noise: arrays of random numbers, by shape.
    """

    value: Any
    noise: dict[tuple[int, ...], Sequence[Any]] = field(default_factory=dict)


class PoisonedModule:
    """A canonical program's module, changed in place.

    The main function gets two additional integer arguments. Every other function and ``shard_map`` body that has
    operations of the kind ``what`` also gets these two arguments. The first argument is the number of the operation to
    change, counted from the function's first operation of the kind. The second argument is a *salt*, a number that
    selects the replacement values. A ``shard_map`` body also gets the device's position, which changes the salt. So
    devices have different noise.
    """

    def __init__(self, module: Any, mesh: dict[str, int], what: str) -> None:
        self.module, self.mesh, self.what = module, mesh, what
        functions = [o.operation for o in module.body.operations if o.operation.name == "func.func"]
        self.functions = {f.attributes["sym_name"].value: f for f in functions}
        self.sizes: dict[str, int] = {}
        self.added: dict[str, str] = {}
        with module.context, ir.Location.unknown():
            self.integer = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
            for name, function in list(self.functions.items()):
                if name == "main" or self.size_of(name):
                    self.function(function)
            module.operation.verify()

    # counting operations

    def is_one(self, op: Any) -> bool:
        return bool(kind_of(op)) if self.what == COLLECTIVES else op.name.partition(".")[2] in MATMULS

    def size_of(self, name: str) -> int:
        """Return how many operations of the kind ``what`` a function has, with all calls inlined."""
        if name not in self.sizes:
            self.sizes[name] = self.size(self.functions[name])
        return self.sizes[name]

    def size(self, op: Any) -> int:
        """Return how many operations of the kind ``what`` are in the blocks of an operation."""
        found = 0
        for inner in (o.operation for region in op.regions for block in region for o in block):
            if self.is_one(inner):
                found += 1
            elif (callee := callee_of(inner)) is not None:
                found += self.size_of(callee)
            elif inner.name in BRANCHES | SHUT_OFF:
                found += self.size(inner)
        return found

    # changing operations

    def function(self, function: Any) -> None:
        block = function.regions[0].blocks[0]
        wanted, salt = (block.add_argument(self.integer, ir.Location.unknown()) for _ in range(2))
        kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        kind = ir.FunctionType.get([*kind.inputs, self.integer, self.integer], kind.results)
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        if "arg_attrs" in function.attributes:
            about = [*ir.ArrayAttr(function.attributes["arg_attrs"]), ir.DictAttr.get({}), ir.DictAttr.get({})]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(about)
        self.block(block, wanted, Salt(salt), 0)

    def block(self, block: Any, wanted: Any, salt: Salt, number: int) -> int:
        """Change the operations of the kind ``what`` in a block, and number them from ``number``.

        Return the number after the block's last number. ``wanted``: the MLIR value with the number of the operation to
        change.
        """
        for op in [o.operation for o in block]:
            if self.is_one(op):
                self.poison(op, wanted, salt, number)
                number += 1
            elif (callee := callee_of(op)) is not None:
                if size := self.size_of(callee):
                    with ir.InsertionPoint(op):
                        left = self.made("stablehlo.subtract", [wanted, self.constant(number)], [self.integer])
                    self.written_anew(op, [left, salt.value])
                    number += size
            elif op.name in BRANCHES:
                for region in op.regions:
                    number = self.block(region.blocks[0], wanted, salt, number)
            elif op.name in SHUT_OFF and self.size(op):
                number = self.shut_off(op, wanted, salt, number)
        return number

    def shut_off(self, op: Any, wanted: Any, salt: Salt, number: int) -> int:
        """Change the operations in the block of ``op``, a ``shard_map`` or a ``sdy.named_computation``.

        The block cannot use values from outside, so ``wanted`` and the salt become additional operands of ``op``.
        """
        mapped = op.name == "sdy.manual_computation"
        manual: set[str] = set(sdy.ManualAxesAttr(op.attributes["manual_axes"])) if mapped else set()  # type: ignore
        axes = [a for a in self.mesh if a in manual]
        who = [salt.value]
        if axes:
            devices = math.prod(self.mesh[a] for a in axes)
            kind = ir.RankedTensorType.get([devices], self.integer.element_type)
            i64 = ir.IntegerType.get_signless(64)
            with ir.InsertionPoint(op):
                places = self.made("stablehlo.iota", [], [kind], {"iota_dimension": ir.IntegerAttr.get(i64, 0)})
            who.append(places)
        names = ", ".join(f'"{a}"' for a in axes)
        cuts = ["[]", "[]", f"[{{{names}}}]"][: 1 + len(who)]
        op = self.written_anew(op, [wanted, *who], [f"#sdy.sharding<@{OWN}, {cut}>" for cut in cuts])
        block = op.regions[0].blocks[0]
        inner, own = (block.add_argument(self.integer, ir.Location.unknown()) for _ in range(2))
        if axes:
            one = ir.RankedTensorType.get([1], self.integer.element_type)
            place = block.add_argument(one, ir.Location.unknown())
            with ir.InsertionPoint.at_block_begin(block):
                place = self.made("stablehlo.reshape", [place], [self.integer])
                place = self.made("stablehlo.add", [place, self.constant(1)], [self.integer])
                far = self.made("stablehlo.multiply", [own, self.constant(4099)], [self.integer])
                own = self.made("stablehlo.add", [far, place], [self.integer])
        return self.block(block, inner, Salt(own), number)

    def written_anew(self, op: Any, more: list[Any], shardings: Sequence[str] = ()) -> Any:
        """Replace an operation by a copy that has the additional operands ``more``. Return the copy."""
        attributes = {name: op.attributes[name] for name in names_of(op)}
        if "in_shardings" in attributes:
            per_value = sdy.TensorShardingPerValueAttr(attributes["in_shardings"])  # type: ignore[call-overload]
            before = list(per_value.shardings)
            every = [*before, *(ir.Attribute.parse(s) for s in shardings)]
            attributes["in_shardings"] = sdy.TensorShardingPerValueAttr.get(every)
        with ir.InsertionPoint(op):
            made = ir.Operation.create(
                op.name, [r.type for r in op.results], [*op.operands, *more], attributes, regions=len(op.regions)
            )
        for old, new in zip(op.regions, made.regions, strict=True):
            for block in list(old):
                block.append_to(new)
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
        return made

    def poison(self, op: Any, wanted: Any, salt: Salt, number: int) -> None:
        for result in op.results:
            drawn = self.noise(salt, shaped(result.type)[0])
            with ir.InsertionPoint.after(op):
                at = self.constant(number)
            with ir.InsertionPoint.after(at.owner):
                name = self.function_of(others.lowered(*shaped(result.type)))
                call = self.call(name, [result, wanted, at, *drawn], [result.type])
            result.replace_all_uses_except(call.results[0], call)

    def noise(self, salt: Salt, shape: tuple[int, ...]) -> Sequence[Any]:
        """Return arrays of noise of this shape. All operations of a block share the arrays."""
        if shape not in salt.noise:
            kind = ir.RankedTensorType.get(shape, ir.IntegerType.get_unsigned(32))
            name = self.function_of(others.lowered_noise(shape))
            maker: Any = salt.value.owner  # the block that has the salt as an argument, or the operation that makes it
            is_block = isinstance(maker, ir.Block)
            with ir.InsertionPoint.at_block_begin(maker) if is_block else ir.InsertionPoint.after(maker):
                salt.noise[shape] = self.call(name, [salt.value], [kind] * others.STREAMS).results
        return salt.noise[shape]

    def call(self, name: str, operands: list[Any], types: list[Any]) -> Any:
        return ir.Operation.create("func.call", types, operands, {"callee": ir.FlatSymbolRefAttr.get(name)})

    def function_of(self, text: str) -> str:
        """Copy the function in the StableHLO text ``text`` into this module, once. Return the copy's name."""
        if text not in self.added:
            self.added[text] = f"poison_{len(self.added)}"
            ragged.add_function(self.module, text, self.added[text])
        return self.added[text]

    def constant(self, number: int) -> Any:
        value = ir.Attribute.parse(f"dense<{number}> : tensor<i32>")
        return self.made("stablehlo.constant", [], [self.integer], {"value": value})

    def made(self, name: str, operands: list[Any], types: list[Any], attributes: dict[str, Any] | None = None) -> Any:
        return ir.Operation.create(name, types, operands, attributes or {}).results[0]
