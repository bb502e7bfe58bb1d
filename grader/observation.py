"""What was seen of a program when trusted code looked at it: data only, NumPy and plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from grader.layout import Slices, spec_of


@dataclass(frozen=True)
class Sharded:
    """An array as the devices hold it.

    ``shards[i]`` is what device ``i`` holds; ``slices[i]`` says which part of the whole it is.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    mesh: Mapping[str, int]
    slices: list[Slices]
    shards: list[np.ndarray]

    @cached_property
    def value(self) -> np.ndarray:
        """The global array: each element from the first device that holds it."""
        whole = np.zeros(self.shape, self.dtype)
        for where, part in reversed(list(zip(self.slices, self.shards, strict=True))):
            whole[tuple(slice(a, b) for a, b in where)] = part
        return whole

    @cached_property
    def spec(self) -> tuple | None:
        """The PartitionSpec of this layout, without trailing None; None when there is none."""
        return spec_of(self.slices, self.shape, self.mesh)


@dataclass(frozen=True)
class Collective:
    """One collective of the program, as written in its source.

    Attributes:
        kind: all_reduce, all_gather, reduce_scatter, all_to_all, permute or broadcast.
        axes: mesh axes over which devices talk; empty when the groups follow no axes.
        bytes: bytes of its input on one device.
        sent: bytes one device sends for one execution on a ring of its group.
        count: how often it runs (the product of the loops around it); None when not readable.
        line: line in the learner's source; None when the compiler put it there.
        shift: of a permute that moves every device's data equally far round its one axis: how many places,
            the shorter way (1 to the next device, -1 to the one before); else None.
    """

    kind: str
    axes: tuple[str, ...]
    bytes: int
    sent: int
    count: int | None = 1
    line: int | None = None
    file: str | None = None
    by_compiler: bool = False
    shift: int | None = None


@dataclass(frozen=True)
class Observation:
    """One program on one mesh: facts once, outputs and gradients once per set of inputs.

    Attributes:
        outputs: for each set of inputs, the flat list of output arrays.
        tuple_out: True when the function returned a tuple or list.
        collectives: in program order.
        memory: peak temporary bytes per device, from the compiler.
        flops: floating-point operations of matrix products per device, loops multiplied out.
        typed: the results' types say how they are sharded, as on Explicit axes only.
        mapped: there is a ``shard_map``, and no matrix product outside of one.
    """

    outputs: list[list[Sharded]]
    tuple_out: bool
    collectives: list[Collective]
    memory: int
    flops: int
    typed: bool = False
    mapped: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a pure Python function did for one set of arguments: a value, or an error's name.

    ``kinds`` are the names of the error's classes, itself first.
    """

    value: Any = None
    error: str | None = None
    kinds: tuple[str, ...] = ()
    message: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Fault:
    """Why a task gave nothing to judge.

    Attributes:
        kind: missing, raised, untraceable, timeout, memory, refused, crashed (the learner's) or broken (ours).
        message: one line for the learner.
        line: line in the learner's source, where known.
    """

    kind: str
    message: str
    line: int | None = None
    file: str = ""
    type: str = ""


@dataclass(frozen=True)
class Seen:
    """What a check may look at. Arguments are attributes too: ``seen.a`` is the NumPy input.

    Floating-point inputs are given as float64 (exactly), so that references are computed in float64.
    """

    mesh: Mapping[str, int]
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    out: Any = None
    grads: Mapping[str, Sharded] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    memory: int = 0
    flops: int = 0
    typed: bool = False
    mapped: bool = False
    outcomes: list[tuple[dict[str, Any], Outcome, Outcome]] = field(default_factory=list)
    public: bool = True

    def __getattr__(self, name: str) -> Any:
        for table in (self.__dict__.get("inputs", {}), self.__dict__.get("static", {})):
            if name in table:
                return table[name]
        raise AttributeError(f"this check's call has no argument {name!r}")

    @property
    def traffic(self) -> dict[str, int | None]:
        """Bytes one device sends, by mesh axes ('x', or 'x,y' for a joint group); None: not readable."""
        total: dict[str, int | None] = {}
        for c in self.collectives:
            key = ",".join(c.axes) or "other"
            before = total.get(key, 0)
            total[key] = None if before is None or c.count is None else before + c.sent * c.count
        return total
