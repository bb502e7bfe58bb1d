"""Observations: what trusted code finds out about a program. Data only: NumPy and plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.common.budget import BudgetUse
from grader.common.intervals import NOTHING, ONCE, Interval, Path, sum_over_paths
from grader.common.layout import Slices, spec_of
from grader.wire.operations import Operations
from grader.wire.schedule import Schedule

if TYPE_CHECKING:
    from grader.common.poison import Poison


class NotHere(Exception):
    """A check looked at values that no device here holds. The message says why."""


@dataclass(frozen=True)
class Unseen(Sequence[Any]):
    """Stands in for shards that no device has. Any access raises NotHere with ``why``."""

    why: str

    def __getitem__(self, index: Any) -> Any:
        raise NotHere(self.why)

    def __iter__(self) -> Iterator[Any]:
        raise NotHere(self.why)

    def __len__(self) -> int:
        raise NotHere(self.why)


@dataclass(frozen=True)
class Sharded:
    """An array as the devices hold it.

    ``shards[i]`` is the part on device ``i``; ``slices[i]`` is its place in the whole.

    ``on_chip``: each device's slices as the compiler of an absent chip lays them out; None if no compiler was asked.

    From the ask, filled in by the judge and never read from a program:
        due: the required dtype unless the check says otherwise; None if the ask names none.
        per_device: the task is a body, so a device holds what the learner returned.
        name: its name if a call has several results, such as ``step 2: grads['w1']``.
        step: number of the step, from 1, in a call of several steps; later steps use results of earlier ones.

    ``factors``: the epsilon of the type that operands of matmuls were rounded to (``wings.devices.backends``).
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    mesh: Mapping[str, int]
    slices: list[Slices]
    shards: list[np.ndarray]
    due: np.dtype | None = None
    per_device: bool = False
    name: str = ""
    step: int = 1
    factors: float = 0.0
    on_chip: list[Slices] | None = None

    @cached_property
    def value(self) -> np.ndarray:
        """The global array. Each element comes from the first device that holds it."""
        whole = np.zeros(self.shape, self.dtype)
        for where, part in reversed(list(zip(self.slices, self.shards, strict=True))):
            whole[tuple(slice(a, b) for a, b in where)] = part
        return whole

    @cached_property
    def spec(self) -> tuple | None:
        """The PartitionSpec of this layout, without trailing None; None if no spec fits."""
        return spec_of(self.laid, self.shape, self.mesh)

    @property
    def laid(self) -> list[Slices]:
        """The slices on each device: by the chip's compiler if it was asked, else on the simulated devices."""
        return self.slices if self.on_chip is None else self.on_chip


@dataclass(frozen=True)
class Collective:
    """One collective of the program, as written in its source.

    Attributes:
        kind: all_reduce, all_gather, reduce_scatter, all_to_all, ragged_all_to_all, permute or broadcast.
        axes: mesh axes along which two members of a group differ. Each of these axes counts the bytes.
        bytes: bytes of its input on one device.
        sent: bytes that a device sends in one execution if its group is a ring; an interval over all devices.
        rounds: how often it runs if its branch is taken (the product of the loops around it). See ``count``.
        line: line in the learner's source; None if the compiler added it.
        shift: for a permute that moves all data equally far along one axis: the number of places, the shorter way
            round (1 to the next device, -1 to the one before); else None.
        senders: the devices that send ``sent.most`` while the others send nothing; None if all devices are alike.
        path: the branches around it, outermost first: ``(conditional, branch, number of branches)``.
        operands: dtype and per-device shape of each input array.
        groups: the devices of each group, in mesh order; for a permute ``(source, target)`` pairs.
        partial: a group holds only some of the devices along ``axes``, such as two of four; never for a permute.
        backward: whether it waits for the cotangent, in a call that asks for gradients; None if unknown.
        place: its number in the order of ``Operations.walk``; None if it is not among these operations.
        number: its number among the collectives that the program is written with (``common.poison``).
    """

    kind: str
    axes: tuple[str, ...]
    bytes: int
    sent: Interval
    rounds: Interval = ONCE
    line: int | None = None
    file: str | None = None
    by_compiler: bool = False
    shift: int | None = None
    senders: tuple[int, ...] | None = None
    path: Path = ()
    operands: tuple[tuple[str, tuple[int, ...]], ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    partial: bool = False
    backward: bool | None = None
    place: int | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        for name in ("sent", "rounds"):  # these values may come from JSON
            object.__setattr__(self, name, Interval.of(getattr(self, name)))

    @property
    def over(self) -> str:
        """The devices that communicate, for a message."""
        return over(self.axes, self.partial)

    @property
    def dtype(self) -> str | None:
        """The dtype of its inputs; None if they differ."""
        dtypes = {dtype for dtype, _ in self.operands}
        return dtypes.pop() if len(dtypes) == 1 else None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The per-device shape of its only input; None if there are several."""
        return self.operands[0][1] if len(self.operands) == 1 else None

    @property
    def count(self) -> Interval:
        """The number of runs, over all paths: possibly none if another branch can be taken."""
        return Interval(0, self.rounds.most) if self.path else self.rounds

    def sent_by(self, device: int) -> Interval:
        """Return the bytes that this device sends for one execution."""
        if self.senders is None:
            return self.sent
        return Interval.of(self.sent.most if device in self.senders else 0)


def over(axes: Sequence[str], partial: bool, joint: str = " and ") -> str:
    """Return the devices that communicate, for a message: ``x and y``, or ``some of the devices along x and y``."""
    return f"{'some of the devices along ' if partial else ''}{joint.join(axes)}"


def total(collectives: Iterable[Collective], of: Callable[[Collective], Interval]) -> Interval:
    """Return the sum of ``of`` over a program's collectives and their rounds, as an interval over all branches."""
    return sum_over_paths((c.path, c.rounds * of(c)) for c in collectives)


@dataclass(frozen=True)
class Observation:
    """One program on one mesh: facts once, outputs and gradients once per set of inputs.

    Attributes:
        outputs: for each set of inputs, the flat list of output arrays.
        collectives: in program order.
        memory: peak temporary bytes per device, from the compiler, which counts every path.
        flops: arithmetic operations per device, loops multiplied out.
        dot_flops: the part in matmuls, also in matmuls written as multiply and add.
        mapped: there is a ``shard_map``, and outside it at most one operation for each element of arguments and
            results.
        program: SHA-256 of the program's canonical form.
        operations: the dependency graph, with calls inlined; None if the program has too many operations.
        elsewhere: outputs on the other devices that also ran it: first with these devices' own matmuls, then, if that
            differs, with float32 matmuls. ``Unseen`` shards if it was not run there; None if only simulated devices ran
            it.
        measured: seconds per call on these devices, round by round, if asked for; or why there are none.
        compiled: the schedule by the compiler of an absent chip, or its fault; None if no compiler was asked.
        compiled_on: the slice of that compiler, "v5e:2x4".
        poison: shows which operations matter; None if the program is not run.
        paired: this timed program was compared with the one whose values are judged, and is the same.
    """

    outputs: list[list[Sharded]]
    collectives: list[Collective]
    memory: int
    flops: Interval = NOTHING
    dot_flops: Interval = NOTHING
    mapped: bool = False
    program: str = ""
    operations: Operations | None = None
    elsewhere: Sequence[list[list[Sharded]]] | None = None
    measured: tuple[float, ...] | str = ()
    compiled: Schedule | Fault | None = None
    compiled_on: str = ""
    poison: Poison | None = field(default=None, compare=False, repr=False)
    paired: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a pure Python function on one set of arguments: a value, or an error's name.

    ``kinds`` are the names of the error's classes, its own first.
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
        kind: missing, raised, syntax, untraceable, timeout, memory, refused, compile, crashed (the learner's) or broken
            (ours).
        message: one line for the learner.
        line: line in the learner's source, if known.
        ran: the fault is the program's, which was traced and admitted.
    """

    kind: str
    message: str
    line: int | None = None
    file: str = ""
    type: str = ""
    ran: bool = False


@dataclass(frozen=True)
class Timing:
    """The slice and profile of a timing call's timeline, as given to ``exercise.timing``."""

    on: str
    axes: Mapping[str, tuple[int, ...]] | None = None
    profile: str = "ideal"


def _no_clock(**_: Any) -> Any:
    raise ValueError("there is no program to lay out in time")


@dataclass(frozen=True)
class Seen:
    """The input of a check. Arguments are attributes too: ``seen.a`` is the NumPy input, or the tree of inputs.

    For a call of several steps, ``steps`` has one entry for each, with its inputs and results; ``inputs`` are those of
    the first, ``out`` and ``grads`` those of the last. ``check_vma``: how a body was wrapped.

    Inputs have the widest type of their kind (exactly), so that references are computed in float64 and int64.
    """

    mesh: Mapping[str, int]
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    out: Any = None
    grads: Mapping[str, Any] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    memory: int = 0
    flops: Interval = NOTHING
    dot_flops: Interval = NOTHING
    mapped: bool = False
    outcomes: list[tuple[dict[str, Any], Outcome, Outcome]] = field(default_factory=list)
    public: bool = True
    steps: list[Seen] = field(default_factory=list)
    check_vma: bool = False
    operations: Operations | None = None
    differentiated: bool = False  # the call asks for gradients
    part: str = ""  # description of what ``only`` chose
    timing: Timing | None = None
    clock: Callable[..., Any] = _no_clock
    chip: Callable[[], Any] | None = None  # timeline by the slice's compiler, if one was asked
    # For a timing call, the Poison of its value call.
    poison: Poison | None = field(default=None, compare=False, repr=False)
    spent: list[BudgetUse] = field(default_factory=list)  # comparisons with budgets, shared by all copies
    measuring: bool = False  # record comparisons with budgets, but let none fail

    def __getattr__(self, name: str) -> Any:
        for table in (self.__dict__.get("inputs", {}), self.__dict__.get("static", {})):
            if name in table:
                return table[name]
        raise AttributeError(f"this check's call has no argument {name!r}")

    def keeps(self, use: BudgetUse) -> bool:
        """Record this comparison with a budget. Return True if the program needs no more than the budget."""
        self.spent.append(use)
        return self.measuring or use.amount <= use.budget

    def only(
        self,
        *,
        kind: str | None = None,
        axis: str | None = None,
        dtype: str | None = None,
        backward: bool | None = None,
    ) -> Seen:
        """Return a copy with only some of the collectives: ``expect_traffic(seen.only(dtype="float32"), at_most=0)``.

        Args:
            kind: see ``Collective.kind``.
            axis: a mesh axis that its groups cross, alone or with others, fully or partly.
            dtype: of what is sent.
            backward: whether it waits for the cotangent, in a call that asks for gradients.

        A collective with an unknown dtype or pass is kept as one that may run or not. FLOPs are at most those of all.
        """
        if backward is not None and not self.differentiated:
            raise ValueError("nothing is forward or backward here: the call asks for no gradients (wrt, cotangent)")
        found = [c for c in self.collectives if kind in (None, c.kind) and (axis is None or axis in c.axes)]
        if backward is not None:
            found = _of_pass(found, backward)
        if dtype is not None:
            found = _of_dtype(found, dtype)
        passes = {None: "", False: "in the forward pass", True: "in the backward pass"}
        part = " ".join(words for words in (self.part, passes[backward]) if words)
        flops, dots = (Interval(0, n.most) for n in (self.flops, self.dot_flops))
        return replace(self, collectives=found, flops=flops, dot_flops=dots, part=part)

    @property
    def timeline(self) -> Any:
        """The timeline of the program on the slice of its timing call (``grader.clock.Timeline``).

        ``clock(on=...)`` gives the timeline on another slice.
        """
        return self.clock()

    @property
    def traffic(self) -> dict[str, Interval]:
        """Bytes that a device sends, by the mesh axes that groups cross ('x', or 'x,y' for groups that cross both)."""
        keys = dict.fromkeys(c.axes for c in self.collectives)
        return {",".join(axes): self.sends([c for c in self.collectives if c.axes == axes]) for axes in keys}

    def sends(self, collectives: Iterable[Collective]) -> Interval:
        """Return the bytes that a device sends in these collectives, over all paths and devices."""
        known = list(collectives)
        alike = all(c.senders is None for c in known)
        devices = [0] if alike else range(math.prod(self.mesh.values()))
        each = [total(known, lambda c, d=device: c.sent_by(d)) for device in devices]
        return Interval(min(e.least for e in each), max(e.most for e in each))


def _of_pass(collectives: Iterable[Collective], backward: bool) -> list[Collective]:
    """Return the collectives of one pass. A collective with an unknown pass may run or not."""
    found = [c for c in collectives if c.backward in (None, backward)]
    return [c if c.backward is not None else replace(c, rounds=Interval(0, c.rounds.most)) for c in found]


def _of_dtype(collectives: Iterable[Collective], dtype: str) -> list[Collective]:
    """Return the collectives that send this dtype. A collective with several dtypes may send nothing of it."""
    found = [c for c in collectives if any(dtype == d for d, _ in c.operands)]
    return [c if c.dtype is not None else replace(c, sent=Interval(0, c.sent.most)) for c in found]
