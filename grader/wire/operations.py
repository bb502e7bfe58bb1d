"""A program's operations as plain data: dependencies, sizes, and which devices communicate.

The process that runs programs makes this data. Calls and ``shard_map`` are replaced by the operations inside them.
Inside ``shard_map``, a shape is the shape of one device's part. The judging process gets the operations as JSON and
does not trust the JSON: ``from_json`` checks every value.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from grader.wire.frames import BadFrame, dtype_of, json_of


def as_list(data: Any) -> list[Any]:
    """Return ``data`` if it is a list. Raises TypeError for any other value."""
    if not isinstance(data, list):
        raise TypeError("not a list")
    return data


def as_dict(data: Any) -> dict[str, Any]:
    """Return ``data`` if it is a dictionary with string keys. Raises TypeError for any other value."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise TypeError("not a dictionary")
    return data


def as_text(data: Any, *, most: int = 300) -> str:
    """Return ``data`` if it is a string of at most ``most`` characters. Raises TypeError for any other value."""
    if not isinstance(data, str) or len(data) > most:
        raise TypeError("not a name")
    return data


def as_size(data: Any, *, least: int = 0, most: int = 1 << 100) -> int:
    """Return ``data`` if it is an integer from ``least`` to ``most``. Raises ValueError for any other value."""
    if type(data) is not int or not least <= data <= most:
        raise ValueError(f"{str(data)[:40]} is not a size from {least} to {most}")
    return data


MAX_OPERATIONS = 5_000
"""The largest number of operations of a program after inlining.

A program with more operations, or with too many values or uses, is sent without its operations.
"""

MOST_KEPT, LONGEST_KEPT = 256, 1 << 17
"""The largest number of parsed programs in the cache, and the largest number of characters of a cached program.

The cache takes tens of MiB at most. A program for a ring of eight devices, at two sizes, has 77,000 characters, most of
them in attributes.
"""

MAX_VALUES = 8 * MAX_OPERATIONS
# Limit on the operands of all operations and the results of all loop bodies and branches, counted together.
MAX_USES = 12 * MAX_OPERATIONS
MAX_LEVELS = 16  # levels of nested loops and branches
MAX_SIZE = 1 << 62
MAX_ATTRIBUTES = 4_000  # characters of one operation's attributes
KINDS = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ragged_all_to_all", "permute", "broadcast",
)  # fmt: skip
MATMULS = ("dot_general", "dot", "ragged_dot", "convolution")
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


@dataclass(frozen=True, slots=True)
class Value:
    """An array of the program.

    Attributes:
        shape, dtype: of one device's part inside a ``shard_map``; of the whole array outside.
        parts: the number of equal shards into which the devices split the array; 1 if each device holds the full shape.
    """

    shape: tuple[int, ...]
    dtype: str
    parts: int = 1

    @property
    def bytes(self) -> int:
        """Bytes of the array on one device. Each element takes at least one byte."""
        return math.prod(self.shape) * dtype_of(self.dtype).itemsize // self.parts


@dataclass(frozen=True, slots=True)
class Communication:
    """A collective's groups, axes and size.

    Attributes:
        kind: one of ``KINDS``.
        groups: device numbers (in mesh order) of each group; for a permute, ``(source, target)`` pairs.
        axes: mesh axes along which two devices of a group differ; empty if no device sends data.
        bytes: size of the collective's input on one device.
    """

    kind: str
    groups: tuple[tuple[int, ...], ...]
    axes: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Body:
    """The operations of a loop or branch in program order, with its arguments and results."""

    arguments: tuple[int, ...]
    operations: tuple[Operation, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        name: the name in StableHLO or CHLO, without the dialect: "dot_general", "while", "collective_permute". The
            grader adds "shard" (cuts an array into devices' parts where ``shard_map`` begins), "unshard" (joins the
            parts where ``shard_map`` ends) and "reshard" (moves an array to another layout).
        operands, results: arrays, as indices in ``Operations.values``. The operands of a ``while`` are the values that
            the loop carries. Bodies may also use other values from outside.
        flops: for a matmul or convolution, its FLOPs (a multiplication and an addition are two); else 0.
        precision: for a matmul, the number of passes that a bfloat16 matrix unit needs for 32-bit operands: 1 (default
            precision), 3 (high) or 6 (highest); else 1.
        length: for a sort, the number of elements sorted together; else 0.
        number: for a constant that is one integer, its value; else None.
        direction: for a comparison, one of ``DIRECTIONS``; else "".
        start: for a slice with stride 1 in dimension 0, its first index in this dimension; else None.
        entry: True for a gather that reads ``a[i]``, or a scatter that replaces ``a[i]``. The second operand is ``i``,
            one index of dimension 0.
        rounds: for a ``while``, how often its body runs; None if the program does not say.
        manual: whether the operation is inside a ``shard_map`` over all mesh axes. If True, shapes are the shapes of
            one device's part.
        communication: for a collective, its groups, axes and size.
        bodies: condition and body of a ``while``; the branches of ``case`` and ``if``.
        attributes: all other attributes as text. For a reduction or sort, they include its operations on single
            elements. The text is empty unless the grader compares this program with another program.
        file, line: the place in the learner's source, if known.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    flops: int = 0
    precision: int = 1
    length: int = 0
    number: int | None = None
    direction: str = ""
    start: int | None = None
    entry: bool = False
    rounds: int | None = None
    manual: bool = True
    communication: Communication | None = None
    bodies: tuple[Body, ...] = ()
    attributes: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Operations:
    """A whole program. ``mesh``: axis sizes in order. Devices are numbered row-major."""

    mesh: dict[str, int]
    values: tuple[Value, ...]
    main: Body

    def walk(self) -> Iterator[Operation]:
        """Yield all operations in program order: each operation, then the operations in its bodies."""
        stack = [iter(self.main.operations)]
        while stack:
            for found in stack[-1]:
                yield found
                if found.bodies:
                    stack.append(itertools.chain.from_iterable(body.operations for body in found.bodies))
                    break
            else:
                stack.pop()


# -- as JSON -----------------------------------------------------------------------------------

USUAL = {
    "flops": 0, "precision": 1, "length": 0, "number": None, "direction": "", "start": None, "entry": False,
    "rounds": None, "manual": True, "attributes": "", "file": None, "line": None,
}  # fmt: skip


def to_json(program: Operations) -> dict[str, Any]:
    return {
        "mesh": [[axis, size] for axis, size in program.mesh.items()],
        "values": [[list(v.shape), v.dtype, v.parts] for v in program.values],
        "main": _body_to_json(program.main),
    }


def _body_to_json(body: Body) -> list[Any]:
    return [list(body.arguments), [_operation_to_json(op) for op in body.operations], list(body.results)]


def _operation_to_json(op: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"name": op.name, "in": list(op.operands), "out": list(op.results)}
    found |= {name: value for name, usual in USUAL.items() if (value := getattr(op, name)) != usual}
    if op.communication is not None:
        c = op.communication
        found["communication"] = [c.kind, [list(group) for group in c.groups], list(c.axes), c.bytes]
    if op.bodies:
        found["bodies"] = [_body_to_json(body) for body in op.bodies]
    return found


def to_text(program: Operations) -> str:
    """Return the program as JSON text, because one string is faster to cache and to send than thousands of objects."""
    return json.dumps(to_json(program), separators=(",", ":"))


def from_text(text: str) -> Operations:
    """Return the program that ``to_text`` wrote in another process. Raises BadFrame for a text that is no program.

    Recent programs are cached, because parsing is slow and many submissions contain equal programs. So equal texts may
    give one shared object.
    """
    return _read(text) if len(text) <= LONGEST_KEPT else _read.__wrapped__(text)


@lru_cache(MOST_KEPT)
def _read(text: str) -> Operations:
    return from_json(json_of(text.encode("utf-8", "replace"), "operations are"))


def from_json(data: Any) -> Operations:
    """Return the program that ``to_json`` wrote in another process. Raises BadFrame for JSON that is no program."""
    try:
        return _OperationsDecoder(data).program()
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise BadFrame(f"not a program: {error}") from error


@dataclass
class _OperationsDecoder:
    """A decoder of a program's JSON. Raises ValueError if a value is defined twice, or used before its definition."""

    data: Any
    mesh: dict[str, int] = field(default_factory=dict)
    devices: int = 0
    values: tuple[Value, ...] = ()
    made: set[int] = field(default_factory=set)
    count: int = 0
    uses: int = 0

    def program(self) -> Operations:
        self.mesh = {as_text(axis): as_size(size, least=1) for axis, size in as_list(self.data["mesh"])}
        self.devices = math.prod(self.mesh.values())
        if len(self.data["values"]) > MAX_VALUES:
            raise ValueError("too many values")
        self.values = tuple(_value(v) for v in as_list(self.data["values"]))
        return Operations(self.mesh, self.values, self.body(self.data["main"], 0))

    def body(self, data: Any, level: int) -> Body:
        if level > MAX_LEVELS:
            raise ValueError("nested too deeply")
        arguments, operations, results = as_list(data)
        found = tuple(self.new(n) for n in as_list(arguments)), tuple(self.one(op, level) for op in as_list(operations))
        return Body(*found, self.used(results))

    def one(self, data: Any, level: int) -> Operation:
        self.count += 1
        if self.count > MAX_OPERATIONS:
            raise ValueError("too many operations")
        operands = self.used(data["in"])
        bodies = tuple(self.body(body, level + 1) for body in as_list(data.get("bodies", [])))
        about = data.get("communication")
        results = tuple(self.new(n) for n in as_list(data["out"]))
        name = as_text(data["name"])
        _check_bodies(name, len(operands), len(results), bodies)
        return Operation(
            name,
            operands,
            results,
            flops=as_size(data.get("flops", 0)),
            precision=as_size(data.get("precision", 1), least=1),
            length=as_size(data.get("length", 0)),
            number=_number(data.get("number")),
            direction=_direction(data.get("direction", "")),
            start=None if data.get("start") is None else as_size(data["start"]),
            entry=data.get("entry", False) is True,
            rounds=None if data.get("rounds") is None else as_size(data["rounds"]),
            manual=data.get("manual", True) is True,
            communication=None if about is None else self.communication(about),
            bodies=bodies,
            attributes=as_text(data.get("attributes", ""), most=MAX_ATTRIBUTES),
            file=None if data.get("file") is None else as_text(data["file"]),
            line=None if data.get("line") is None else as_size(data["line"]),
        )

    def communication(self, data: Any) -> Communication:
        kind, groups, axes, size = as_list(data)
        if kind not in KINDS or not set(as_list(axes)) <= set(self.mesh):
            raise ValueError(f"there is no collective {kind!r} over {axes!r}")
        found = tuple(tuple(as_size(d, most=self.devices - 1) for d in as_list(group)) for group in as_list(groups))
        if kind == "permute" and any(len(pair) != 2 for pair in found):
            raise ValueError("a permute needs pairs")
        return Communication(kind, found, tuple(axes), as_size(size))

    def new(self, number: Any) -> int:
        """Check and record the number of a value that an operation or body defines, and return it.

        Raises ValueError for a second definition.
        """
        at = as_size(number, most=len(self.values) - 1)
        if at in self.made:
            raise ValueError(f"value {at} is defined twice")
        self.made.add(at)
        return at

    def used(self, numbers: Any) -> tuple[int, ...]:
        self.uses += len(as_list(numbers))
        if self.uses > MAX_USES:
            raise ValueError(f"the operands of all operations are more than {MAX_USES:,} values")
        found = tuple(as_size(n, most=len(self.values) - 1) for n in numbers)
        if not self.made.issuperset(found):
            raise ValueError("a value is used before it is defined")
        return found


def _check_bodies(name: str, operands: int, results: int, bodies: tuple[Body, ...]) -> None:
    """Raise ValueError if the bodies of a loop or conditional have wrong numbers of arguments or results."""
    about = [(len(body.arguments), len(body.results)) for body in bodies]
    if name == "while":
        fits = operands == results and about == [(operands, 1), (operands, operands)]
    else:
        fits = all(one == (0, results) for one in about) and (not bodies or operands == 1)
    if not fits:
        raise ValueError(
            f"{name} has {operands} operands and {results} results, "
            f"but its bodies have wrong numbers of (arguments, results): {about}"
        )


def _value(data: Any) -> Value:
    shape, dtype, parts = as_list(data)
    dtype_of(dtype)
    sizes = tuple(as_size(n) for n in as_list(shape))
    if math.prod(sizes) > MAX_SIZE:
        raise ValueError("an array is too large")
    return Value(sizes, dtype, as_size(parts, least=1))


def _direction(data: Any) -> str:
    if data not in ("", *DIRECTIONS):
        raise ValueError(f"no comparison {data!r}")
    return data


def _number(data: Any) -> int | None:
    if data is not None and (type(data) is not int or data.bit_length() > 64):
        raise ValueError("not an integer of 64 bits")
    return data
