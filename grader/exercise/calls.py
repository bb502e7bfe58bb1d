"""What a call is declared with, checked on every mesh that it is asked on."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grader import declared
from grader.declared import AuthorError
from grader.exercise.arguments import Array
from grader.exercise.declarations import Call, Task

KEYWORDS = {"dims", "hidden_dims", "static", "hidden_static", "meshes", "wrt", "cotangent"}
"""What ``exercise.call`` takes beside the arguments of the task."""


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
) -> Call:
    """The call of these arguments. Raises AuthorError for the first of them that cannot be."""
    arrays = _arrays(task, dict(args) | ({} if cotangent is None else {"cotangent": cotangent}))
    gradients = _gradients(task, wrt, cotangent, args)
    keywords = declared.keywords("static", static or {})
    hidden_keywords = keywords if hidden_static is None else declared.keywords("hidden_static", hidden_static)
    _same_names(task, "static", "values", "keywords", keywords, hidden_keywords)
    shown = declared.dims("dims", dims)
    hidden = declared.dims("hidden_dims", hidden_dims) or shown
    _same_names(task, "dims", "sizes", "dimensions", shown, hidden)
    _related(task, arrays, {*keywords, *shown, "mesh"})
    chosen = declared.meshes(meshes)
    for (of, sizes), mesh in itertools.product((("dims", shown), ("hidden_dims", hidden)), chosen):
        on_mesh = declared.sizes(of, sizes, mesh)
        for name, array in arrays.items():
            declared.fits(name, array, on_mesh, mesh, of)
    return Call(task, args, keywords, chosen, shown, hidden, gradients, cotangent, hidden_keywords)


def _arrays(task: Task, args: Mapping[str, Any]) -> dict[str, Array]:
    for name, array in args.items():
        if not isinstance(array, Array):
            problem = f'argument {name} is {declared.a(array)}, not an array such as normal("I", "J")'
            raise AuthorError(f"{task.name}: {problem}{declared.near(name, KEYWORDS - {name})}")
    return dict(args)


def _gradients(task: Task, wrt: Sequence[str], cotangent: Any, args: Iterable[str]) -> tuple[str, ...]:
    if bool(wrt) != (cotangent is not None):
        raise AuthorError(f"{task.name}: a call that asks for gradients needs both wrt and cotangent")
    for name in declared.texts("wrt", wrt):
        if name not in args:
            raise AuthorError(f"{task.name}: wrt names {name!r}, which is no argument{declared.nearest(name, args)}")
    return tuple(wrt)


def _same_names(
    task: Task, word: str, what: str, names: str, shown: Mapping[str, Any], hidden: Mapping[str, Any]
) -> None:
    if shown.keys() != hidden.keys():
        both = f"{', '.join(shown) or 'nothing'}, hidden_{word} of {', '.join(hidden) or 'nothing'}"
        raise AuthorError(f"{task.name}: {word} gives {what} of {both}: both must name the same {names}")


def _related(task: Task, arrays: Mapping[str, Array], known: set[str]) -> None:
    """What an array is drawn from is known when it is drawn."""
    before: list[str] = []
    for name, array in arrays.items():
        for need in array.needs:
            if need in before or need in known:
                continue
            if need in arrays:
                raise AuthorError(f"{task.name}: {name} is drawn from {need}, which comes after it: write {need} first")
            raise AuthorError(
                f"{task.name}: {name} is drawn from {need!r}, which is no argument before it, no static keyword and no "
                f"dimension{declared.nearest(need, {*before, *known})}"
            )
        before.append(name)
