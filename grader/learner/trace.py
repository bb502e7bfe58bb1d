"""LEARNER PYTHON RUNS HERE, and nowhere else.

Given source text and asks (what to call, on which mesh, with which shapes and specs, never with which values; of plain
functions the arguments, hidden ones last), answers each ask with a program as MLIR bytecode, with plain values, or with a
fault. Knows no check, no expected value and no hidden array, so there is nothing here to steal.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import difflib
import io
import linecache
import re
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from grader.learner import looks, tolerance
from grader.learner.absent import NotInstalled, StandIn, guarded_lines, stood_in
from grader.learner.tolerance import tolerant_jax
from grader.wire.frames import NOT_PLAIN, NotPlain, decode, encode
from grader.wire.meshes import make_mesh
from grader.wire.text import describe_load, one_line

Reply = tuple[dict[str, Any], list[bytes]]
MASK_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
# Names of JAX errors that mean "this needs a value while it is being traced".
CONCRETE = {
    "ConcretizationTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "NonConcreteBooleanIndexError",
}


class TimeLimit(BaseException):
    """Raised inside learner code when its time is over; not an Exception, so that nothing swallows it."""


class Program:
    """A source that was executed.

    Attributes:
        space: the namespace in which its chunks ran, and in which its functions look names up.
        states: for every chunk, what the namespace held when it had run, and whether a mesh was set.
        faults: what stopped chunks, and modules that were not there (kind ``absent``).
        files: the chunks' texts by name.
    """

    def __init__(self) -> None:
        module = types.ModuleType("submission")
        sys.modules["submission"] = module  # dataclasses look their module up
        self.space: dict[str, Any] = module.__dict__
        self.states: dict[str, tuple[dict[str, Any], bool]] = {}
        self.faults: list[dict[str, Any]] = []
        self.files: dict[str, str] = {}

    @contextlib.contextmanager
    def imports(self) -> Iterator[None]:
        """What learner code imports is a stand-in where it is not there; it is noted once."""

        def note(module: str, line: int, chunk: str) -> None:
            known = [f for f in self.faults if f["kind"] == "absent" and f["type"] == module]
            if not known:
                self.faults.append({"kind": "absent", "message": module, "line": line, "file": chunk, "type": module, "chunk": chunk})  # fmt: skip

        def guarded(chunk: str, line: int) -> bool:
            return chunk not in self.files or line in guarded_lines(self.files[chunk])

        with stood_in(self.space, note, guarded):
            yield

    def state_for(self, ask: dict[str, Any]) -> tuple[dict[str, Any], bool] | None:
        """The namespace as it was where the ask's exercise ends, ``ask["after"]``.

        Work that was written further down, below its check, counts as it is there; without a check in the notebook,
        as it is at the end. None: nothing was executed.
        """
        names, after = list(self.states), ask.get("after")
        if after not in self.states:
            return self.states[names[-1]] if names else None
        last = self.states[names[-1]][0].get(ask["task"])
        if last is None:
            return self.states[after]
        return self.states[next(n for n in names[names.index(after) :] if self.states[n][0].get(ask["task"]) is last)]


def load(source: dict[str, Any], seconds: float) -> Program:
    """Execute the chunks of ``{"name", "chunks": [[name, text], ...]}`` in one namespace.

    A chunk that raises does not stop the next one, as in a notebook; what it defined until then stays.
    """
    program = Program()
    if any("XLA_FLAGS" in text for _, text in source["chunks"]):
        jax.devices()  # the file would change how many there are
    with tolerant_jax(), program.imports():
        for name, text in source["chunks"]:
            program.files[name] = text
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            try:
                with time_limit(seconds):
                    _execute(text, name, program, seconds)
            except BaseException as error:  # SystemExit and KeyboardInterrupt of theirs included
                program.faults.append(fault_of(error, program, seconds) | {"chunk": name})
            last = name == source["chunks"][-1][0]
            program.states[name] = dict(program.space) if last else as_they_are(program.space), tolerance.mesh_is_set()
    return program


def as_they_are(space: dict[str, Any], most: int = 100_000) -> dict[str, Any]:
    """The names of a space with lists, dicts and sets as they are now, whatever a later cell puts into them.

    Args:
        most: items to copy in all; what is more, or nested deeper than eight times, is shared.
    """
    copies: dict[int, Any] = {}
    left = most

    def copied(value: Any, depth: int) -> Any:
        nonlocal left
        if type(value) not in (dict, list, set):
            return value
        if id(value) not in copies:
            left -= len(value)
            if left < 0 or depth > 8 or not all(type(key) in (str, int) for key in value if type(value) is dict):
                return value  # other keys may be theirs to compare, and none of their code runs here
            copies[id(value)] = new = value.copy()
            for key in value if isinstance(new, dict) else range(len(new)) if isinstance(new, list) else ():
                new[key] = copied(value[key], depth + 1)
        return copies[id(value)]

    return {name: copied(value, 1) if name != "__builtins__" else value for name, value in space.items()}


def _execute(text: str, name: str, program: Program, seconds: float) -> None:
    """Run a chunk. A statement that uses a module which is not there is left out, as if it were not written."""
    rest = compile(text, name, "exec", dont_inherit=True)
    flags = rest.co_flags & MASK_FUTURE
    while True:
        try:
            return exec(rest, program.space)
        except NotInstalled as error:
            program.faults.append(fault_of(error, program, seconds) | {"chunk": name})
            at = next((line for f, line in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == name), 0)
            body = ast.parse(text).body
            left = [s for s in body if s.lineno > at]
            # ``fig, ax = plt.subplots()`` gives names that are not there either
            stopped = [n for s in body if s.lineno <= at <= (s.end_lineno or at) for n in ast.walk(s)]
            bound = {n.id for n in stopped if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            program.space.update(dict.fromkeys(bound, StandIn(error.module, error.line)))
            rest = compile(ast.Module(left, []), name, "exec", flags, dont_inherit=True)


def answer(ask: dict[str, Any], program: Program, seconds: float) -> Reply:
    """Answer one ask: ``{"program"}`` with one blob, ``{"values"}``, ``{"raw"}`` or ``{"fault"}``."""
    state = program.state_for(ask)
    if state is not None:
        program.space.clear()
        program.space.update(state[0])
    is_set = tolerance.mesh_is_set() if state is None else state[1]
    try:
        with time_limit(seconds), tolerant_jax(), program.imports():
            if ask["kind"] == "number":
                return {"raw": raw_answer(program.space.get(ask["task"]))}, []
            task = program.space.get(ask["task"])
            if not callable(task):
                return {"fault": missing(ask["task"], task, program)}, []
            if ask["kind"] == "function":
                return {"values": [outcome(task, args, program, seconds) for args in ask["cases"]]}, []
            if is_set:
                jax.set_mesh(make_mesh(ask["mesh"]))  # theirs may have other axes; this one is what the task is about
            return {"program": True}, [looked_at(task, ask, program)]
    except BaseException as error:
        return {"fault": fault_of(error, program, seconds, ask.get("mesh"))}, []


def looked_at(task: Callable, ask: dict[str, Any], program: Program) -> bytes:
    """``lower``, while learner code may look at arrays as if they were computed; see ``looks``."""
    if ask["kind"] == "body":  # the arrays in a shard_map are traced for them too
        return lower(task, ask)
    mesh = make_mesh(ask["mesh"])
    arguments = [
        (tuple(a["shape"]), jax.numpy.dtype(a["dtype"]), NamedSharding(mesh, decode(a["spec"]))) for a in ask["args"]
    ]
    static = {k: decode(v) for k, v in ask["static"].items()} | {"mesh": mesh}
    return looks.settled(task, static, arguments, program.files, lambda watched: lower(watched, ask))


# -- the three kinds of answers ----------------------------------------------------------------


def lower(task: Callable, ask: dict[str, Any]) -> bytes:
    """Trace ``task`` for this mesh and these arguments; its StableHLO module as MLIR bytecode, and nothing beside it."""
    mesh = make_mesh(ask["mesh"])

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
    arguments = [abstract(a) for a in ask["args"]]
    if ask["wrt"]:
        fn = with_vjp(fn, [i for i, a in enumerate(ask["args"]) if a["name"] in ask["wrt"]])
        arguments.append(abstract(ask["cotangent"]))

    def function(*args):
        return fn(*args)

    traced: Any = jax.jit(function, keep_unused=True).trace(*arguments)
    code = io.BytesIO()
    traced.lower(lowering_platforms=(ask["platform"],)).compiler_ir("stablehlo").operation.write_bytecode(code)
    return code.getvalue()


def with_vjp(fn: Callable, wrt: list[int]) -> Callable:
    """``(*args, cotangent) -> (out, *gradients)`` for the arguments at positions ``wrt``."""

    def both(*args):
        *inputs, cotangent = args

        def of(*chosen):
            full = list(inputs)
            for position, value in zip(wrt, chosen, strict=True):
                full[position] = value
            return fn(*full)

        out, pull = jax.vjp(of, *(inputs[i] for i in wrt))
        return (out, *pull(cotangent))

    return both


def outcome(task: Callable, args: Any, program: Program, seconds: float) -> dict[str, Any]:
    """What a pure function did for one argument set: ``{"value"}`` or ``{"error", "kinds", "message", "line"}``.

    ``kinds`` are the error's base classes too: a subclass of ValueError is a ValueError.
    """
    try:
        return {"value": encode(task(**decode(args)))}
    except NotImplementedError:
        raise
    except NotPlain as error:
        return {"error": NOT_PLAIN, "message": f"returned something that {error}", "line": None}
    except Exception as error:
        fault = fault_of(error, program, seconds)
        kinds = [kind.__name__ for kind in type(error).__mro__[:-3]]
        return {
            "error": type(error).__name__,
            "kinds": kinds,
            "message": words(error, fault["line"], fault["file"]),
            "line": fault["line"],
        }


def raw_answer(value: Any) -> Any:
    """An answer as plain JSON: number, string, None, or ``{"magnitude", "units"}`` of a pint quantity."""
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


# -- faults ------------------------------------------------------------------------------------


def fault_of(
    error: BaseException, program: Program, seconds: float, mesh: dict[str, int] | None = None
) -> dict[str, Any]:
    """A learner's error as data: kind, one line, and the innermost line of theirs. ``mesh``: what was asked for."""
    line, where = innermost(error, program)
    name = type(error).__name__
    if isinstance(error, TimeLimit):
        kind, text = "timeout", f"did not finish within {seconds:g} s"
        line, where = None, ""  # where it was when time was over is chance, and reports must be reproducible
    elif isinstance(error, NotImplementedError) and raised_by_learner(error, program):
        kind, text = "missing", "not written yet (it raises NotImplementedError)"
    elif isinstance(error, MemoryError):
        kind, text = "memory", "ran out of the memory it is allowed"
    elif name in CONCRETE or isinstance(error, looks.ValueDependent):
        kind = "untraceable"
        if isinstance(error, looks.ValueDependent):
            name, line, where = "ConcretizationTypeError", error.line, error.file
        text = (
            "cannot be traced: it needs the values of an array (float(), if, np.asarray, .item() ...), "
            "but shapes are all there is while tracing; use jnp and jax.lax"
        )
    elif isinstance(error, NotImplementedError) and "callback" in one_line(error):  # JAX cannot lower some
        kind, text = "untraceable", "uses a host callback, which cannot leave this process; remove it"
    elif (axis := unbound_axis(error)) is not None:
        kind, name, text = "raised", "NameError", told_unbound(axis, mesh)
    elif isinstance(error, NotInstalled):
        kind, text = "raised", f"{error}, line {line} uses it" if line else str(error)
    elif isinstance(error, SyntaxError):
        kind, line, text = "syntax", error.lineno, f"SyntaxError: {error.msg}"
        where = error.filename or ""
    else:
        kind, text = "raised", f"{name}: {words(error, line, where)}".removesuffix(": ")
        if mesh and (told := told_mesh(error, program, mesh)):
            text = f"{text.removesuffix('.')}; {told}"
    return {"kind": kind, "message": text, "line": line, "file": where, "type": name}


def unbound_axis(error: BaseException) -> str | None:
    """The axis that a collective named and JAX did not find; None for other errors.

    JAX says it in a NameError, or, where it keeps track of what varies, in an assertion without a word.
    """
    if isinstance(error, NameError):
        found = re.search(r"unbound axis name: (.+?)(?:\. To fix|$)", one_line(error))
        return found[1] if found else None
    if type(error) is not AssertionError or error.args:
        return None
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if not frame.f_globals.get("__name__", "").startswith("jax."):
        return None
    named, mesh = frame.f_locals.get("axes"), frame.f_locals.get("cur_mesh")
    known = getattr(mesh, "axis_names", ())
    return next((str(a) for a in named if a not in known), None) if isinstance(named, tuple) else None


def told_unbound(axis: str, mesh: dict[str, int] | None) -> str:
    if axis in (mesh or {}):
        return f"the axis {axis!r} is not bound here: a collective over it belongs into the body of a jax.shard_map over {axis!r}"
    has = f"; the mesh has {', '.join(map(repr, mesh))}" if mesh else ""
    return f"there is no axis {axis!r} here{has}"


def told_mesh(error: BaseException, program: Program, sizes: dict[str, int]) -> str:
    """Where JAX speaks of meshes, specs or devices and the task has a mesh of its own: that, which JAX does not say."""
    said = one_line(error)
    if raised_by_learner(error, program) or not re.search(r"\bmesh\b|_specs\b|incompatible devices", said):
        return ""
    given = make_mesh(sizes)
    work_on = f"work on the mesh that is given, ({', '.join(f'{a}={n}' for a, n in sizes.items())})"
    other = [m for m in meshes_at(error, program) if m != given]
    for mesh in other:
        if tuple(mesh.shape.items()) != tuple(given.shape.items()):
            return f"uses a mesh ({', '.join(f'{a}={n}' for a, n in mesh.shape.items())}) of its own; {work_on}"
    if any(list(mesh.devices.flat) != list(given.devices.flat) for mesh in other) or "incompatible devices" in said:
        return f"uses a mesh of its own, with other devices or in another order; {work_on}"
    if other and re.search("in_specs passed to shard_map|context mesh", said):
        return (
            f"uses a mesh of its own, with Explicit axes (jax.make_mesh makes them, unless told otherwise); {work_on}"
        )
    return ""


def meshes_at(error: BaseException, program: Program) -> list[Mesh]:
    """The meshes that were in use where an error came up: of their code, and what it handed to JAX."""
    found: list[Any] = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in program.files:
            found += frame.f_locals.values()
            found += (frame.f_globals[n] for n in frame.f_code.co_names if n in frame.f_globals)
        elif frame.f_globals.get("__name__", "").startswith("jax."):
            found.append(frame.f_locals.get("mesh"))
    return [value for value in found if isinstance(value, Mesh)]


def raised_by_learner(error: BaseException, program: Program) -> bool:
    """Whether the deepest frame is the learner's own code, and not JAX's."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].f_code.co_filename in program.files


def innermost(error: BaseException, program: Program) -> tuple[int | None, str]:
    """Line and chunk of the deepest frame that is the learner's own code."""
    found: tuple[int | None, str] = (None, "")
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in program.files:
            found = (line, frame.f_code.co_filename)
    return found


def words(error: BaseException, line: int | None, file: str) -> str:
    """What an error says; of one without a word, such as a bare ``assert``, the line that it comes from."""
    return one_line(error) or (linecache.getline(file, line).strip()[:200] if line else "")


def missing(name: str, found: Any, program: Program) -> dict[str, Any]:
    if found is not None:
        text = f"{name} is a {type(found).__name__}, not a function"
    elif stopped := next(
        (f for f in program.faults if f["kind"] != "absent" and name in program.files[f["chunk"]]), None
    ):
        text = f"{name} is not defined: {describe_load(stopped)}"
    else:
        defined = [n for n, thing in program.space.items() if callable(thing) and not n.startswith("_")]
        near = difflib.get_close_matches(name, defined, 1, 0.8)
        text = f"{name} is not defined" + (f"; is {near[0]} meant to be it? rename it" if near else "")
    return {"kind": "missing", "message": text, "line": None, "file": "", "type": ""}


# -- surroundings ------------------------------------------------------------------------------


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimit in this thread after ``seconds`` of CPU time of this process, where the system has timers.

    Of CPU time, because wall time depends on what else the machine does; whoever waits for us ends what sleeps.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(signum: int, frame: Any) -> None:
        raise TimeLimit

    try:
        before = signal.signal(signal.SIGPROF, over)
    except ValueError:  # not the main thread: whoever called us keeps the time
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def prepare() -> None:
    """Do once what every child would do again, in the process that they are forked from.

    Starts no backend and no thread: a fork would not survive them.
    """
    share_ir_context()
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    body = jax.shard_map(
        lambda x: jax.lax.psum(x @ x, "x"), mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec()
    )
    jax.make_jaxpr(body)(jax.ShapeDtypeStruct((2, 2), "float32"))


def share_ir_context() -> None:
    """One MLIR context for all programs of a process: making one takes longer than tracing a small program.

    For processes that end with their submission: a context keeps what every program had. Where a JAX has no such
    function, each program has a context of its own.
    """
    from jax._src.interpreters import mlir

    make = getattr(mlir, "make_ir_context", None)
    if make is not None and not hasattr(make, "cache_info"):
        mlir.make_ir_context = cache(make)
        mlir.make_ir_context()
