"""Check a learner's program before the grader compiles it.

A program may have only listed operations and types, and its sizes are limited.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from jax.interpreters import mlir
from jaxlib.mlir import ir

from grader.wire.frames import dtype_of
from grader.wire.limits import MAX_ARRAY, MAX_NESTED, MAX_OPS

CALLBACK = "uses a host callback, which the grader cannot run; remove it"

# Collectives, and their names in facts (``Collective.kind``).
KINDS = {
    "stablehlo.all_reduce": "all_reduce",
    "stablehlo.all_gather": "all_gather",
    "stablehlo.reduce_scatter": "reduce_scatter",
    "stablehlo.all_to_all": "all_to_all",
    "stablehlo.collective_permute": "permute",
    "stablehlo.collective_broadcast": "broadcast",
}
CUSTOM = "stablehlo.custom_call"
RAGGED = "ragged_all_to_all"  # The name of the only admitted custom call, in JAX and in ``Collective.kind``.
# Operations that call a function of the program, and the attribute that names the function.
CALLS = {"func.call": "callee", "stablehlo.composite": "decomposition"}
TRANSPOSE = re.compile(r"(?:^|[/(])transpose\(")
"""Matches the name of an operation that JAX made by transposing, as in ``jvp(f)/transpose(jvp(f))/psum``."""
STABLEHLO = """
abs add and atan2 bitcast_convert broadcast_in_dim case cbrt ceil cholesky clamp compare complex composite concatenate
constant convert convolution cosine count_leading_zeros divide dot dot_general dynamic_slice dynamic_update_slice
exponential exponential_minus_one fft floor gather if imag iota is_finite log log_plus_one logistic maximum minimum
multiply negate not optimization_barrier or pad partition_id popcnt power real reduce reduce_precision reduce_window
remainder replica_id reshape return reverse rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter
select select_and_scatter shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan
tanh transpose triangular_solve while xor
"""
CHLO = """
acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma mulhi
next_after polygamma ragged_dot sinh square tan top_k zeta
"""
OPERATIONS = {
    "builtin.module", "func.func", "func.call", "func.return",
    "sdy.mesh", "sdy.manual_computation", "sdy.named_computation", "sdy.return", "sdy.reshard",
    "sdy.sharding_constraint", "sdy.sharding_group", "sdy.propagation_barrier",
    *KINDS, CUSTOM, *(f"stablehlo.{name}" for name in STABLEHLO.split()), *(f"chlo.{name}" for name in CHLO.split()),
}  # fmt: skip
ELEMENTS = (
    "bool", "int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32",
    "uint64", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "bfloat16", "float16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


class ProgramRefused(Exception):
    """The grader refuses to compile or run a program. The message is for the learner.

    ``line``, ``file``: the place in the learner's source, if known.
    """

    def __init__(self, message: str, place: tuple[str, int] | None = None) -> None:
        super().__init__(message)
        self.file, self.line = place or ("", None)


def walk(op: Any) -> Iterator[Any]:
    """Yield an operation and every operation nested in it, in program order.

    The function uses no recursion, because a learner's program may be nested deeply. Raises ProgramRefused if the
    nesting is deeper than ``MAX_NESTED``.
    """
    stack = [iter([op])]
    while stack:
        try:
            current = next(stack[-1]).operation
        except StopIteration:
            stack.pop()
            continue
        yield current
        if len(stack) > MAX_NESTED:
            raise ProgramRefused(f"the program is nested more than {MAX_NESTED} levels deep")
        if len(regions := current.regions):
            stack.append(inner for region in regions for block in region for inner in block)


def admitted(root: Any, files: set[str], most: int = MAX_ARRAY) -> Iterator[Any]:
    """Check each operation of a module, then yield it.

    Raises ProgramRefused if an operation, a type or a size is not allowed.

    Args:
        files: names of the learner's files. A refusal names the line of the operation in one of these files.
        most: the largest number of bytes of one array.
    """
    for ops, op in enumerate(walk(root), 1):
        if ops > MAX_OPS:
            raise ProgramRefused(f"the program has more than {MAX_OPS:,} operations; use lax.fori_loop or lax.scan")
        if op.name == CUSTOM and kind_of(op) is None:
            raise ProgramRefused(_custom_call(op.attributes["call_target_name"].value), place_of(op.location, files))
        if op.name not in OPERATIONS or (op.name == "builtin.module" and ops > 1):
            raise ProgramRefused(f"the program uses {op.name}, which is not allowed", place_of(op.location, files))
        if len(op.successors) or any(len(region.blocks) > 1 for region in op.regions):
            raise ProgramRefused("the program jumps between blocks, which is not allowed")
        _check_sizes(op, most)
        yield op


def _check_sizes(op: Any, most: int) -> None:
    for value in (*op.results, *(a for r in op.regions for b in r for a in b.arguments)):
        size = array_bytes(value.type)
        if size > most:
            limit = f"{most >> 30:,} GiB is the limit"
            raise ProgramRefused(f"the program makes an array of {size / 2**30:,.1f} GiB; {limit}")


def kind_of(op: Any) -> str | None:
    """Return a collective's kind, such as "all_gather" (see ``Collective.kind``), or None for other operations."""
    if op.name == CUSTOM:
        return RAGGED if op.attributes["call_target_name"].value == RAGGED else None
    return KINDS.get(op.name)


def _custom_call(target: str) -> str:
    if "callback" in target:
        return CALLBACK
    return f"the program calls {target[:100]!r} outside XLA, which is not allowed"


def check_functions(module: Any) -> None:
    """Refuse a module if main is not its only public function, or if a function has no body or is recursive."""
    calls: dict[str, set[str]] = {}
    mains = 0
    for op in (o.operation for o in module.body.operations):
        if op.name == "sdy.mesh":
            continue
        if op.name != "func.func" or not len(op.regions[0].blocks):
            raise ProgramRefused(
                f"the program has a {op.name} at its top level, where only functions with a body are allowed"
            )
        name = op.attributes["sym_name"].value
        public = "sym_visibility" not in op.attributes or op.attributes["sym_visibility"].value == "public"
        mains += public
        if public != (name == "main"):
            raise ProgramRefused("the program does not have exactly one main function")
        calls[name] = {callee for inner in walk(op) if (callee := callee_of(inner)) is not None}
    if mains != 1:
        raise ProgramRefused("the program does not have exactly one main function")
    _check_acyclic(calls)


def _check_acyclic(calls: dict[str, set[str]]) -> None:
    """Raise ProgramRefused if functions call each other in a cycle. ``calls``: function -> functions that it calls."""
    left = dict(calls)
    while left:
        leaves = [name for name, callees in left.items() if not callees & left.keys()]
        if not leaves:
            raise ProgramRefused("the program has functions that call each other in a circle")
        for name in leaves:
            del left[name]


def names_of(op: Any) -> list[str]:
    """Return the names of an operation's attributes."""
    return [a if isinstance(a, str) else a.name for a in op.attributes]


def callee_of(op: Any) -> str | None:
    """Return the name of the function that an operation calls, or None for other operations."""
    return op.attributes[CALLS[op.name]].value if op.name in CALLS else None


# -- types and places --------------------------------------------------------------------------


def array_bytes(kind: Any) -> int:
    """Return the bytes of an array of this type. An element has at least one byte.

    Raises ProgramRefused for the types that ``shaped`` refuses.
    """
    shape, dtype = shaped(kind)
    return math.prod(shape) * dtype_of(dtype).itemsize


def shaped(kind: Any) -> tuple[tuple[int, ...], str]:
    """Return the shape and dtype name of an array type.

    Raises ProgramRefused if the type is no array type, has an unknown dtype, or has a shape that is not fixed.
    """
    try:
        array = ir.RankedTensorType(kind)
    except ValueError:
        if str(kind) == "!stablehlo.token":  # tokens order side effects, such as callbacks
            raise ProgramRefused(CALLBACK) from None
        raise ProgramRefused(f"the program uses values of the type {str(kind)[:60]}, which is not allowed") from None
    if not array.has_static_shape or array.encoding is not None:
        raise ProgramRefused("the program makes an array whose shape is not fixed")
    name = element_names().get(str(array.element_type))
    if name is None:
        raise ProgramRefused(f"the program uses arrays of the type {str(kind)[:60]}, which is not allowed")
    return tuple(array.shape), name


@cache
def element_names() -> dict[str, str]:
    """Return NumPy's names of the dtypes that the installed JAX has, keyed by the dtypes' names in MLIR."""
    found = {}
    with mlir.make_ir_context():
        for name in ELEMENTS:
            with suppress(TypeError, AttributeError, KeyError):
                found[str(mlir.dtype_to_ir_type(dtype_of(name)))] = name
    return found


def is_transposed(location: Any) -> bool:
    """Return whether a name in ``location`` contains "transpose(", JAX's mark for operations of a backward pass."""
    while isinstance(location, ir.NameLoc):
        if TRANSPOSE.search(location.name_str):
            return True
        location = location.child_loc
    return False


def place_of(location: Any, files: set[str]) -> tuple[str, int] | None:
    """Return (file, line) of ``location``'s innermost call in one of the learner's ``files``, or None."""
    stack = [location]
    while stack:
        at = stack.pop()
        if isinstance(at, ir.FileLineColLoc):
            if at.filename in files:
                return at.filename, at.start_line
        elif isinstance(at, ir.NameLoc):
            stack.append(at.child_loc)
        elif isinstance(at, ir.CallSiteLoc):
            stack += [at.caller, at.callee]
        elif isinstance(at, ir.FusedLoc):
            stack += reversed(list(at.locations))
    return None
