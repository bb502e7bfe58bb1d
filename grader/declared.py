"""Validation of declarations: each function takes an author's value, and raises AuthorError if it is invalid.

``exercise`` calls these functions while an author's file is executed, so that ``course`` can report the line of the
declaration.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from inspect import Parameter
from typing import Any, TypeVar

from grader import Mistake
from grader.clock import ASYNCHRONOUS, placed
from grader.common.layout import AxisSize, Size, entries, sizes_on
from grader.common.observation import Timing
from grader.common.text import nearest
from grader.wire.frames import DTYPES, NotPlain, encode

F = TypeVar("F", bound=Callable[..., Any])


class AuthorError(Mistake):
    """A declaration in an exercise is invalid. The message names the fault and its place."""


def spelt(called: str) -> Callable[[F], F]:
    """Decorate a function so that errors about unknown or missing arguments name the function as authors do.

    Args:
        called: the function's name for authors, such as ``exercise.number``.
    """

    def around(fn: F) -> F:
        signature = inspect.signature(fn)

        @functools.wraps(fn)
        def checked(*args: Any, **named: Any) -> Any:
            try:
                signature.bind(*args, **named)
            except TypeError as error:
                raise AuthorError(f"{called}: {_misfit(called, signature, args, named) or error}") from None
            return fn(*args, **named)

        return checked  # type: ignore[return-value]

    return around


def _misfit(called: str, signature: inspect.Signature, args: tuple, named: Mapping[str, Any]) -> str:
    """Return a text that names the unknown or missing argument; '' if the arguments fit."""
    if len(args) == 2 and inspect.isfunction(args[1]) and not named:
        return f"the decorator takes arguments: write @{called}(...) above {args[1].__name__}"
    parameters = signature.parameters.values()
    known = [p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return _unknown(parameters, known, named) or _missing(known, args, named)


def _unknown(parameters: Collection[Parameter], known: Sequence[Parameter], named: Mapping[str, Any]) -> str:
    names = [p.name for p in known if p.name != "self"]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return ""
    return next((f"no such argument {name!r}{nearest(name, names)}" for name in named if name not in names), "")


def _missing(known: Sequence[Parameter], args: tuple, named: Mapping[str, Any]) -> str:
    positional = [p.name for p in known if p.kind is not p.KEYWORD_ONLY]
    given = {*named, *positional[: len(args)]}
    missing = [p.name for p in known if p.default is p.empty and p.name not in given]
    return f"{missing[0]}=... is missing" if missing else ""


def a(value: object) -> str:
    """Return a description such as ``the str 'q'``, for a value of the wrong kind."""
    if value is None:
        return "None"
    text = repr(value)
    short = text if len(text) <= 40 and "\n" not in text and " at 0x" not in text and text[0] != "<" else ""
    name = getattr(value, "name", None) or getattr(value, "__name__", None) or short
    return f"the {type(value).__name__} {name}".rstrip()


def whole(value: object) -> bool:
    """Return whether ``value`` is an integer of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


# -- sizes -------------------------------------------------------------------------------------


def meshes(value: Any) -> tuple[dict[str, int], ...]:
    if isinstance(value, Mapping):
        raise AuthorError(f"`meshes` must be a list of meshes, not one mesh: write meshes=[{dict(value)!r}]")
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise AuthorError(f'`meshes` is {a(value)}, not a list such as [{{"x": 4, "y": 2}}]')
    if not value:
        raise AuthorError("`meshes` is empty: give at least one mesh")
    for mesh in value:
        if not isinstance(mesh, Mapping) or not mesh:
            raise AuthorError(f'a mesh is {a(mesh)}, not a dict of axes and sizes such as {{"x": 4, "y": 2}}')
        for axis, size in mesh.items():
            if not isinstance(axis, str) or not axis.isidentifier():
                raise AuthorError(f'an axis of the mesh {dict(mesh)} is {a(axis)}, not a name such as "x"')
            if not whole(size):
                raise AuthorError(f"the size of axis {axis} of the mesh {dict(mesh)} is {a(size)}, not 1, 2, 3, ...")
    return tuple(dict(mesh) for mesh in value)


def dims(name: str, value: Any) -> dict[str, Size]:
    """Return the size of each dimension; a size may depend on the mesh.

    ``name``: the name of the author's keyword, such as "hidden_dims", which error messages contain.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise AuthorError(f'`{name}` is {a(value)}, not a dict of sizes such as {{"I": 48}}')
    for dim, size in value.items():
        if not isinstance(dim, str):
            raise AuthorError(f'{name}: a dimension is {a(dim)}, not a name such as "I"')
        if isinstance(size, AxisSize) and size.times < 1:
            raise AuthorError(
                f'{name}: dimension {dim} has the size {size}; write a positive multiple such as 4 * axis("x")'
            )
        if not whole(size) and not isinstance(size, AxisSize):
            raise AuthorError(f"{name}: the size of dimension {dim} is {a(size)}, not 1, 2, 3, ...")
    return dict(value)


def sizes(name: str, value: Mapping[str, Size], mesh: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of ``dims`` on this mesh. Raises AuthorError if a size needs an axis that the mesh lacks."""
    for dim, size in value.items():
        for axis in size.axes if isinstance(size, AxisSize) else ():
            if axis not in mesh:
                problem = (
                    f"the size of dimension {dim}, {size}, uses the axis {axis!r}, but the mesh {dict(mesh)} lacks it"
                )
                raise AuthorError(f"{name}: {problem}")
    return sizes_on(mesh, value)


def shape(value: tuple) -> tuple[int | str, ...]:
    for size in value:
        if not isinstance(size, str) and not whole(size):
            raise AuthorError(f'a dimension of a shape is {a(size)}, not a name or a size as in normal("I", 8)')
    return value


def spec(value: Any, ndim: int) -> tuple:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise AuthorError(f'`spec` is {a(value)}, not a PartitionSpec such as P("x", None)')
    found = tuple(value)
    for entry in found:
        if not (entry is None or isinstance(entry, str) or _is_axes(entry)):
            raise AuthorError(f"an entry of `spec` is {a(entry)}, not None, an axis or a tuple of axes")
    if len(found) > ndim:
        raise AuthorError(f"`spec` has more entries ({len(found)}) than the array has dimensions ({ndim})")
    axes = [axis for names in entries(found, ndim) for axis in names]
    for axis in axes:
        if axes.count(axis) > 1:
            raise AuthorError(f"`spec` names axis {axis} twice: an axis can cut only one dimension")
    return found


def _is_axes(entry: object) -> bool:
    return isinstance(entry, tuple) and all(isinstance(axis, str) for axis in entry)


def dtype(value: Any) -> str:
    if not isinstance(value, str):
        raise AuthorError(f'`dtype` is {a(value)}, not a name such as "float32"')
    if value not in DTYPES:
        raise AuthorError(f"no such dtype {value!r}{nearest(str(value), DTYPES)}")
    return value


def fits(name: str, array: Any, sizes: Mapping[str, int], mesh: Mapping[str, int], of: str) -> None:
    """Raise AuthorError if ``sizes`` lacks a dimension, the mesh lacks an axis, or the shards would differ in size.

    Args:
        of: the keyword with which the author gives ``sizes``: dims or hidden_dims.
    """
    for dim, axes in zip(array.shape, entries(array.spec, len(array.shape)), strict=True):
        if isinstance(dim, str) and dim not in sizes:
            raise AuthorError(f"no size given for dimension {dim!r} of {name}: add it to {of}")
        for axis in axes:
            if axis not in mesh:
                raise AuthorError(f"the spec of {name} names axis {axis!r}, which the mesh {dict(mesh)} does not have")
        size, parts = sizes[dim] if isinstance(dim, str) else dim, math.prod(mesh[axis] for axis in axes)
        if size % parts:
            named = f"{dim} = {size} in {of}" if isinstance(dim, str) else f"{size}"
            raise AuthorError(
                f"{name}: dimension {named} cannot be cut into {parts} equal parts on the mesh {dict(mesh)}"
            )


def timing(on: Any, axes: Any, profile: Any, meshes: Sequence[Mapping[str, int]]) -> Timing:
    """Return the TPU slice, its axes and the profile for which the grader computes a program's timeline.

    Raises AuthorError if an argument is invalid, or if a mesh does not fit on the slice.
    """
    if not isinstance(on, str):
        raise AuthorError(f'`on` is {a(on)}, not a slice such as "v5e:2x4"')
    if profile not in ASYNCHRONOUS:
        raise AuthorError(f"no such profile {profile!r}{nearest(str(profile), ASYNCHRONOUS)}")
    chosen = None
    if axes is not None:
        chosen = {name: _places(name, where) for name, where in mapping("`axes`", axes, '{"x": [0, 1]}').items()}
    for mesh in meshes:
        try:
            placed(on, mesh, chosen)
        except ValueError as error:
            raise AuthorError(f"on={on!r}: {error}") from None
    return Timing(on, chosen, profile)


def _places(axis: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(type(i) is int for i in value):
        raise AuthorError(f"`axes`: {axis} is {a(value)}, but must list axes of the slice by number, such as [0, 1]")
    return tuple(value)


# -- points and texts of a declaration -----------------------------------------------------------


def points(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise AuthorError(f"`points` is {a(value)}, but must be a number of at least 0")
    return value


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise AuthorError(f"`{name}` is {a(value)}, not True or False")
    return value


def axis_types(value: Any) -> str:
    if value not in ("auto", "explicit"):
        raise AuthorError(f'`axis_types` is {a(value)}, not "auto" or "explicit": all axes of the mesh are of one type')
    return value


def rtol(value: Any) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1):
        raise AuthorError(f"`rtol` is {a(value)}, not a number from 0 up to 1, such as 0.02")
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(t, str) for t in value):
        raise AuthorError(f"`{name}` is {a(value)}, not a list of texts: write {name}=[...]")
    return tuple(value)


def mapping(name: str, value: Any, such_as: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise AuthorError(f"{name} is {a(value)}, not a dict such as {such_as}")
    return dict(value)


def params(value: Any) -> dict[str, Sequence[Any]]:
    """Return the values from which each parameter of a question is drawn."""
    found = mapping("`params`", value, '{"X": [4, 8]}')
    for name, choices in found.items():
        if isinstance(choices, str | Mapping) or not isinstance(choices, Sequence) or not choices:
            raise AuthorError(f"params: {name} has {a(choices)}, not a list of choices such as [4, 8]")
    return found


def function(name: str, value: Any, such_as: str) -> Any:
    if not callable(value):
        raise AuthorError(f"{name} is {a(value)}, not a function such as {such_as}")
    return value


def draws(fn: Any) -> tuple[str, ...]:
    """Return the names of the inputs that a drawing function needs besides generator and shape."""
    such_as = "lambda rng, shape: rng.permutation(shape[0])"
    try:
        found = list(inspect.signature(function("`draw`", fn, such_as)).parameters.values())
    except (TypeError, ValueError):  # raised for a builtin without a signature
        raise AuthorError(f"`draw` is {a(fn)}, which does not show its parameters: write {such_as}") from None
    first, rest = found[:2], [p for p in found[2:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(first) < 2 or not all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in first):
        raise AuthorError(f"`draw` takes ({', '.join(p.name for p in found)}), not a generator and a shape: {such_as}")
    if unnamed := [p.name for p in rest if p.kind is p.POSITIONAL_ONLY]:
        raise AuthorError(
            f"`draw` takes {unnamed[0]} by position only, but the grader passes related inputs by name: remove the /"
        )
    return tuple(p.name for p in rest if p.default is p.empty)


def takes(what: str, fn: Callable[..., Any], names: Iterable[str]) -> None:
    """Raise AuthorError if ``fn`` cannot be called with keyword arguments named ``names``."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # raised for a builtin without a signature
        return
    names = list(names)
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        raise AuthorError(f"{what} is called with {', '.join(names) or 'nothing'}: {error}") from None


def takes_keywords_of(right: Callable[..., Any], fn: Callable[..., Any]) -> None:
    """Raise AuthorError if ``fn`` cannot be called with the arguments that ``right`` takes only by keyword."""
    parameters = inspect.signature(right).parameters.values()
    names = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    try:
        inspect.signature(fn).bind_partial(**dict.fromkeys(names))
    except TypeError as error:
        raise AuthorError(f"{fn.__name__} is called with {', '.join(names)}, like {right.__name__}: {error}") from None


def takes_in_order(fn: Callable[..., Any], count: int) -> None:
    """Raise AuthorError if a check's function cannot be called with ``count`` ``Seen`` objects."""
    try:
        inspect.signature(fn).bind(*[None] * count)
    except TypeError:
        such_as = ", ".join(["seen", "other", "third", "fourth"][:count]) if count <= 4 else "*seen"
        raise AuthorError(f"{fn.__name__} checks {count} calls: write def {fn.__name__}({such_as})") from None


def keywords(name: str, value: Any) -> dict[str, Any]:
    """Return the static keyword arguments of a call.

    ``name``: the name of the author's keyword, such as "hidden_static", which error messages contain.
    """
    found = mapping(f"`{name}`", value, '{"dim": 0}')
    plain(name, found)
    return found


def plain(what: str, values: Mapping[str, Any]) -> None:
    """Raise AuthorError for values that cannot be sent to a learner's function."""
    for name, value in values.items():
        try:
            encode(value)
        except NotPlain as error:
            raise AuthorError(
                f"{what} {name} is {a(value)}, which cannot be sent to the learner's process: {error}"
            ) from None


def kinds(name: str, value: Any, kind: type, due: str) -> tuple[Any, ...]:
    """Return one or several declarations as a tuple.

    ``name``: the subject of error messages, such as "a check". ``due``: the expected kind in words, for error messages.
    """
    found = (value,) if isinstance(value, kind) or not isinstance(value, Sequence) or isinstance(value, str) else value
    for one in found:
        if not isinstance(one, kind):
            raise AuthorError(f"{name} names {a(one)}, not {due}")
    return tuple(found)
