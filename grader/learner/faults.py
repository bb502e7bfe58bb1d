"""Faults: errors of learner code as data, with a kind, one line of text for the learner, and the line of code."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Collection, Mapping
from typing import Any

from jax.sharding import AxisType, Mesh

from grader.learner.absent import NotInstalled
from grader.learner.looks import ValueDependent
from grader.learner.surroundings import TimeLimit
from grader.wire.messages import FaultData
from grader.wire.text import one_line
from grader.wire.trees import Misfit

Files = Collection[str]  # Names of the learner's files or cells, as in ``co_filename``.
# JAX errors for code that needs the values of an array during tracing.
CONCRETE = {
    "ConcretizationTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "NonConcreteBooleanIndexError",
}
NEEDS_VALUES = (
    "cannot be traced: it needs the values of an array (float(), if, np.asarray, .item() ...), "
    "but arrays have only shapes while they are traced; use jnp and jax.lax"
)


def fault_of(error: BaseException, files: Files, seconds: float, mesh: Mesh | None = None) -> FaultData:
    """Return a fault: an error's kind, its type, one line of text, and the line and file of learner code.

    Args:
        files: names of the learner's files or notebook cells.
        seconds: the limit of CPU time, for the text of a timeout.
        mesh: the mesh that the grader passed to the task; None if the task got no mesh.
    """
    line, where = innermost(error, files)
    name = type(error).__name__
    match error:
        case TimeLimit():
            kind, text = "timeout", f"did not finish within {seconds:g} s"
            line, where = None, ""  # reports must not depend on the line that was interrupted
        case MemoryError():
            kind, text = "memory", "needs more memory than it may use"
        case ValueDependent():
            kind, text = "untraceable", NEEDS_VALUES
            name, line, where = "ConcretizationTypeError", error.line, error.file
        case SyntaxError():
            kind, line, text = "syntax", error.lineno, f"SyntaxError: {error.msg}"
            where = error.filename or ""
        case _:
            kind, name, text = _raised(error, files, (line, where), mesh)
    return {"kind": kind, "message": text, "line": line, "file": where, "type": name}


def _raised(
    error: BaseException, files: Files, place: tuple[int | None, str], mesh: Mesh | None
) -> tuple[str, str, str]:
    """Return a fault's kind, the error's type, and a line of text for the learner.

    ``place``: the line and file of learner code at which the error occurred.
    """
    line, name = place[0], type(error).__name__
    if isinstance(error, NotImplementedError) and raised_by_learner(error, files):
        return "missing", name, "not written yet (it raises NotImplementedError)"
    if name in CONCRETE:
        return "untraceable", name, NEEDS_VALUES
    if isinstance(error, NotImplementedError) and "callback" in one_line(error):  # JAX cannot lower some callbacks
        return "untraceable", name, "uses a host callback, which the grader cannot run; remove it"
    if (axis := unbound_axis(error)) is not None:
        return "raised", "NameError", unbound_text(axis, mesh and mesh.shape)
    if isinstance(error, NotInstalled):
        return "raised", name, f"{error}, line {line} uses it" if line else str(error)
    if isinstance(error, Misfit):
        return "raised", name, f"returned {error}"
    text = f"{name}: {words(error, *place)}".removesuffix(": ")
    if mesh and (more := other_mesh_text(error, files, mesh)):
        text = f"{text.removesuffix('.')}; {more}"
    return "raised", name, text


def unbound_axis(error: BaseException) -> str | None:
    """Return the axis if an error of JAX is about a collective over an unknown axis, else None.

    For an unknown axis, JAX raises a NameError. If JAX marks an array as varying over the unknown axis, JAX raises an
    AssertionError without a message.
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


def unbound_text(axis: str, mesh: Mapping[str, int] | None) -> str:
    if axis in (mesh or {}):
        where = f"the body of a jax.shard_map over {axis!r}"
        return f"the axis {axis!r} is not defined here: call collectives over it only in {where}"
    has = f"; the mesh has {', '.join(map(repr, mesh))}" if mesh else ""
    return f"there is no axis {axis!r} here{has}"


def other_mesh_text(error: BaseException, files: Files, given: Mesh) -> str:
    """Return a hint if the error's cause seems to be a mesh that the learner made, instead of ``given``; else ''."""
    message = one_line(error)
    if raised_by_learner(error, files) or not re.search(r"\bmesh\b|_specs\b|incompatible devices", message):
        return ""
    if not isinstance(given, Mesh):
        return ""
    work_on = f"use the mesh that the task gets, ({_sizes(given)})"
    other = [m for m in meshes_at(error, files) if m != given]
    for mesh in other:
        if tuple(mesh.shape.items()) != tuple(given.shape.items()):
            return f"uses a mesh ({_sizes(mesh)}) of its own; {work_on}"
    if any(list(mesh.devices.flat) != list(given.devices.flat) for mesh in other) or "incompatible devices" in message:
        return f"uses a mesh of its own, with other devices, or with its devices in another order; {work_on}"
    if other and re.search("in_specs passed to shard_map|context mesh", message):
        if AxisType.Explicit in given.axis_types:
            return f"uses a mesh of its own, with axes that are not Explicit; {work_on}"
        return f"uses a mesh of its own, with Explicit axes (the default of jax.make_mesh); {work_on}"
    return ""


def _sizes(mesh: Mesh) -> str:
    return ", ".join(f"{axis}={size}" for axis, size in mesh.shape.items())


def meshes_at(error: BaseException, files: Files) -> list[Mesh]:
    """Return the meshes in an error's stack frames.

    In learner code, a mesh may be in any variable. In JAX's code, this function reads only the variable ``mesh``.
    """
    found: list[Any] = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in files:
            found += frame.f_locals.values()
            found += (frame.f_globals[n] for n in frame.f_code.co_names if n in frame.f_globals)
        elif frame.f_globals.get("__name__", "").startswith("jax."):
            found.append(frame.f_locals.get("mesh"))
    return [value for value in found if isinstance(value, Mesh)]


def raised_by_learner(error: BaseException, files: Files) -> bool:
    """Return whether the deepest stack frame of an error is in learner code, not in JAX."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].f_code.co_filename in files


def innermost(error: BaseException, files: Files) -> tuple[int | None, str]:
    """Return the line, and the file or cell, of the deepest stack frame in learner code."""
    found: tuple[int | None, str] = (None, "")
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in files:
            found = (line, frame.f_code.co_filename)
    return found


def words(error: BaseException, line: int | None, file: str) -> str:
    """Return an error's message, or the line of code for an error without a message, such as a bare ``assert``."""
    return one_line(error) or (linecache.getline(file, line).strip()[:200] if line else "")
