"""Array arguments of a call, with hidden values that the grader draws (generates at random), and its declared results.

Results form a tree of names. A result can become an argument of the program's next run (step).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from grader import declared
from grader.common.layout import AxisSize
from grader.declared import AuthorError
from grader.wire.frames import dtype_of, is_inexact, wide
from grader.wire.trees import branches, flat, is_tree, leaves, mapped

EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Array:
    """An array argument with hidden values. ``shape`` may name dimensions; the call's ``dims`` give their sizes.

    ``draw(rng, shape, **related)`` returns the values. ``needs`` lists the names in ``related``: earlier arguments of
    the call, static keywords, dimensions or ``mesh``. ``mesh`` gets the sizes of the mesh axes.
    """

    shape: tuple[int | str, ...]
    spec: tuple
    dtype: str
    draw: Callable[..., Any]
    needs: tuple[str, ...] = ()

    def sized(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        try:
            return tuple(dims[n] if isinstance(n, str) else n for n in self.shape)
        except KeyError as missing:
            raise AuthorError(f"no size given for dimension {missing}") from None

    def sample(
        self, dims: Mapping[str, int], rng: np.random.Generator, related: Mapping[str, Any] = EMPTY
    ) -> np.ndarray:
        """Draw the values of this array, read-only. Raises AuthorError if ``draw`` fails or its values are invalid."""
        shape = self.sized(dims)
        chosen = {name: related[name] for name in self.needs}
        try:
            found = np.asarray(self.draw(rng, shape, **chosen))
        except Exception as error:  # the author's function may raise anything
            raise AuthorError(f"its function `draw` raises {type(error).__name__}: {error}") from None
        return _held(found, shape, dtype_of(self.dtype))


def _held(found: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return the drawn values in a dtype.

    Only a conversion from floats to another float dtype may round values (complex numbers count as floats). Raises
    AuthorError if another conversion would change a value, or if the values are not finite numbers of this shape.
    """
    if found.dtype.kind in "OSUMm":
        raise AuthorError(f"the drawn array has dtype {found.dtype}, which is not a type of numbers")
    if found.shape != shape:
        raise AuthorError(f"the drawn array has shape {found.shape}, expected {shape}")
    if is_inexact(found.dtype) and not np.isfinite(wide(found)).all():
        raise AuthorError("the drawn array has NaN or infinite values")
    cast, kept = _cast(found, dtype)
    if not kept.all():
        raise AuthorError(f"the drawn value {found[~kept][0]} ({found.dtype}) does not fit into {dtype}")
    cast.flags.writeable = False
    return cast


def _cast(found: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the values in a dtype, and a mask of the values that the dtype can hold."""
    if _complex(found.dtype) and not _complex(dtype):
        real, kept = _cast(np.real(found), dtype)
        return real, kept & (np.imag(found) == 0)
    with np.errstate(all="ignore"):
        cast = found.astype(dtype)
        if is_inexact(found.dtype) and is_inexact(dtype):
            return cast, np.isfinite(wide(cast))
        back = np.real(wide(cast)) if _complex(dtype) else cast
        # As uint64, -1 becomes 2**64 - 1 and comes back as -1, so compare signs too.
        signs = (wide(back) < 0) == (wide(found) < 0)
        return cast, signs & (back.astype(found.dtype) == found)


def _complex(dtype: np.dtype) -> bool:
    return dtype.kind in "cW"


# -- API for authors ---------------------------------------------------------------------------


@declared.spelt("array")
def array(*shape: int | str, draw: Callable[..., Any], spec: Iterable = (), dtype: str = "float32") -> Array:
    """Draw values by a function: ``array("T", draw=lambda rng, shape, E: rng.integers(E, size=shape), dtype="int32")``.

    ``draw`` is a function of a generator and the array's shape. Each further parameter without a default has the name
    of an earlier argument, a static keyword or a dimension, and gets its value. A parameter ``mesh`` gets the size of
    every axis. The values may depend on nothing else.
    """
    return _array(shape, spec, dtype, draw, declared.draws(draw))


@declared.spelt("normal")
def normal(*shape: int | str, spec: Iterable = (), dtype: str = "float32") -> Array:
    """Draw standard normal values: ``normal("I", "J", spec=P("x", None))``.

    A complex dtype gets complex values with independent parts and variance 1, as ``jax.random.normal`` does.
    """
    found = declared.dtype(dtype)
    return _array(shape, spec, found, _complex_normal if _complex(dtype_of(found)) else _normal)


@declared.spelt("integers")
def integers(low: int, high: int, *shape: int | str, spec: Iterable = (), dtype: str = "int32") -> Array:
    """Draw integers in ``low <= n < high``."""
    if not (isinstance(low, int) and isinstance(high, int) and low < high):
        raise AuthorError(f"integers: `low` is {low!r} and `high` is {high!r}; give integers with `low` below `high`")
    return _array(shape, spec, dtype, _Integers(low, high))


@declared.spelt("axis")
def axis(name: str) -> AxisSize:
    """Return the size of a mesh axis, to use in ``dims={"E": axis("x"), "T": 4 * axis("x") * axis("y")}``."""
    if not isinstance(name, str) or not name.isidentifier():
        raise AuthorError(f'`axis` is given {declared.a(name)}, not a name such as "x"')
    return AxisSize((name,))


def _array(shape: tuple, spec: Iterable, dtype: str, draw: Callable[..., Any], needs: tuple[str, ...] = ()) -> Array:
    return Array(declared.shape(shape), declared.spec(spec, len(shape)), declared.dtype(dtype), draw, needs)


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape)


def _complex_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


@dataclass(frozen=True)
class _Integers:
    low: int
    high: int

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(self.low, self.high, shape)


@dataclass(frozen=True)
class Like:
    """A part of the declared result that has the structure of an argument; the function ``like`` makes it."""

    argument: str
    name: str


@declared.spelt("like")
def like(argument: str, name: str = "") -> Like:
    """Declare a result with the structure of an argument: ``returns=("loss", like("params", "grads"))``.

    Args:
        argument: the name of the argument.
        name: the result's name; by default the argument's name. In a program of several steps, a result with an
            argument's name becomes this argument in the next step.
    """
    for word, value in (("argument", argument), ("name", name)):
        if not isinstance(value, str) or not (value or "_").isidentifier():
            raise AuthorError(f"like: `{word}` is {declared.a(value)}, not a name")
    return Like(argument, name or argument)


@dataclass(frozen=True)
class CallResult:
    """One array of a call's result.

    Attributes:
        name: the array's name, such as ``grads['w1']``.
        dtype: the dtype that the array must have. An array that is declared by ``like`` or by an argument's name has
            the argument's dtype. "" for other arrays, which must have ``Call.dtype``.
        feeds: the array of an argument that this array replaces in the next step, as a position in the list of all
            arguments' arrays. None if this array replaces none.
    """

    name: str
    dtype: str = ""
    feeds: int | None = None


def results_tree(returns: Any, args: Mapping[str, Any]) -> Any:
    """Return the declared tree with a ``CallResult`` for each leaf.

    Raises AuthorError if a name occurs twice, if ``like`` names no argument, or if a result with an argument's name has
    another structure.
    """
    place = {name: at for at, (name, _) in enumerate(leaf for a in args for leaf in leaves(args[a], a))}

    def build(part: Any) -> Any:
        if isinstance(part, Like):
            if part.argument not in args:
                raise AuthorError(
                    f"`like` names {part.argument!r}, not an argument{declared.nearest(part.argument, args)}"
                )
            return _like(args[part.argument], part.name, place)
        if isinstance(part, str) and part.isidentifier():
            return CallResult(part, args[part].dtype if isinstance(args.get(part), Array) else "", place.get(part))
        if not is_tree(part) or not part:
            raise AuthorError(f'`returns` has {declared.a(part)}, not a name such as "loss" or like("params")')
        if isinstance(part, Mapping):
            return {
                name: build(inner) for name, inner in declared.mapping("`returns`", part, '{"loss": "loss"}').items()
            }
        return type(part)(map(build, part))

    found = build(returns)
    names = [result.name for result in flat(found)]
    for name in names:
        if names.count(name) > 1:
            raise AuthorError(
                f"`returns` has two results that are called {name}: "
                'give one of them another name, as in like("params", "grads")'
            )
    return _fed_whole(found, args)


def _like(tree: Any, name: str, place: Mapping[str, int]) -> Any:
    if not is_tree(tree):
        return CallResult(name, tree.dtype, place.get(name))
    parts = {key: _like(part, f"{name}[{key!r}]", place) for key, part in branches(tree)}
    return parts if isinstance(tree, Mapping) else type(tree)(parts.values())


def _fed_whole(found: Any, args: Mapping[str, Any]) -> Any:
    """Return ``found``. Raises AuthorError if a result with an argument's name lacks leaves of the argument."""
    names = {result.name for result in flat(found)}
    for argument, tree in args.items():
        due = {name for name, _ in leaves(tree, argument)}
        if any(name.split("[")[0] == argument for name in names) and not due <= names:
            raise AuthorError(
                f"`returns` has only some arrays of the argument {argument}; to return all, write `like({argument!r})`"
            )
    return found


def names_of(tree: Any) -> Any:
    """Return the tree with the results' names in place of the results."""
    return mapped(lambda result: result.name, tree)
