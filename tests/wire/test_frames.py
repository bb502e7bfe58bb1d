"""Frames and plain values are read as they were written, and all other bytes are refused."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.wire import frames as wire
from grader.wire.frames import BadFrame, NotPlain, decode, encode
from tests.wire.streams import reader

MANY = settings(max_examples=200)
specs = st.lists(st.none() | st.just("x") | st.just(("y", "z")), max_size=3, unique=True).map(lambda e: P(*e))
pending = st.sets(st.sampled_from(["u", "v"])).map(lambda axes: P(None, "x", unreduced=frozenset(axes)))
hashable = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.tuples(st.integers(), st.text(max_size=3))
)
plain = st.recursive(
    hashable
    | st.floats(allow_nan=False)
    | specs
    | pending
    | st.builds(slice, st.integers(), st.none() | st.integers()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(hashable, inner, max_size=3)
    ),
    max_leaves=10,
)


def same(a: Any, b: Any) -> bool:
    """Return whether values and types are equal at every level. 1, 1.0 and True are three values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return same(list(a), list(b)) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return a == b


# -- values ------------------------------------------------------------------------------------


@MANY
@given(plain)
def test_a_value_comes_back_with_its_types(value: Any) -> None:
    assert same(decode(json.loads(json.dumps(encode(value)))), value)


@pytest.mark.parametrize("value", [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf])
def test_floats_come_back_to_the_last_bit(value: float) -> None:
    assert same(decode(json.loads(json.dumps(encode(value), allow_nan=False))), value)


def test_nan_comes_back_and_is_encoded_as_strict_json() -> None:
    assert math.isnan(decode(json.loads(json.dumps(encode(math.nan), allow_nan=False))))


@pytest.mark.parametrize("value", [(1 << 53) - 1, 1 << 53, -(1 << 53), 10**100])
def test_integers_of_any_size_come_back(value: int) -> None:
    """Other JSON readers read integers above 2**53 as floats."""
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_arrays_and_scalars_become_plain() -> None:
    import jax.numpy as jnp

    assert encode(np.float32(0.5)) == encode(0.5)
    assert decode(encode(np.arange(4).reshape(2, 2))) == [[0, 1], [2, 3]]
    assert decode(encode((jnp.int32(3), np.bool_(True)))) == (3, True)


def test_subclasses_become_what_they_extend() -> None:
    """Otherwise the grader could run methods of a learner's class."""

    class Odd(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    assert type(decode(encode(Odd(3)))) is int and decode(encode(Odd(3))) != 4


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Fraction(1, 2), 0.5),
        (Fraction(6, 2), 3),
        (Decimal("0.5"), 0.5),
        (Decimal("3.0"), 3),
        (Decimal(2**70), 2**70),
        (Fraction(2**70), 2**70),
        (Decimal("Infinity"), math.inf),
        (Decimal("1e5000"), math.inf),
        (Decimal("1e-5000"), 0.0),
        ((Fraction(1, 4), {"a": Decimal(1)}), (0.25, {"a": 1})),
    ],
)
def test_fractions_and_decimals_are_numbers(value: Any, plain: Any) -> None:
    assert same(decode(json.loads(json.dumps(encode(value)))), plain)


@pytest.mark.parametrize("value", [1j, -0.1 + 3e300j, np.complex64(2 - 1j), {"z": [1 + 1j]}])
def test_complex_numbers_are_plain(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


@pytest.mark.parametrize("body", ["1j", [1], [1, 2, 3], ["a", "b"], [1, [2]], [1, None], 5])
def test_invalid_complex_numbers_are_refused(body: Any) -> None:
    with pytest.raises(BadFrame):
        decode({"complex": body})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "is of type object"),
        (Fraction(10**400, 3), "is a number that no float can hold"),
        (Decimal("sNaN"), "is a number that no float can hold"),
        ({1, 2}, "is of type set"),
        (b"x", "is of type bytes"),
        (print, "is of type builtin_function_or_method"),
        ([1, [print]], "is of type builtin_function_or_method"),
        pytest.param(1 << 20_000, "is an integer of thousands of digits", id="huge"),
    ],
)
def test_values_that_are_not_plain_are_refused(value: Any, message: str) -> None:
    with pytest.raises(NotPlain, match=f"^{message}$"):
        encode(value)


def test_too_deeply_nested_values_are_refused() -> None:
    value: Any = 0
    for _ in range(wire.MAX_DEPTH):
        value = [value]
    assert same(decode(encode(value)), value)
    with pytest.raises(NotPlain, match="is nested too deeply"):
        encode([value])
    cyclic: list = []
    cyclic.append(cyclic)
    with pytest.raises(NotPlain, match="is nested too deeply"):
        encode(cyclic)


@pytest.mark.parametrize(
    "data",
    [
        [],
        [1],
        {},
        {"list": [], "tuple": []},
        {"no": []},
        {"list": 3},
        {"int": "x"},
        {"float": "1q"},
        {"float": 3},
        {"slice": [1, 2, 3, 4]},
        {"dict": [[1]]},
        {"dict": [[{"list": []}, 1]]},
        {"spec": 3},
        {"unreduced": []},
        {"unreduced": [{"spec": ["x"]}, "x"]},
        {"unreduced": [{"spec": ["x"]}, {"list": []}]},
    ],
)
def test_data_that_encode_did_not_write_are_refused(data: Any) -> None:
    with pytest.raises(BadFrame):
        decode(data)


# -- arrays ------------------------------------------------------------------------------------


@MANY
@given(
    st.sampled_from(["float32", "float64", "bfloat16", "float8_e4m3fn", "int8", "uint32", "bool", "complex64"]),
    st.lists(st.integers(0, 4), max_size=3),
)
def test_an_array_comes_back(dtype: str, shape: list[int]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape).astype(wire.dtype_of(dtype))
    about, data = wire.pack_array(array[::-1] if array.ndim else array)
    back = wire.unpack_array(json.loads(json.dumps(about)), data)
    assert back.dtype == array.dtype and back.shape == array.shape
    np.testing.assert_array_equal(back.astype(complex), (array[::-1] if array.ndim else array).astype(complex))


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"shape": [2], "dtype": "object"},
        {"shape": [2], "dtype": "str"},
        {"shape": [2], "dtype": "V4"},
        {"shape": [2], "dtype": "datetime64"},
        {"shape": [2], "dtype": "no_such_type"},
        {"shape": [2], "dtype": "__name__"},
        {"shape": [2], "dtype": "finfo"},
        {"shape": [], "dtype": "a"},
        {"shape": [1], "dtype": "float"},
        {"shape": [1], "dtype": "int0"},
        {"shape": [2], "dtype": 3},
        {"shape": [3], "dtype": "float32"},
        {"shape": [-1], "dtype": "float32"},
        {"shape": [2.0], "dtype": "float32"},
        {"shape": [True, 2], "dtype": "float32"},
        {"shape": 2, "dtype": "float32"},
    ],
)
def test_bytes_that_are_no_array_are_refused(about: dict) -> None:
    with pytest.raises(BadFrame, match=r"^not an array: "):
        wire.unpack_array(about, bytes(8))


# -- frames ------------------------------------------------------------------------------------


@MANY
@given(st.lists(st.tuples(st.dictionaries(st.text(max_size=4), st.integers()), st.lists(st.binary(max_size=9), max_size=3)), max_size=4))  # fmt: skip
def test_frames_come_one_after_another(frames: list[tuple[dict, list[bytes]]]) -> None:
    frames = [({k: v for k, v in header.items() if k != "blobs"}, blobs) for header, blobs in frames]
    read = reader(b"".join(wire.pack(header, blobs) for header, blobs in frames))
    assert [wire.read_frame(read) for _ in frames] == frames
    with pytest.raises(EOFError):
        wire.read_frame(read)


@MANY
@given(st.data())
def test_a_cut_frame_is_an_end_and_never_a_frame(data: st.DataObject) -> None:
    whole = wire.pack({"a": [1, 2]}, [b"12345", b""])
    with pytest.raises(EOFError):
        wire.read_frame(reader(whole[: data.draw(st.integers(0, len(whole) - 1))]))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (struct.pack("<I", 1001), "the header has 1,001 bytes; 1,000 are the limit"),
        (wire.pack({}, [bytes(1001)]), "the header does not say how long its blobs are"),
        (wire.pack({}, [bytes(501), bytes(500)]), "the header does not say how long its blobs are"),
    ],
)
def test_frames_that_are_too_large_are_refused_before_reading(frame: bytes, message: str) -> None:
    asked = []

    def read(n: int, take: Callable[[int], bytes] = reader(frame)) -> bytes:  # noqa: B008  one reader per example
        asked.append(n)
        return take(n)

    with pytest.raises(BadFrame, match=f"^{message}$"):
        wire.read_frame(read, max_header=1000, max_blobs=1000)
    assert max(asked) <= 1000


def header_frame(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the header is not JSON"),
        ("", "the header is not JSON"),
        ("[]", "the header does not say"),
        ("{}", "the header does not say"),
        ('{"blobs": 3}', "the header does not say"),
        ('{"blobs": [-1]}', "the header does not say"),
        ('{"blobs": [1.0]}', "the header does not say"),
        ('{"blobs": [true]}', "the header does not say"),
        ('{"blobs": ["1"]}', "the header does not say"),
        ('{"a": ' + "[" * 200 + "]" * 200 + ', "blobs": []}', "the header is nested too deeply"),
    ],
)
def test_invalid_headers_are_refused(text: str, message: str) -> None:
    with pytest.raises(BadFrame, match=f"^{message}"):
        wire.read_frame(reader(header_frame(text)))


def test_every_plain_value_fits_into_a_header() -> None:
    """The deepest value that ``encode`` accepts is not nested too deeply for a frame."""
    value: Any = P("x")
    for _ in range(wire.MAX_DEPTH - 1):
        value = {"k": value}
    header, _ = wire.read_frame(reader(wire.pack({"body": {"values": [{"value": encode(value)}]}})))
    assert decode(header["body"]["values"][0]["value"]) == value


@MANY
@given(st.text(alphabet='[]{}"\\a,', max_size=400))
def test_nesting_is_at_least_the_depth_of_the_json(text: str) -> None:
    deepest = depth = 0
    quoted = escaped = False
    for char in text:
        if quoted:
            quoted, escaped = (char != '"' or escaped), char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        deepest = max(deepest, depth)
    try:
        json.loads(text)
    except ValueError:
        return
    if text.count("[") + text.count("{") > wire.MAX_NESTING:
        assert wire.nesting(text) == deepest
