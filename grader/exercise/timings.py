"""Declare a timing call: the program of another call, timed at other sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from grader import declared
from grader.common.substitution import Ambiguous, substitution
from grader.declared import AuthorError
from grader.exercise.calls import at_sizes
from grader.exercise.declarations import Call


def timing_of(call: Any, *, on: Any, dims: Any, hidden_dims: Any, meshes: Any, axes: Any, profile: Any) -> Call:
    """Return the timing call. Raises AuthorError for the first invalid argument."""
    if not isinstance(call, Call) or call.timing is not None:
        raise AuthorError(
            f"exercise.timing times {declared.a(call)}, not a call: first write call = exercise.call(...)"
        )
    timed = at_sizes(call, call.meshes if meshes is None else meshes, dims, hidden_dims)
    timed = replace(timed, steps=1, timing=declared.timing(on, axes, profile, timed.meshes), timed=call)
    if timed.dims.keys() != call.dims.keys():
        raise AuthorError(
            f"exercise.timing has sizes of {', '.join(timed.dims)}, but its call has sizes of {', '.join(call.dims)}: "
            "name the same dimensions in both"
        )
    for mesh in timed.meshes:
        _fits(call, timed, mesh)
    return timed


def mesh_beside(values: Call, mesh: Mapping[str, int]) -> Mapping[str, int]:
    """Return ``mesh`` if the small call ``values`` has this mesh, else the first mesh of ``values``."""
    return next((m for m in values.meshes if dict(m) == dict(mesh)), values.meshes[0])


def _fits(values: Call, timed: Call, mesh: Mapping[str, int]) -> None:
    """Raise AuthorError if ``substitution`` cannot convert sizes of the small call ``values`` to sizes of ``timed``."""
    small = mesh_beside(values, mesh)
    if list(small) != list(mesh):
        raise AuthorError(
            f"the mesh of exercise.timing has the axes {_names(mesh)}, but the mesh of its call has {_names(small)}; "
            "use the same axes in the same order"
        )
    for hidden in (False, True):
        try:
            substitution(values.sizes(small, hidden=hidden), timed.sizes(mesh, hidden=hidden), small, mesh)
        except Ambiguous as problem:
            raise AuthorError(f"exercise.timing: {'hidden_dims: ' if hidden else ''}{problem}") from None
        except KeyError as name:
            raise AuthorError(
                f"exercise.timing: `dims` has no size of {name}; name the same dimensions as the call"
            ) from None


def _names(axes: Sequence[str] | Mapping[str, int]) -> str:
    return " and ".join(axes)
