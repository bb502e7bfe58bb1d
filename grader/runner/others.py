"""Replacement values for an array, used to find out which results depend on an operation's result.

Replacement values stay in the array's range, so that indices mostly stay valid and nothing overflows. Floats do not
exceed the array's largest magnitude. Integers stay between the array's smallest and largest integer if these differ.
Booleans are inverted. NaN and infinite values become finite. An element keeps its value only by chance.

The replacement values depend on pseudorandom *noise*. The noise differs between elements and between devices, so a
later mean, norm, scale or shift in the program cannot cancel all changes. A number, the *salt*, selects the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from jax import lax

from grader.wire.frames import dtype_of

SPREAD = 1 << 16
STREAMS = 2  # number of noise arrays for one shape


@cache
def lowered(shape: tuple[int, ...], dtype: str) -> str:
    """Lower the function ``chosen`` for arrays of this shape and dtype. Return the text of a StableHLO module."""
    scalar = jax.ShapeDtypeStruct((), np.int32)
    drawn = [jax.ShapeDtypeStruct(shape, np.uint32)] * STREAMS
    return _lowered(chosen, jax.ShapeDtypeStruct(shape, dtype_of(dtype)), scalar, scalar, *drawn)


@cache
def lowered_noise(shape: tuple[int, ...]) -> str:
    """Lower the function ``noise`` for arrays of this shape, with ``salt`` as its argument.

    Return the text of a StableHLO module.
    """
    return _lowered(partial(noise, shape), jax.ShapeDtypeStruct((), np.int32))


def _lowered(function: Any, *arguments: Any) -> str:
    with jax.enable_x64(True), jax.set_mesh(None):  # type: ignore[arg-type]
        return jax.jit(function, keep_unused=True).lower(*arguments).as_text()


def chosen(array: Any, wanted: Any, number: Any, *drawn: Any) -> Any:
    """Return replacement values if the operation's ``number`` equals ``wanted``, else the unchanged array.

    ``drawn``: noise of the array's shape.
    """
    return lax.select(lax.broadcast(lax.eq(wanted, number), array.shape), others(array, drawn), array)


def noise(shape: tuple[int, ...], salt: Any) -> list[Any]:
    """Return two arrays of pseudorandom numbers below ``SPREAD``, which differ for each element and each ``salt``.

    The ``optimization_barrier`` asks XLA to compute the noise only once for all uses, but XLA may ignore this.
    """
    return lax.optimization_barrier([_mixed(shape, salt, stream) for stream in range(1, STREAMS + 1)])


def others(array: Any, drawn: Sequence[Any]) -> Any:
    """Return replacement values for an array. ``drawn``: noise of the array's shape."""
    if not array.size:
        return array
    if array.dtype == bool:
        return lax.bitwise_not(array)
    if np.issubdtype(array.dtype, np.complexfloating):
        return lax.complex(_other_floats(lax.real(array), drawn), _other_floats(lax.imag(array), drawn))
    if np.issubdtype(array.dtype, np.integer):
        return _other_integers(array, drawn)
    if array.dtype.kind == "V" and array.dtype.name.startswith(("int", "uint")):
        return lax.convert_element_type(_other_integers(lax.convert_element_type(array, "int32"), drawn), array.dtype)
    return _other_floats(array, drawn)


def _other_floats(array: Any, drawn: Sequence[Any]) -> Any:
    """Return the negated floats, scaled by random factors and shifted by a random fraction of the largest magnitude."""
    kind = array.dtype
    wide = lax.convert_element_type(array, "float64" if kind == np.float64 else "float32")
    finite = lax.select(lax.is_finite(wide), wide, lax.full_like(wide, 0))
    largest = lax.reduce_max(lax.abs(finite), tuple(range(wide.ndim)))
    largest = lax.select(lax.gt(largest, lax.full_like(largest, 0)), largest, lax.full_like(largest, 1))
    one, two = (lax.convert_element_type(each, wide.dtype) * (1 / SPREAD) for each in drawn)  # numbers from 0 to 1
    made = lax.mul(finite, lax.neg(0.25 + 0.5 * one)) + lax.broadcast(largest, array.shape) * (0.25 * two)
    return lax.convert_element_type(made, kind)


def _other_integers(array: Any, drawn: Sequence[Any]) -> Any:
    """Return other integers between the smallest and the largest integer; if these are equal, the next larger one."""
    unsigned = np.dtype(f"uint{8 * array.dtype.itemsize}")
    dims = tuple(range(array.ndim))
    low, high = lax.reduce_min(array, dims), lax.reduce_max(array, dims)

    def plain(value: Any) -> Any:
        return lax.convert_element_type(value, unsigned)

    span = lax.broadcast(plain(high) - plain(low), array.shape)
    nothing, one = lax.full_like(span, 0), lax.full_like(span, 1)
    upper, lower = (lax.convert_element_type(each, np.uint64) for each in drawn)
    mixed = lax.convert_element_type(upper * np.uint64(SPREAD) + lower, unsigned)
    step = one + lax.rem(mixed, lax.max(span, one))  # the step is at least 1 and at most ``span``
    place = plain(array) - lax.broadcast(plain(low), array.shape)
    moved = lax.select(lax.gt(place, span - step), place - (span - step) - one, place + step)
    moved = lax.select(lax.eq(span, nothing), one, moved)
    return lax.convert_element_type(moved + lax.broadcast(plain(low), array.shape), array.dtype)


def _mixed(shape: tuple[int, ...], salt: Any, stream: int) -> Any:
    place = lax.full(shape, np.uint32(stream * 0x9E3779B9 & 0xFFFFFFFF))
    place = place + lax.broadcast(lax.convert_element_type(salt, "uint32") * np.uint32(0x85EBCA6B), shape)
    for dim in range(len(shape)):
        place = (place ^ lax.broadcasted_iota("uint32", shape, dim)) * np.uint32(0xC2B2AE35)
        place = place ^ lax.shift_right_logical(place, lax.full_like(place, 15))
    place = place * np.uint32(0x27D4EB2F)
    return lax.shift_right_logical(place, lax.full_like(place, 16))
