"""LEARNER PYTHON RUNS HERE: answer an ask (a request of the grader) with a program, plain values, or a fault.

An ask to trace a task has the task's name, the mesh, and the shapes and PartitionSpecs of the arguments, but no values.
An ask to call a plain function (a task that is not traced) has the values of the arguments. The grader sends hidden
arguments only after the answers to all other asks. This process has no checks and no expected values, so learner code
cannot read them.

A traced program takes and returns flat lists of arrays. This module converts the flat lists from and to the trees of
arrays (dicts, tuples) that the exercise declares.
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
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

from grader.learner import looks
from grader.learner.faults import fault_of, words
from grader.learner.loading import LoadedSource
from grader.learner.surroundings import mesh_contexts_left, mesh_is_set, time_limit
from grader.wire.frames import NOT_PLAIN, NotPlain, decode, encode, is_spec
from grader.wire.limits import MAX_KEY, MAX_PARTS, MAX_TEXT
from grader.wire.meshes import make_mesh
from grader.wire.messages import Argument, CallAsk, CaseOutcome, ChildMessage, FaultData, TracerAsk
from grader.wire.text import closest, describe_load
from grader.wire.trees import Misfit, fitted, flat, is_tree, rebuilt

Message = tuple[ChildMessage, list[bytes]]
MAX_COMPOSED = 4  # nesting levels of an answer with parts


def reply_to(ask: TracerAsk, loaded: LoadedSource, seconds: float) -> Message:
    """Answer one ask (a request of the grader). Return a dict with one key, and a list of byte strings.

    The key is one of:
        program: the task was traced. The list has the program as bytecode; for other keys, the list is empty.
        values: results of a plain function.
        raw: the learner's answer to a question.
        fault: an error of the learner's code.

    Call this function only inside the context manager ``tolerant_jax``.
    """
    state = loaded.state_for(ask)
    if state is not None:
        # The learner's functions look up their globals in this dict. What an earlier request assigned is gone, too.
        loaded.space.clear()
        loaded.space.update(state[0])
    is_set = mesh_is_set() if state is None else state[1]
    try:
        with time_limit(seconds), mesh_contexts_left(), loaded.imports():
            if ask["kind"] == "number":
                return given(ask["task"], loaded, raw_answer), []
            if ask["kind"] == "answer":
                return given(ask["task"], loaded, composed_answer), []
            task = loaded.space.get(ask["task"])
            if not callable(task):
                return {"fault": missing(ask["task"], task, loaded)}, []
            if ask["kind"] == "function":
                return {"values": [outcome(task, args, loaded, seconds) for args in ask["cases"]]}, []
            mesh = mesh_of(ask)
            # A PartitionSpec does not name a mesh. It refers to the mesh that ``jax.set_mesh`` has set.
            if isinstance(mesh, Mesh) and (is_set or ask["axis_types"] == "explicit"):
                jax.set_mesh(mesh)  # learner code may have set a mesh with other axes
            return {"program": True}, [traced(task, ask, loaded)]
    except BaseException as error:
        mesh = mesh_of(ask, traced_only=True) if "mesh" in ask else None
        return {"fault": fault_of(error, loaded.files, seconds, mesh)}, []


def mesh_of(ask: CallAsk, *, traced_only: bool = False) -> Any:
    """Return the mesh for an ask (a request of the grader).

    If there are too few devices, return an AbstractMesh for a timing call or if ``traced_only`` is True. Otherwise,
    raise RuntimeError.
    """
    return make_mesh(ask["mesh"], ask["axis_types"], traced_only=traced_only or "timing" in ask)


def missing(name: str, found: Any, loaded: LoadedSource) -> FaultData:
    """Return the fault (an error as data) for learner code that does not define the function ``name``.

    ``found`` is the learner's object of this name, which is not a function; None if there is none.
    """
    if found is not None:
        text = f"{name} is a {type(found).__name__}, not a function"
    elif stopped := stopped_before(name, loaded):
        return stopped
    else:
        defined = [n for n, thing in loaded.space.items() if callable(thing) and not n.startswith("_")]
        meant = closest(name, defined, 0.8)
        text = f"{name} is not defined" + (f"; if you named it {meant}, rename it to {name}" if meant else "")
    return {"kind": "missing", "message": text, "line": None, "file": "", "type": ""}


def stopped_before(name: str, loaded: LoadedSource) -> FaultData | None:
    """Return the fault for a missing function or answer if an error stopped the chunk that names it; else None."""
    for fault in loaded.faults:
        if fault["kind"] != "absent" and name in loaded.files[fault["chunk"]]:
            text = f"{name} is not defined: {describe_load(fault)}"
            return {"kind": "missing", "message": text, "line": None, "file": "", "type": ""}
    return None


# -- programs ---------------------------------------------------------------------------------


def traced(task: Callable, ask: CallAsk, loaded: LoadedSource) -> bytes:
    """Trace ``task``, which may inspect traced arrays (see ``looks``). Return the program as MLIR bytecode."""
    task = on_leaves(task, ask)
    # Learner code cannot see values in two cases: a task of the kind "body" (the body of a shard_map) is always traced,
    # and a timing call has no data.
    if ask["kind"] == "body" or "timing" in ask:
        return lower(task, ask)
    mesh = mesh_of(ask)
    arguments = [
        (tuple(a["shape"]), jax.numpy.dtype(a["dtype"]), NamedSharding(mesh, decode(a["spec"]))) for a in ask["args"]
    ]
    static = {k: decode(v) for k, v in ask["static"].items()} | {"mesh": mesh}
    return looks.settled(task, static, arguments, loaded.files, lambda watched: lower(watched, ask))


def lower(task: Callable, ask: CallAsk) -> bytes:
    """Trace ``task`` with the mesh, the shapes and the PartitionSpecs in ``ask`` (a request of the grader).

    ``task`` takes a flat list of arrays, like the functions that ``on_leaves`` returns. Return the StableHLO module as
    MLIR bytecode.
    """
    mesh = mesh_of(ask)

    def abstract(arg: Argument) -> jax.ShapeDtypeStruct:
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


def outcome(task: Callable, args: Any, loaded: LoadedSource, seconds: float) -> CaseOutcome:
    """Call a plain function (a task that is not traced). Return its result under the key ``value``.

    If the function raises an exception, return the keys ``error``, ``kinds``, ``message`` and ``line``. ``kinds`` has
    the names of the exception's class and its base classes, so that a check for ValueError accepts subclasses too.

    Raises NotImplementedError if the function raises it, as an unfinished task does.
    """
    try:
        return {"value": encode(task(**decode(args)))}
    except NotImplementedError:
        raise
    except NotPlain as error:
        return {"error": NOT_PLAIN, "message": f"returned something that {error}", "line": None}
    except Exception as error:
        fault = fault_of(error, loaded.files, seconds)
        kinds = [kind.__name__ for kind in type(error).__mro__[:-3]]
        return {
            "error": type(error).__name__,
            "kinds": kinds,
            "message": words(error, fault["line"], fault["file"]),
            "line": fault["line"],
        }


def given(name: str, loaded: LoadedSource, as_json: Callable[[Any], Any]) -> ChildMessage:
    """Return the learner's answer to the question ``name``; a fault if an error kept it from being assigned."""
    if name not in loaded.space and (stopped := stopped_before(name, loaded)):
        return {"fault": stopped}
    return {"raw": as_json(loaded.space.get(name))}


def raw_answer(value: Any) -> Any:
    """Return a learner's answer to a question as JSON: a number, a string, a bool, None or a dict.

    A pint quantity becomes ``{"magnitude", "units"}``. An object of an unknown type becomes ``{"type": type's name}``.
    """
    if hasattr(value, "magnitude") and hasattr(value, "units"):
        return {"magnitude": float(value.magnitude), "units": str(value.units)[:200]}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Fraction | Decimal):
        return raw_answer(decode(encode(value)))
    if isinstance(value, np.floating):
        return raw_answer(float(value))  # ``np.longdouble.item`` returns a longdouble
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 1 << 12 else "inf"
    if isinstance(value, float):
        return float(value) if value == value and abs(value) != float("inf") else str(float(value))
    if isinstance(value, str):
        return str(value)[:200]
    if hasattr(value, "item") and type(inner := value.item()) is not type(value):
        return raw_answer(inner)
    return {"type": type(value).__name__}


def composed_answer(value: Any, depth: int = 0) -> Any:
    """Return a learner's answer that may have parts (a list, a dict or a PartitionSpec) as JSON.

    - A dict becomes ``{"dict": [[key, answer], ...]}``.
    - A PartitionSpec becomes ``{"spec": [...]}``, or ``{"spec": [...], "unreduced": [...]}`` if it has unreduced axes.
    - A string is cut to MAX_TEXT characters.
    - Any other answer without parts is converted by ``raw_answer``.
    """
    if depth > MAX_COMPOSED:
        return {"type": type(value).__name__}
    if is_spec(value):
        return _spec_answer(value, depth + 1)
    if isinstance(value, dict):
        pairs = list(value.items())[:MAX_PARTS]
        return {"dict": [[str(key)[:MAX_KEY], composed_answer(inner, depth + 1)] for key, inner in pairs]}
    if isinstance(value, list | tuple):
        return [composed_answer(inner, depth + 1) for inner in value[:MAX_PARTS]]
    if hasattr(value, "tolist") and getattr(value, "ndim", 0):
        return composed_answer(value.tolist(), depth + 1)
    return str(value)[:MAX_TEXT] if isinstance(value, str) else raw_answer(value)


def on_leaves(task: Callable, ask: CallAsk) -> Callable:
    """Wrap ``task`` so that it takes and returns arrays in flat order instead of trees (dicts, tuples) of arrays.

    If the exercise declares a tree for the result, the wrapper raises Misfit for a result with another structure.
    Otherwise, the wrapper returns the task's result unchanged.
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


def with_gradients(fn: Callable, ask: CallAsk) -> Callable:
    """Return a function ``(*args, *cotangents) -> (*results, *gradients)`` that calls and differentiates ``fn``.

    Results for which ``ask`` has no cotangent are not differentiated.
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
    """Return ``cotangent`` with the sharding of ``result``; a scalar also gets the dtype of ``result``.

    ``jax.vjp`` requires equal shardings and dtypes. Raises Misfit if only the cotangent is a scalar, because then the
    task should return a scalar, such as a loss.
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
