"""Declare calls and timing calls, check their arguments on every mesh, and find the calls that one check judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from grader import declared
from grader.common.layout import Size
from grader.common.substitution import Ambiguous, substitution
from grader.common.text import near
from grader.declared import AuthorError
from grader.exercise.arguments import Array, names_of, results_tree
from grader.exercise.declarations import Call, Cases, Task
from grader.wire.frames import dtype_of, is_inexact
from grader.wire.trees import Misfit, fitted, flat, is_tree, leaves, rebuilt

KEYWORDS = {
    "dims", "hidden_dims", "static", "hidden_static", "meshes", "wrt", "cotangent", "returns", "steps",
}  # fmt: skip
"""The keywords of ``exercise.call`` besides the task's arguments."""


def declared_call(
    task: Task,
    args: Mapping[str, Any],
    *,
    meshes: Any,
    dims: Any,
    hidden_dims: Any,
    static: Any,
    hidden_static: Any,
    wrt: Any,
    cotangent: Any,
    returns: Any,
    steps: Any,
) -> Call:
    """Return the call of ``task`` with the arguments ``args``. Raises AuthorError for the first invalid argument."""
    arguments = dict(args) | ({} if cotangent is None else {"cotangent": cotangent})
    _check_arrays(task, arguments, KEYWORDS)
    result = None if returns is None else results_tree(returns, args)
    _fit_out_specs(task, result)
    gradients = _gradients(task, wrt, cotangent, args, result)
    if gradients and cotangent is None:
        cotangent = _of_a_loss(result)
    _fit_steps(task, steps, result)
    keywords = declared.keywords("static", static or {})
    hidden_keywords = keywords if hidden_static is None else declared.keywords("hidden_static", hidden_static)
    _same_names(task, "static", "values", "keywords", keywords, hidden_keywords)
    shown = declared.dims("dims", dims)
    hidden = declared.dims("hidden_dims", hidden_dims) or shown
    _related(task, arguments, {*keywords, *shown, "mesh"})
    call = Call(task, args, keywords, (), shown, hidden, gradients, cotangent, hidden_keywords, result, steps)
    return at_sizes(call, meshes, shown, hidden)


def at_sizes(call: Call, meshes: Any, dims: Any, hidden_dims: Any) -> Call:
    """Return ``call`` with other meshes and sizes. Raises AuthorError if an array cannot be sharded on a mesh."""
    shown = declared.dims("dims", dims)
    hidden = declared.dims("hidden_dims", hidden_dims) or shown
    _same_names(call.task, "dims", "sizes", "dimensions", shown, hidden)
    chosen = declared.meshes(meshes)
    arrays = call.arrays
    for mesh in chosen:
        _fit_arrays(arrays, {"dims": shown, "hidden_dims": hidden}, mesh)
    return replace(call, meshes=chosen, dims=shown, hidden_dims=hidden)


def _fit_arrays(arrays: Mapping[str, Array], sizes: Mapping[str, Mapping[str, Size]], mesh: Mapping[str, int]) -> None:
    for of, dims in sizes.items():
        on_mesh = declared.sizes(of, dims, mesh)
        for name, array in arrays.items():
            declared.fits(name, array, on_mesh, mesh, of)


def _check_arrays(task: Task, arguments: Mapping[str, Any], keywords: Set[str]) -> None:
    for argument, tree in arguments.items():
        for name, array in leaves(tree, argument):
            if argument == "cotangent" and array is None:
                continue
            if not isinstance(array, Array):
                problem = f'argument {name} is {declared.a(array)}, not an array such as normal("I", "J")'
                raise AuthorError(f"{task.name}: {problem}{near(argument, keywords - {argument})}")
        _keys_are_names(task, argument, tree)


def _keys_are_names(task: Task, name: str, tree: Any) -> None:
    if not is_tree(tree):
        return
    if not tree:
        raise AuthorError(f"{task.name}: {name} is {declared.a(tree)}, which has no arrays")
    for key, part in tree.items() if isinstance(tree, Mapping) else enumerate(tree):
        if isinstance(tree, Mapping) and not isinstance(key, str):
            raise AuthorError(f"{task.name}: a key of {name} is {declared.a(key)}, not a name")
        _keys_are_names(task, f"{name}[{key!r}]", part)


def _fit_out_specs(task: Task, result: Any) -> None:
    if task.kind == "body" and result is not None:
        try:
            fitted(task.out_specs, names_of(result), prefix=True)
        except Misfit as misfit:
            raise AuthorError(f"{task.name}: out_specs is {misfit}") from None


def _fit_steps(task: Task, steps: Any, result: Any) -> None:
    if not declared.whole(steps):
        raise AuthorError(f"{task.name}: `steps` is {declared.a(steps)}, not a count: 1, 2, 3, ...")
    if steps > 1 and (result is None or not any(leaf.feeds is not None for leaf in flat(result))):
        raise AuthorError(
            f"{task.name}: steps={steps} needs a result that replaces an argument in the next step: "
            'name this result after the argument, as in returns=(like("params"), "loss")'
        )


def _gradients(task: Task, wrt: Any, cotangent: Any, args: Mapping[str, Any], result: Any) -> tuple[str, ...]:
    if cotangent is not None and not wrt:
        raise AuthorError(f"{task.name}: `cotangent` needs gradients: name the arguments to differentiate in wrt=[...]")
    for name in declared.texts("wrt", wrt):
        if name not in args:
            raise AuthorError(
                f"{task.name}: `wrt` names {name!r}, which is not an argument{declared.nearest(name, args)}"
            )
        for leaf, array in leaves(args[name], name):
            if not is_inexact(dtype_of(array.dtype)):
                raise AuthorError(
                    f"{task.name}: `wrt` names {name!r}, but {leaf} has the dtype {array.dtype}, which has no gradient"
                )
    if cotangent is not None:
        try:
            parts = fitted(cotangent, "" if result is None else names_of(result))
        except Misfit as misfit:
            raise AuthorError(f"{task.name}: `cotangent` is {misfit}") from None
        if not any(part is not None for part in parts):
            raise AuthorError(
                f"{task.name}: `cotangent` has no array; leave `cotangent` out if the first result is a loss"
            )
    return tuple(wrt)


def _of_a_loss(result: Any) -> Any:
    """Return a tree of cotangents: 1 for the first result, which is a loss, and None for all other results.

    The program gets the cotangent as an argument, so the operations that depend on it are the backward pass.
    """
    places = enumerate(flat(result) or [None])
    return rebuilt(result, [Array((), (), "float32", _one) if place == 0 else None for place, _ in places])


def _one(_: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.ones(shape)


def _same_names(
    task: Task, word: str, what: str, names: str, shown: Mapping[str, Any], hidden: Mapping[str, Any]
) -> None:
    if shown.keys() != hidden.keys():
        both = f"{', '.join(shown) or 'nothing'} and `hidden_{word}` gives {what} of {', '.join(hidden) or 'nothing'}"
        raise AuthorError(f"{task.name}: `{word}` gives {what} of {both}: both must name the same {names}")


def _related(task: Task, arguments: Mapping[str, Any], known: set[str]) -> None:
    """Check that each array's ``draw`` uses only earlier arguments, static keywords, dimensions and the mesh."""
    before: list[str] = []
    for argument, tree in arguments.items():
        for name, array in leaves(tree, argument):
            for need in array.needs if array else ():
                if need in before or need in known:
                    continue
                if need in arguments:
                    raise AuthorError(
                        f"{task.name}: {name} is drawn from {need}, but `draw` can use only arguments before {name}"
                    )
                raise AuthorError(
                    f"{task.name}: {name} is drawn from {need!r}, "
                    "which is not an earlier argument, a static keyword or a dimension"
                    + declared.nearest(need, {*before, *known})
                )
        before.append(argument)


def timing_of(call: Any, *, on: Any, dims: Any, hidden_dims: Any, meshes: Any, axes: Any, profile: Any) -> Call:
    """Return the timing call. Raises AuthorError for the first invalid argument."""
    if not isinstance(call, Call) or call.timing is not None:
        raise AuthorError(
            f"exercise.timing times {declared.a(call)}, not a call: first write call = exercise.call(...)"
        )
    timed = at_sizes(call, call.meshes if meshes is None else meshes, dims, hidden_dims)
    timed = replace(timed, steps=1, timing=declared.timing(on, axes, profile, timed.meshes), small=call)
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


def related(call: Any, every_mesh: bool) -> tuple[Call | Cases, ...]:
    """Return the calls in the first argument of ``exercise.check``.

    Raises AuthorError if the argument is not a call, or if the calls cannot be judged together.
    """
    if isinstance(call, Cases):
        if every_mesh:
            raise AuthorError(
                f"every_mesh is for calls on meshes; {call.task.name} is plain Python, so leave every_mesh out"
            )
        return (call,)
    if not isinstance(call, Call | list | tuple) or not call:
        raise AuthorError(
            f"exercise.check is given {declared.a(call)}, not the result of exercise.call or exercise.cases"
        )
    calls = declared.kinds("a check", call, Call, "what exercise.call returned")
    if len(set(map(id, calls))) < len(calls):
        raise AuthorError(f"a check names the same call of {calls[0].task.name} twice: name each call once")
    for other in calls[1:]:
        same_modes = len(other.task.modes) == len(calls[0].task.modes)
        if other.meshes != calls[0].meshes or not same_modes:
            what = "meshes" if same_modes else "check_vma"
            raise AuthorError(
                f"a check of {calls[0].task.name} and {other.task.name} needs the same {what} for both calls"
            )
    if every_mesh and len(calls[0].meshes) < 2:
        raise AuthorError(
            f"every_mesh compares meshes, but {calls[0].task.name} is called on one mesh: name at least two meshes"
        )
    return calls
