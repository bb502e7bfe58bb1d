"""Frames (messages between the grader and its workers), and plain values as JSON. Pickle is never used.

A frame is a JSON header and any number of blobs of bytes. Its bytes are ``u32 header length | header | blobs``, where
``header["blobs"]`` lists the blobs' lengths.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from grader.wire.limits import MAX_BLOBS, MAX_HEADER
from grader.wire.messages import PackedArray

# Limits of this parser: nested levels of a value, nested brackets in a JSON text, digits of an integer. For each level
# of a value, ``encode`` nests three brackets.
MAX_DEPTH = 24
MAX_NESTING = 120
MAX_DIGITS = 4000


class BadFrame(Exception):
    """Bytes are not a valid frame, or JSON is not valid data: the process that sent them is broken or hostile."""


def pack(header: Mapping[str, Any], blobs: list[bytes] | None = None) -> bytes:
    blobs = blobs or []
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}).encode()
    return b"".join([struct.pack("<I", len(text)), text, *blobs])


def read_frame(
    read: Callable[[int], bytes], *, max_header: int = MAX_HEADER, max_blobs: int = MAX_BLOBS
) -> tuple[dict[str, Any], list[bytes]]:
    """Return the header and the blobs of the next frame.

    Raises BadFrame for bytes that are not a frame, or that exceed the limits.

    Args:
        read: a function of n that returns the next n bytes, or raises EOFError.
    """
    (length,) = struct.unpack("<I", read(4))
    if length > max_header:
        raise BadFrame(f"the header has {length:,} bytes; {max_header:,} are the limit")
    header = json_of(read(length), "the header is")
    sizes = header.pop("blobs", None) if isinstance(header, dict) else None
    if not isinstance(sizes, list) or not all(type(n) is int and n >= 0 for n in sizes) or sum(sizes) > max_blobs:
        raise BadFrame("the header does not say how long its blobs are")
    return header, [read(n) for n in sizes]


def json_of(data: bytes, what: str) -> Any:
    """Parse JSON that another process wrote. Raises BadFrame, with a message that begins with ``what``.

    Half of a surrogate pair in a string becomes ``?``, because UTF-8 cannot express it.
    """
    try:
        text = data.decode("utf-8")  # json.loads would accept the bytes of half a surrogate pair
        if nesting(text) > MAX_NESTING:
            raise BadFrame(f"{what} nested too deeply")
        found = json.loads(text)
        if _SURROGATE.search(text):  # half a surrogate pair may be written as an escape such as ``\ud800``
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"{what} not JSON") from error
    return found


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')


def nesting(text: str) -> int:
    """Return the nesting depth of a JSON text.

    Return 0 for a text with at most MAX_NESTING opening brackets, to save time.
    """
    if text.count("[") + text.count("{") <= MAX_NESTING:
        return 0
    marks = np.frombuffer(_STRING.sub("", text).encode(), np.uint8)
    opens, closes = np.isin(marks, [91, 123]), np.isin(marks, [93, 125])
    return int(np.max(np.cumsum(opens.astype(np.int32) - closes), initial=0))


def reader(fd: int) -> Callable[[int], bytes]:
    """Return a function of n that returns the next n bytes of the pipe ``fd``, or raises EOFError at its end."""

    def read(n: int) -> bytes:
        parts = []
        while n:
            part = os.read(fd, min(n, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    return read


# -- arrays ------------------------------------------------------------------------------------


NATIVE = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
NARROW = [t for t in vars(ml_dtypes).values() if isinstance(t, type) and issubclass(t, np.generic)]
DTYPES = {dtype.name: dtype for dtype in (np.dtype(kind) for kind in [*NATIVE, *NARROW])}
"""Every dtype that a JAX array can have, by name."""


def dtype_of(name: str) -> np.dtype:
    """Return a NumPy dtype by name, including bfloat16, float8 and int4. Raises ValueError for unknown names."""
    if name not in DTYPES:
        raise ValueError(f"there is no array type {name!r}")
    return DTYPES[name]


@cache
def is_inexact(dtype: np.dtype) -> bool:
    """Return whether this is a dtype of floats or complex numbers, of any width."""
    return dtype.kind in "cW" or "float" in dtype.name


def wide(array: np.ndarray) -> np.ndarray:
    """Return the array as complex128 if it is complex, else as float64."""
    return array.astype(np.complex128 if array.dtype.kind in "cW" else np.float64)


def widened(array: np.ndarray) -> np.ndarray:
    """Return the array in the widest dtype of its kind: float64, complex128, int64, uint64 or bool."""
    if array.dtype.kind == "b":
        return array.copy()
    if is_inexact(array.dtype):
        return wide(array)
    return array.astype(np.uint64 if array.dtype.name.startswith("uint") else np.int64)


def pack_array(array: np.ndarray) -> tuple[PackedArray, bytes]:
    return {"shape": list(array.shape), "dtype": array.dtype.name}, np.ascontiguousarray(array).tobytes()


def unpack_array(about: Mapping[str, Any], data: bytes) -> np.ndarray:
    """Return the array that ``pack_array`` packed. Raises BadFrame if the bytes do not fit the shape and the dtype."""
    try:
        name, shape = about["dtype"], tuple(about["shape"])
        dtype = dtype_of(name)
        if not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("a shape has only integers of at least 0")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise ValueError("wrong length")
        return np.frombuffer(data, dtype).reshape(shape)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadFrame(f"not an array: {error}") from error


# -- plain values ------------------------------------------------------------------------------


NOT_PLAIN = "NotPlain"
"""The name of the error that the grader reports for a function whose result is not plain."""


class NotPlain(Exception):
    """A value is not plain.

    Plain values are None, numbers, strings and arrays, and tuples, lists, dicts, slices and PartitionSpecs of plain
    values.
    """


def is_spec(value: object) -> bool:
    """Return whether ``value`` is a PartitionSpec, without importing JAX.

    Since JAX 0.8, the class PartitionSpec has the name P.
    """
    return type(value).__name__ in ("P", "PartitionSpec")


def encode(value: Any, depth: int = 0) -> Any:
    """Return a plain value as JSON.

    ``decode`` restores the value and its type, with two exceptions: arrays become lists, and fractions and decimals
    become ints or floats. Raises NotPlain for a value that is not plain.
    """
    if depth > MAX_DEPTH:
        raise NotPlain("is nested too deeply")
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case int():
            return _encode_int(int(value))
        case float():
            return _encode_float(float(value))
        case complex():
            return {"complex": [_encode_float(value.real), _encode_float(value.imag)]}
        case Fraction() | Decimal():
            return encode(_number(value), depth)
    if is_spec(value):  # before the case of tuples, because in some versions of JAX a PartitionSpec is a tuple
        return _encode_spec(value, depth)
    return _encode_parts(value, depth + 1)


def _encode_parts(value: Any, depth: int) -> Any:
    match value:
        case slice():
            return {"slice": [encode(e, depth) for e in (value.start, value.stop, value.step)]}
        case list():
            return {"list": [encode(e, depth) for e in value]}
        case tuple():
            return {"tuple": [encode(e, depth) for e in value]}
        case dict():
            return {"dict": [[encode(k, depth), encode(v, depth)] for k, v in value.items()]}
    if hasattr(value, "tolist") and hasattr(value, "dtype"):  # arrays and scalars of NumPy and JAX
        return encode(value.tolist(), depth)
    raise NotPlain(f"is of type {type(value).__name__}")


def _encode_spec(value: Any, depth: int) -> Any:
    axes = getattr(value, "unreduced", ())
    if getattr(value, "reduced", ()) or not all(isinstance(axis, str) for axis in axes):
        raise NotPlain("is a PartitionSpec with reduced axes, or axes that are not names")
    entries = {"spec": [encode(e, depth + 1) for e in (value.partitions if axes else value)]}
    return {"unreduced": [entries, *sorted(axes)]} if axes else entries


def _number(value: Fraction | Decimal) -> int | float:
    """Return an integral number as an int, else the nearest float. Raises NotPlain if no float can hold the number."""
    try:
        if isinstance(value, Decimal) and (not value.is_finite() or abs(value.adjusted()) > MAX_DIGITS):
            return float(value)
        return int(value) if value == int(value) else float(value)
    except (ValueError, OverflowError, ArithmeticError) as error:
        raise NotPlain("is a number that no float can hold") from error


def _encode_int(value: int) -> Any:
    if abs(value) < 1 << 53:
        return value
    if value.bit_length() > 3 * MAX_DIGITS:
        raise NotPlain("is an integer of thousands of digits")
    return {"int": str(value)}


def _encode_float(value: float) -> Any:
    return {"float": value.hex()} if math.isfinite(value) else {"float": str(value)}


def _complex(real: float, imag: float) -> complex:
    return complex(float(real), float(imag))


def decode(data: Any, depth: int = 0) -> Any:
    """Return the value that ``encode`` wrote as JSON. Raises BadFrame for JSON that is not an encoded value."""
    if depth > MAX_DEPTH:
        raise BadFrame("nested too deeply")
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if not isinstance(data, dict) or len(data) != 1:
        raise BadFrame("not an encoded value")
    ((tag, body),) = data.items()
    try:
        if tag == "int":
            return int(body[: MAX_DIGITS + 1])
        if tag == "float":
            return float(body) if body in ("nan", "inf", "-inf") else float.fromhex(body)
        if tag == "dict":
            return {decode(k, depth + 1): decode(v, depth + 1) for k, v in body}
        items = [decode(e, depth + 1) for e in body]
        if tag == "spec":
            from jax.sharding import PartitionSpec

            return PartitionSpec(*items)
        if tag == "unreduced":
            from jax.sharding import PartitionSpec

            return PartitionSpec(*items[0], unreduced=frozenset(items[1:]))
        return {
            "slice": lambda: slice(*items),
            "complex": lambda: _complex(*items),
            "list": lambda: items,
            "tuple": lambda: tuple(items),
        }[tag]()
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise BadFrame(f"not an encoded value: {error}") from error
