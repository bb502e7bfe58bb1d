"""LEARNER PYTHON RUNS HERE: call a task, and return a program, plain values, or a fault.

An ask (one request) names the task to call, the mesh, the shapes and the specs, but never any values. There is one
exception: an ask to a plain function, which is not traced, holds the function's arguments. Asks with hidden arguments
come last. This process has no checks, expected values or hidden arrays that learner code could steal. This module
builds trees of arguments and flattens results, because a program has only flat lists.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding

from grader.learner import looks
from grader.learner.faults import fault_of, words
from grader.learner.loading import LoadedSource
from grader.learner.surroundings import time_limit
from grader.learner.tolerance import mesh_contexts_left, mesh_is_set
from grader.wire.frames import NOT_PLAIN, NotPlain, decode, encode, is_spec
from grader.wire.limits import MAX_TEXT
from grader.wire.meshes import make_mesh
from grader.wire.text import closest, describe_load
from grader.wire.trees import Misfit, fitted, flat, is_tree, rebuilt

Reply = tuple[dict[str, Any], list[bytes]]
MAX_COMPOSED, MAX_ENTRIES = 4, 64
"""Limits on the nesting levels of a composed answer, and on the entries of one part."""


def answer(ask: dict[str, Any], program: LoadedSource, seconds: float) -> Reply:
    """Answer one ask. Return a dict with one key (``program``, ``values``, ``raw`` or ``fault``), and a list of blobs.

    The list holds the program's bytecode, or is empty. The caller must be inside ``tolerant_jax``.
    """
    state = program.state_for(ask)
    if state is not None:
        program.space.clear()
        program.space.update(state[0])
    is_set = mesh_is_set() if state is None else state[1]
    try:
        with time_limit(seconds), mesh_contexts_left(), program.imports():
            if ask["kind"] == "number":
                return {"raw": raw_answer(program.space.get(ask["task"]))}, []
            if ask["kind"] == "answer":
                return {"raw": composed_answer(program.space.get(ask["task"]))}, []
            task = program.space.get(ask["task"])
            if not callable(task):
                return {"fault": missing(ask["task"], task, program)}, []
            if ask["kind"] == "function":
                return {"values": [outcome(task, args, program, seconds) for args in ask["cases"]]}, []
            mesh = mesh_of(ask)
            # A PartitionSpec without a mesh refers to the mesh that is set.
            if isinstance(mesh, Mesh) and (is_set or ask["axis_types"] == "explicit"):
                jax.set_mesh(mesh)  # learner code may have set a mesh with other axes
            return {"program": True}, [looked_at(task, ask, program)]
    except BaseException as error:
        mesh = mesh_of(ask, traced_only=True) if "mesh" in ask else None
        return {"fault": fault_of(error, program.files, seconds, mesh)}, []


def mesh_of(ask: dict[str, Any], *, traced_only: bool = False) -> Any:
    """Return the mesh of an ask (a request to the source). For a timing call with more devices than this process has,
    the mesh has no devices."""
    return make_mesh(ask["mesh"], ask["axis_types"], traced_only=traced_only or "timing" in ask)


def missing(name: str, found: Any, program: LoadedSource) -> dict[str, Any]:
    """Return the fault for a source without a function ``name``. ``found``: the object with this name, or None."""
    if found is not None:
        text = f"{name} is a {type(found).__name__}, not a function"
    elif stopped := next(
        (f for f in program.faults if f["kind"] != "absent" and name in program.files[f["chunk"]]), None
    ):
        text = f"{name} is not defined: {describe_load(stopped)}"
    else:
        defined = [n for n, thing in program.space.items() if callable(thing) and not n.startswith("_")]
        meant = closest(name, defined, 0.8)
        text = f"{name} is not defined" + (f"; if {meant} is this function, rename it to {name}" if meant else "")
    return {"kind": "missing", "message": text, "line": None, "file": "", "type": ""}


# -- programs ---------------------------------------------------------------------------------


def looked_at(task: Callable, ask: dict[str, Any], program: LoadedSource) -> bytes:
    """Trace as ``lower`` does, but let learner code inspect layouts and values of traced arrays, see ``looks``."""
    task = on_leaves(task, ask)
    # Tasks of the kind "body" are only traced, even on a learner's machine, and timing calls have no data.
    if ask["kind"] == "body" or "timing" in ask:
        return lower(task, ask)
    mesh = mesh_of(ask)
    arguments = [
        (tuple(a["shape"]), jax.numpy.dtype(a["dtype"]), NamedSharding(mesh, decode(a["spec"]))) for a in ask["args"]
    ]
    static = {k: decode(v) for k, v in ask["static"].items()} | {"mesh": mesh}
    return looks.settled(task, static, arguments, program.files, lambda watched: lower(watched, ask))


def lower(task: Callable, ask: dict[str, Any]) -> bytes:
    """Trace ``task``, a function of the leaves of its arguments, for the mesh and arguments in the request ``ask``.

    Returns the StableHLO module as MLIR bytecode.
    """
    mesh = mesh_of(ask)

    def abstract(arg: dict[str, Any]) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(
            tuple(arg["shape"]), jax.numpy.dtype(arg["dtype"]), sharding=NamedSharding(mesh, decode(arg["spec"]))
        )

    static = {k: decode(v) for k, v in ask["static"].items()}
    if ask["kind"] == "body":
        fn = jax.shard_map(
            partial(task, **static),
            mesh=mesh,
            in_specs=tuple(decode(a["spec"]) for a in ask["args"]),
            out_specs=decode(ask["out_specs"]),
            check_vma=ask["check_vma"],
        )
    else:
        fn = partial(task, mesh=mesh, **static)
    arguments = [abstract(a) for a in (*ask["args"], *ask["cotangents"])]
    fn = with_gradients(fn, ask) if ask["wrt"] else fn

    def function(*args):
        return fn(*args)

    traced: Any = jax.jit(function, keep_unused=True).trace(*arguments)
    code = io.BytesIO()
    traced.lower(lowering_platforms=(ask["platform"],)).compiler_ir("stablehlo").operation.write_bytecode(code)
    return code.getvalue()


# -- plain values ------------------------------------------------------------------------------


def outcome(task: Callable, args: Any, program: LoadedSource, seconds: float) -> dict[str, Any]:
    """Call a plain function. Return the ``value``; or ``error``, ``kinds``, ``message`` and ``line`` of an exception.

    ``kinds`` includes the error's base classes, because a subclass of ValueError is a ValueError.
    """
    try:
        return {"value": encode(task(**decode(args)))}
    except NotImplementedError:
        raise
    except NotPlain as error:
        return {"error": NOT_PLAIN, "message": f"returned something that {error}", "line": None}
    except Exception as error:
        fault = fault_of(error, program.files, seconds)
        kinds = [kind.__name__ for kind in type(error).__mro__[:-3]]
        return {
            "error": type(error).__name__,
            "kinds": kinds,
            "message": words(error, fault["line"], fault["file"]),
            "line": fault["line"],
        }


def raw_answer(value: Any) -> Any:
    """Return an answer as JSON: number, string, None, ``{"magnitude", "units"}`` (a pint quantity) or ``{"type"}``."""
    if hasattr(value, "magnitude") and hasattr(value, "units"):
        return {"magnitude": float(value.magnitude), "units": str(value.units)}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Fraction | Decimal):
        return raw_answer(decode(encode(value)))
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 1 << 12 else "inf"
    if isinstance(value, float):
        return float(value) if value == value and abs(value) != float("inf") else str(float(value))
    if isinstance(value, str):
        return str(value)[:200]
    if hasattr(value, "item"):
        return raw_answer(value.item())
    return {"type": type(value).__name__}


def composed_answer(value: Any, depth: int = 0) -> Any:
    """Return an answer with parts as JSON: lists, ``{"dict": [[key, answer], ...]}``, and ``{"spec": [...]}``.

    A PartitionSpec with unreduced axes is ``{"spec": [...], "unreduced": [...]}``.

    All other answers are as in ``raw_answer``, but texts may be longer (``MAX_TEXT``).
    """
    if depth > MAX_COMPOSED:
        return {"type": type(value).__name__}
    if is_spec(value):
        return _spec_answer(value, depth + 1)
    if isinstance(value, dict):
        pairs = list(value.items())[:MAX_ENTRIES]
        return {"dict": [[str(key)[:200], composed_answer(inner, depth + 1)] for key, inner in pairs]}
    if isinstance(value, list | tuple):
        return [composed_answer(inner, depth + 1) for inner in value[:MAX_ENTRIES]]
    if hasattr(value, "tolist") and getattr(value, "ndim", 0):
        return composed_answer(value.tolist(), depth + 1)
    return str(value)[:MAX_TEXT] if isinstance(value, str) else raw_answer(value)


def on_leaves(task: Callable, ask: dict[str, Any]) -> Callable:
    """Return ``task`` as a function from the leaves of its arguments to the leaves of its result, in declared order.

    If no structure is declared for the result, the function returns the task's result unchanged. The function raises
    Misfit if the structure of the result differs from the declared structure.
    """
    takes, returns = [decode(tree) for tree in ask["takes"]], decode(ask["returns"])
    if returns is None and not any(map(is_tree, takes)):
        return task

    def called(*arrays: Any, **static: Any) -> Any:
        rest = iter(arrays)
        result = task(*(rebuilt(tree, rest) for tree in takes), **static)
        return result if returns is None else tuple(_as_declared(result, returns))

    return called


def _as_declared(result: Any, returns: Any) -> list[Any]:
    found = fitted(result, returns)
    for name, value in zip(flat(returns), found, strict=True):
        if value is None:
            raise Misfit(f"None{name and f' for {name}'}, expected one array; is a return missing?")
    return found


def with_gradients(fn: Callable, ask: dict[str, Any]) -> Callable:
    """Return a function ``(*args, *cotangents) -> (*results, *gradients)`` that calls and differentiates ``fn``.

    Results without a cotangent are auxiliary: they are not differentiated.
    """
    wrt = [i for i, a in enumerate(ask["args"]) if a["name"] in ask["wrt"]]
    count, of = len(ask["args"]), [c["of"] for c in ask["cotangents"]]

    def both(*args: Any) -> tuple:
        inputs, cotangents = args[:count], args[count:]

        def pulled(*chosen: Any) -> tuple[list[Any], Any]:
            full = list(inputs)
            for position, value in zip(wrt, chosen, strict=True):
                full[position] = value
            results = fn(*full)
            return [results[i] for i in of], results

        differentiated, pull, results = jax.vjp(pulled, *(inputs[i] for i in wrt), has_aux=True)
        return (*results, *pull([_as_of(out, c) for out, c in zip(differentiated, cotangents, strict=True)]))

    return both


def _as_of(result: Any, cotangent: Any) -> Any:
    """Return a result's cotangent, converted to the result's type, because JAX requires that type.

    Raises Misfit for a loss that is not one number.
    """
    if jnp.shape(cotangent) == () != jnp.shape(result):
        raise Misfit(f"an array of shape {jnp.shape(result)} for the loss, expected one number, shape ()")
    sharding = getattr(jax.typeof(result), "sharding", None)
    if sharding is not None and AxisType.Explicit in sharding.mesh.axis_types:
        cotangent = jax.sharding.reshard(cotangent, sharding)
    return cotangent if jnp.shape(cotangent) else cotangent.astype(jax.typeof(result).dtype)


def _spec_answer(spec: Any, depth: int) -> Any:
    unreduced = sorted(map(str, getattr(spec, "unreduced", ())))
    if getattr(spec, "reduced", ()):
        return {"type": "PartitionSpec with reduced axes"}
    entries = [list(e) if isinstance(e, tuple) else e for e in (spec.partitions if unreduced else spec)]
    shown: dict[str, Any] = {"spec": [composed_answer(entry, depth) for entry in entries]}
    return shown | ({"unreduced": [composed_answer(axis, depth) for axis in unreduced]} if unreduced else {})
