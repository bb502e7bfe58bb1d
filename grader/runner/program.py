"""The canonical form of a program: the grader reads a learner's bytecode once, cleans it, and prints it as text.

The bytecode is MLIR from a process that ran learner code, so nothing in it is trusted. Allow-lists decide which
operations, custom calls, types and attributes a program may have, and its sizes are limited. Arguments get the
shardings of the grader's request. Functions, meshes and the channels of collectives get new names and numbers, so that
equal programs have equal texts. Only source locations in the learner's files are kept. The rest of the grader hashes,
reads and compiles only the printed text.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jax.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo  # noqa: F401  the imports register MLIR's operations

from grader.common.layout import show_device
from grader.runner import ragged
from grader.runner.admission import (
    CUSTOM,
    ProgramRefused,
    admitted,
    callee_of,
    check_functions,
    is_transposed,
    kind_of,
    names_of,
    place_of,
    shaped,
    walk,
)
from grader.wire.limits import MAX_ARRAY, MAX_PROGRAM, MAX_PROGRAM_TEXT, MAX_RESULTS

MAGIC = b"ML\xefR"
# An attribute is an annotation if its name has a dot after the name of a dialect. Of all annotations, the compiler uses
# only these.
NOTES = {"sdy.sharding"}
# Attributes that MLIR's operation classes define, although the attributes have no effect.
IDLE = {"backend_config", "composite_attributes", "version"}
# The name that all StableHLO composites get. If a composite had a name that XLA knows, such as "chlo.erf", XLA would
# ignore the composite's body.
COMPOSITE = "a.composite"
OWN = "mesh"  # the canonical form's name for the mesh that the grader requested
FUNCTION = {"sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs"}


@dataclass(frozen=True)
class Program:
    """A program in canonical form.

    Attributes:
        text: StableHLO and Shardy without source locations.
        places: for every operation of ``text``, its file and line in the learner's source, or None.
        transposed: for every operation, whether it is a collective that JAX made by transposing another collective.
        results: shape and dtype of every result.
    """

    text: str
    places: tuple[tuple[str, int] | None, ...]
    transposed: tuple[bool, ...]
    results: tuple[tuple[tuple[int, ...], str], ...]

    def module(self) -> Any:
        """Return a new module, without source locations."""
        return ir.Module.parse(self.text, _context())

    def parse(self) -> Any:
        """Return a new module with the learner's source locations, which also mark the transposed collectives."""
        module = self.module()
        with module.context:
            for op, place, made in zip(walk(module.operation), self.places, self.transposed, strict=True):
                at = ir.Location.unknown() if place is None else ir.Location.file(*place, 0)
                op.location = ir.Location.name("transpose()", childLoc=at) if made else at
        return module


def canonical(
    code: bytes, mesh: Mapping[str, int], arguments: Sequence[Mapping[str, Any]], files: set[str], most: int = MAX_ARRAY
) -> Program:
    """Check a program, and return its canonical form.

    Args:
        code: MLIR bytecode from the learner's process.
        mesh: axis sizes of the mesh in the grader's request, in order.
        arguments: ``{"shape", "dtype", "spec"}`` of each argument in the grader's request. The ``spec`` is a
            PartitionSpec as JSON (``frames.encode``).
        files: names of the learner's files and cells. Source locations in all other files are dropped.
        most: the largest number of bytes that an array may have.

    Raises:
        ProgramRefused: the program has a part that is not allowed, is too large, or has other arguments or meshes than
            the request.
    """
    if len(code) > MAX_PROGRAM:
        raise ProgramRefused(f"the program takes {len(code):,} bytes; {MAX_PROGRAM:,} are the limit")
    if not code.startswith(MAGIC):
        raise ProgramRefused("the program cannot be read")
    try:
        return _canonical(code, mesh, arguments, files, most)
    except ProgramRefused:
        raise
    except Exception as error:  # MLIR raises many types of errors for bytes that JAX did not write
        raise ProgramRefused("the program cannot be read") from error


def _canonical(
    code: bytes, mesh: Mapping[str, int], arguments: Sequence[Mapping[str, Any]], files: set[str], most: int
) -> Program:
    context = _context()
    with context, ir.Location.unknown(context):
        context.emit_error_diagnostics = True  # else MLIR converts errors to str, and fails for invalid UTF-8
        module = ir.Module.parse(code, context)
        context.emit_error_diagnostics = False
        operations = list(admitted(module.operation, files, most))
        check_functions(module)
        meshes = _meshes(module, mesh)
        for op in operations:
            ragged.clean(op, math.prod(mesh.values()), files) if op.name == CUSTOM else _clean(op, mesh)
        _rename(module, meshes, operations)
        main = _signature(module, mesh, arguments)
        module.operation.verify()
        text: Any = module.operation.get_asm(enable_debug_info=False)
        if len(text) > MAX_PROGRAM_TEXT:
            raise ProgramRefused(f"the program is {len(text):,} characters long; {MAX_PROGRAM_TEXT:,} are the limit")
        places = tuple(place_of(op.location, files) for op in operations)
        return Program(text, places, _transposed(operations), _results(main))


_contexts: list[tuple[Any, int]] = []
REUSES = 20


def _context() -> Any:
    """Return an MLIR context. Several programs share a context, because creating a context is slow.

    Each use makes the context larger, so a new context replaces it after REUSES uses.
    """
    context, used = _contexts.pop() if _contexts else (mlir.make_ir_context(), 0)
    if used < REUSES:
        _contexts.append((context, used + 1))
    return context


def _meshes(module: Any, mesh: Mapping[str, int]) -> list[tuple[Any, str]]:
    """Return the program's meshes, each with a new name.

    Raises ProgramRefused if the program lacks the mesh of the grader's request, or has another mesh that is not empty.
    """
    found: dict[str, list[Any]] = {OWN: [], "empty_mesh": []}
    for op in (o.operation for o in module.body.operations):
        if op.name != "sdy.mesh":
            continue
        about = sdy.MeshAttr(op.attributes["mesh"])
        sizes = {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, about.axes)}
        ours = list(sizes.items()) == list(mesh.items())
        usual = ([], list(range(math.prod(mesh.values())))) if ours else ([],)
        if (sizes and not ours) or list(about.device_ids) not in usual:
            raise ProgramRefused(
                f"uses a mesh {show_device(sizes)} of its own; use the mesh that the task gets, {show_device(mesh)}"
            )
        found[OWN if ours else "empty_mesh"].append(op)
    if not found[OWN]:
        raise ProgramRefused("the program does not refer to the mesh that the task gets")
    return [(op, f"{name}_{n}" if n else name) for name, ops in found.items() for n, op in enumerate(ops)]


# -- the canonical form ------------------------------------------------------------------------


def _clean(op: Any, mesh: Mapping[str, int]) -> None:
    """Drop an operation's attributes, except annotations in NOTES and attributes that decide its result."""
    defining = FUNCTION if op.name == "func.func" else _defining(op.name, type(op.opview))
    for name in names_of(op):
        if op.name == "builtin.module" or name in IDLE or name not in (NOTES if "." in name else defining):
            del op.attributes[name]
            continue
        text = _written(op, name)
        if "mesh<" in text and op.name != "sdy.mesh":  # the sharding defines a mesh instead of naming one
            raise ProgramRefused("uses a mesh of its own; use the mesh that the task gets")
        if "dense_resource<" in text:  # the program's text would lack the constant's values
            raise ProgramRefused(
                "the program stores a constant's values in a separate resource (dense_resource), which is not allowed"
            )
    if op.name == "stablehlo.composite":
        op.attributes["name"] = ir.StringAttr.get(COMPOSITE)
    if op.name == "func.func":
        for name in ("arg_attrs", "res_attrs"):
            _keep_shardings(op, name)
    elif op.name == "sdy.mesh":
        _describe_mesh(op, mesh)


def _written(op: Any, name: str) -> str:
    """Return an attribute as text, or the whole operation if MLIR's Python API cannot read the attribute."""
    try:
        return str(op.attributes[name])
    except TypeError:
        return op.get_asm(enable_debug_info=False)


@cache
def _defining(name: str, view: type) -> set[str]:
    """Return the attributes that decide an operation's result: all properties of ``view`` that ``ir.OpView`` lacks."""
    return {n for n in dir(view) if n not in dir(ir.OpView)} | ({"name"} if name == "stablehlo.composite" else set())


def _describe_mesh(op: Any, mesh: Mapping[str, int]) -> None:
    """Add a StableHLO attribute with the mesh to ``op``, a ``sdy.mesh``.

    Since JAX 0.12, collectives refer to this attribute.
    """
    if sdy.MeshAttr(op.attributes["mesh"]).axes:
        axes = ", ".join(f'{{name = "{axis}", size = {size} : i64}}' for axis, size in mesh.items())
        op.attributes["stablehlo.mesh"] = ir.Attribute.parse(f"{{axes = [{axes}]}}")


def _keep_shardings(function: Any, name: str) -> None:
    if name in function.attributes:
        kept = [
            {"sdy.sharding": about["sdy.sharding"]} if "sdy.sharding" in about else {}
            for about in map(ir.DictAttr, ir.ArrayAttr(function.attributes[name]))
        ]
        function.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(about) for about in kept])


def _signature(module: Any, mesh: Mapping[str, int], arguments: Sequence[Mapping[str, Any]]) -> Any:
    """Give the arguments of main the shardings of the grader's request, and return main.

    Raises ProgramRefused if the shapes or dtypes of the arguments differ from the request.
    """
    module.operation.attributes["sym_name"] = ir.StringAttr.get("program")
    i32 = ir.IntegerType.get_signless(32)
    module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, math.prod(mesh.values()))
    module.operation.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, 1)
    main = next(o.operation for o in module.body.operations if _is_main(o.operation))
    asked = [(tuple(a["shape"]), a["dtype"]) for a in arguments]
    takes = [shaped(t) for t in ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs]
    if takes != asked:
        more = len(takes) > len(asked)
        hint = "; does a function use an array from outside? Pass it as an argument" if more else ""
        raise ProgramRefused(f"the program takes {takes}, expected {asked}{hint}")
    attributes = []
    for about in arguments:
        cuts = [_cut(entry) for entry in about["spec"]["spec"]]
        cuts += [()] * (len(about["shape"]) - len(cuts))
        dims = ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + "}" for axes in cuts)
        attributes.append(ir.Attribute.parse(f"{{sdy.sharding = #sdy.sharding<@{OWN}, [{dims}]>}}"))
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    return main


def _is_main(op: Any) -> bool:
    return op.name == "func.func" and op.attributes["sym_name"].value == "main"


def _cut(entry: Any) -> tuple[str, ...]:
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry["tuple"])


def _rename(module: Any, meshes: Sequence[tuple[Any, str]], operations: Sequence[Any]) -> None:
    """Rename functions and meshes, and renumber channels, so that equal programs have equal texts."""
    functions = [o.operation for o in module.body.operations if o.operation.name == "func.func"]
    named = [(op, f"f{number}") for number, op in enumerate(functions) if not _is_main(op)] + list(meshes)
    for aside in ("_", ""):  # rename twice, so that no new name is also an old name of another function or mesh
        for op, name in named:
            old, new = op.attributes["sym_name"].value, aside + name
            if old != name:
                ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
                ir.SymbolTable.set_symbol_name(op, new)
    for number, op in enumerate((o for o in operations if kind_of(o) and "channel_handle" in o.attributes), 1):
        op.attributes["channel_handle"] = stablehlo.ChannelHandle.get(number, 1)


def _results(main: Any) -> tuple[tuple[tuple[int, ...], str], ...]:
    results = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).results
    if len(results) > MAX_RESULTS:
        raise ProgramRefused(f"the program has more than {MAX_RESULTS} results")
    return tuple(shaped(t) for t in results)


# -- transposed collectives ------------------------------------------------------------------------


def _transposed(operations: Sequence[Any]) -> tuple[bool, ...]:
    """Return for every operation whether it is a collective that JAX made by transposing another collective.

    JAX writes "transpose" into one of three source locations: the location of the collective, of an operation around it
    (such as a loop), or of a call of the function around it.
    """
    calls: dict[str, list[str]] = defaultdict(list)  # function -> the functions that it calls
    found: set[str] = set()
    for op in operations:
        if (callee := callee_of(op)) is not None:
            function, made = _around(op)
            calls[function].append(callee)
            found |= {callee} if made else set()
    waiting = list(found)
    while waiting:
        inner = set(calls[waiting.pop()]) - found
        found |= inner
        waiting += inner
    return tuple(kind_of(op) is not None and _is_made(op, found) for op in operations)


def _is_made(op: Any, functions: set[str]) -> bool:
    function, made = _around(op)
    return made or function in functions


def _around(op: Any) -> tuple[str, bool]:
    """Return the name of the function around ``op``, and whether JAX made ``op`` by transposing."""
    made = False
    while op.name != "func.func":
        made = made or is_transposed(op.location)
        op = op.parent
    return op.attributes["sym_name"].value, made
