"""Observations: facts about a learner's program and its results, as NumPy arrays and plain Python values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.common.budget import BudgetUse
from grader.common.intervals import ONCE, ZERO, Interval, Path, sum_over_paths
from grader.common.layout import Slices, spec_of
from grader.wire.operations import Operations
from grader.wire.schedule import Schedule

if TYPE_CHECKING:
    from grader.common.dependency import Poison


class NotHere(Exception):
    """A check used values that no device computed. The message says why."""


@dataclass(frozen=True)
class Unseen(Sequence[Any]):
    """A placeholder for shards that no device computed. Any access raises NotHere with the message ``why``."""

    why: str

    def __getitem__(self, index: Any) -> Any:
        raise NotHere(self.why)

    def __iter__(self) -> Iterator[Any]:
        raise NotHere(self.why)

    def __len__(self) -> int:
        raise NotHere(self.why)


USE_VALUE = (
    "a result is in shards, one per device: use result.value (a whole NumPy array), or compare it with expect_close"
)


@dataclass(frozen=True)
class Sharded(np.lib.mixins.NDArrayOperatorsMixin):
    """An array as shards on devices.

    Attributes:
        shards: for each device, its part of the array.
        slices: for each device, the place of its part in the array.
        on_chip: each device's slices as a TPU's compiler chose them; None if this compiler did not run.
        due: the dtype that the author's declaration requires of the array, or None; a check may require another dtype.
        per_device: whether the task is a ``shard_map`` body, so that each shard is the body's result on one device.
        name: the array's name if a call has several results, such as ``step 2: grads['w1']``.
        step: number of the step, from 1, in a call of several steps; later steps use results of earlier steps.
        factors: the machine epsilon of the dtype to which the devices round a matmul's operands; 0 without rounding.
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

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError(USE_VALUE)

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(USE_VALUE)

    def __getitem__(self, _: Any) -> Any:
        raise TypeError(USE_VALUE)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(USE_VALUE if hasattr(np.ndarray, name) else f"results have no attribute {name!r}")

    @cached_property
    def value(self) -> np.ndarray:
        """The global array, with each element from the first device that holds the element."""
        whole = np.zeros(self.shape, self.dtype)
        for where, part in reversed(list(zip(self.slices, self.shards, strict=True))):
            whole[tuple(slice(a, b) for a, b in where)] = part
        return whole

    @cached_property
    def spec(self) -> tuple | None:
        """The layout as a PartitionSpec, without None at the end; None if no spec gives this layout."""
        return spec_of(self.laid, self.shape, self.mesh)

    @property
    def laid(self) -> list[Slices]:
        """Each device's slices: as a TPU's compiler chose them if it ran, else as on the simulated devices."""
        return self.slices if self.on_chip is None else self.on_chip


@dataclass(frozen=True)
class Collective:
    """One collective of the program, as written in its source.

    Attributes:
        kind: all_reduce, all_gather, reduce_scatter, all_to_all, ragged_all_to_all, permute or broadcast.
        axes: the mesh axes along which devices communicate. Checks of traffic along an axis count all bytes of each
            collective whose ``axes`` contain this axis.
        bytes: bytes of the input on one device.
        sent: least and most bytes that a device sends in one execution, computed as if each group were a ring.
        rounds: how often the collective runs if its branch is taken: the product of the surrounding loops' rounds.
        line: line in the learner's source; None if the compiler added the collective.
        shift: by how many devices a permute moves all data along one axis, the shorter way round (1: to the next
            device, -1: to the previous device); None for any other collective.
        senders: the devices that send (each ``sent.most`` bytes), if only some devices send; None if all devices send.
        path: the branches around the collective, outermost first: ``(conditional, branch, number of branches)``.
        operands: dtype and per-device shape of each input array.
        groups: the devices of each group, in mesh order; for a permute ``(source, target)`` pairs.
        partial: whether a group has only some of the devices along ``axes``, such as two of four; False for a permute.
        backward: whether the collective waits for the cotangent, in a call that asks for gradients; None if unknown.
        place: the collective's position among all operations (in the order of ``Operations.walk``); None if unknown.
        number: the collective's position among the collectives of the learner's program (see ``common.dependency``).
        transposed: whether JAX made the collective as the transpose of another collective, usually for a gradient.
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
    transposed: bool = False

    def __post_init__(self) -> None:
        for name in ("sent", "rounds"):  # values from JSON are numbers or dicts, not intervals
            object.__setattr__(self, name, Interval.of(getattr(self, name)))

    @property
    def over(self) -> str:
        """Return the devices that communicate, as text: ``x and y``, or ``some of the devices along x and y``."""
        return over(self.axes, self.partial)

    @property
    def dtype(self) -> str | None:
        """The dtype of the collective's inputs; None for inputs of different dtypes."""
        dtypes = {dtype for dtype, _ in self.operands}
        return dtypes.pop() if len(dtypes) == 1 else None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The per-device shape of the collective's input; None for several inputs."""
        return self.operands[0][1] if len(self.operands) == 1 else None

    @property
    def count(self) -> Interval:
        """How often the collective runs, over all paths; the minimum is 0 if the collective is in a branch."""
        return Interval(0, self.rounds.most) if self.path else self.rounds

    def sent_by(self, device: int) -> Interval:
        """Return the bytes that this device sends in one execution."""
        if self.senders is None:
            return self.sent
        return Interval.of(self.sent.most if device in self.senders else 0)


def over(axes: Sequence[str], partial: bool, joint: str = " and ") -> str:
    """Return the devices that communicate, as text: ``x and y``, or ``some of the devices along x and y``."""
    return f"{'some of the devices along ' if partial else ''}{joint.join(axes)}"


def total(collectives: Iterable[Collective], of: Callable[[Collective], Interval]) -> Interval:
    """Return the sum of ``of(collective)`` over all executions of the collectives: least and most over all paths."""
    return sum_over_paths((c.path, c.rounds * of(c)) for c in collectives)


@dataclass(frozen=True)
class Observation:
    """The facts about one program on one mesh, with outputs and gradients for each set of inputs.

    Attributes:
        outputs: for each step of each set of inputs, the flat list of output arrays.
        memory: temporary bytes per device that the compiler allocates: the peak over all paths through the program.
        flops: arithmetic operations per device. An operation in a loop counts once for each round.
        dot_flops: FLOPs of matmuls, also of matmuls written as multiply and add.
        mapped: True if results depend on a ``shard_map``, and the arithmetic outside it is at most one operation for
            each element of the program's arguments and results.
        program: SHA-256 of the program's canonical form.
        operations: the dependency graph, with calls inlined; None if the program has too many operations.
        on_devices: outputs on real devices, with the default matmul precision. If this precision rounds operands, then
            outputs with float32 matmuls follow. The shards are ``Unseen`` if the program did not run. None if only
            simulated devices were requested.
        measured: seconds per call on real devices, one number per round of measurements; or the reason why there are
            none.
        compiled: the schedule that a TPU's compiler made, or the compiler's error as a Fault; None if no such compiler
            ran.
        compiled_on: the TPU slice for which the compiler compiled, such as "v5e:2x4".
        poison: an object that runs the program again, to find operations that affect a result; None without such runs.
    """

    outputs: list[list[Sharded]]
    collectives: list[Collective]
    memory: int
    flops: Interval = ZERO
    dot_flops: Interval = ZERO
    mapped: bool = False
    program: str = ""
    operations: Operations | None = None
    on_devices: Sequence[list[list[Sharded]]] | None = None
    measured: tuple[float, ...] | str = ()
    compiled: Schedule | Fault | None = None
    compiled_on: str = ""
    poison: Poison | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Outcome:
    """A plain function's value for one case, or its error's name; or a raw answer, or the values of a formula.

    ``kinds``: the names of the error's class and of its base classes below ``Exception``, own class first.
    """

    value: Any = None
    error: str | None = None
    kinds: tuple[str, ...] = ()
    message: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Fault:
    """The reason why a task of the submission has no result to judge.

    Attributes:
        kind: missing, raised, syntax, untraceable, timeout, memory, refused, compile, crashed (faults of the learner's
            code) or broken (a fault of the grader).
        message: one line for the learner.
        line: line in the learner's source, if known.
        ran: True if the runner admitted the task's program, and the fault came later: a run that died or hung, a
            compilation for a chip, or a comparison of programs.
    """

    kind: str
    message: str
    line: int | None = None
    file: str = ""
    type: str = ""
    ran: bool = False


@dataclass(frozen=True)
class Timing:
    """The TPU slice for which a program's time is computed. ``profile``: see ``Exercise.timing``."""

    on: str
    axes: Mapping[str, tuple[int, ...]] | None = None
    profile: str = "ideal"


def _no_clock(**_: Any) -> Any:
    raise ValueError("this check has no program, so the clock cannot compute a timeline")


@dataclass(frozen=True)
class Seen:
    """The data that a check gets about a program. An argument ``a`` of the call is ``seen.a``: an array or a tree.

    Inputs have the widest dtype of their kind, such as float64 or int64. Authors' references compute with this dtype.

    Attributes:
        inputs: the inputs; in a call of several steps, the inputs of the first step.
        out, grads: the results; in a call of several steps, the results of the last step.
        outcomes: for a plain function, (arguments, the submission's outcome, the right outcome) of each case.
        steps: the inputs and results of each step.
        check_vma: the argument of ``jax.shard_map``, if the task is the body of a ``shard_map``.
    """

    mesh: Mapping[str, int]
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    out: Any = None
    grads: Mapping[str, Any] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    memory: int = 0
    flops: Interval = ZERO
    dot_flops: Interval = ZERO
    mapped: bool = False
    outcomes: list[tuple[dict[str, Any], Outcome, Outcome]] = field(default_factory=list)
    public: bool = True
    steps: list[Seen] = field(default_factory=list)
    check_vma: bool = False
    operations: Operations | None = None
    differentiated: bool = False  # True if the call asks for gradients.
    part: str = ""  # How messages describe the collectives that ``only`` selects.
    timing: Timing | None = None
    clock: Callable[..., Any] = _no_clock
    # Returns the timeline according to the TPU slice's compiler. None if there is no such compiler.
    chip: Callable[[], Any] | None = None
    # A timed program is not run. It has the ``Poison`` of the smaller program, whose values are judged.
    poison: Poison | None = field(default=None, compare=False, repr=False)
    # Comparisons with budgets. All copies of this object share the list.
    spent: list[BudgetUse] = field(default_factory=list)
    measuring: bool = False  # True to record comparisons with budgets without letting any of them fail.

    def __getattr__(self, name: str) -> Any:
        for table in (self.__dict__.get("inputs", {}), self.__dict__.get("static", {})):
            if name in table:
                return table[name]
        raise AttributeError(f"this check's call has no argument {name!r}")

    def keeps(self, use: BudgetUse) -> bool:
        """Record a comparison. Return whether the amount is within the budget; always True if ``measuring``."""
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
        """Return a copy with only some collectives, as in ``expect_traffic(seen.only(dtype="float32"), at_most=0)``.

        Unknown facts get the lower bound 0: the bytes of a collective with several dtypes, and the rounds of a
        collective whose pass is unknown. The copy's FLOPs are intervals from 0 to the whole program's FLOPs.

        Args:
            kind: keep collectives of this kind (see ``Collective.kind``).
            axis: keep collectives with groups along this mesh axis, even if the groups are along other axes as well.
            dtype: keep collectives that send this dtype.
            backward: True to keep the backward pass, False to keep the forward pass, None to keep both.
        """
        if backward is not None and not self.differentiated:
            raise ValueError("there is no forward or backward pass: the call asks for no gradients (wrt, cotangent)")
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
        """The program's simulated timeline (``grader.clock.Timeline``) on the TPU slice given to ``exercise.timing``.

        ``clock(on=...)`` returns the timeline on another slice.
        """
        return self.clock()

    @property
    def traffic(self) -> dict[str, Interval]:
        """Bytes that a device sends, by mesh axes: 'x', or 'x,y' for collectives with groups along both axes."""
        keys = dict.fromkeys(c.axes for c in self.collectives)
        return {",".join(axes): self.sends([c for c in self.collectives if c.axes == axes]) for axes in keys}

    def sends(self, collectives: Iterable[Collective]) -> Interval:
        """Return the bytes that a device sends in ``collectives``, as an interval over all paths and devices."""
        known = list(collectives)
        alike = all(c.senders is None for c in known)
        devices = [0] if alike else range(math.prod(self.mesh.values()))
        each = [total(known, lambda c, d=device: c.sent_by(d)) for device in devices]
        return Interval(min(e.least for e in each), max(e.most for e in each))


def _of_pass(collectives: Iterable[Collective], backward: bool) -> list[Collective]:
    """Return the collectives of the backward pass if ``backward`` is True, else those of the forward pass.

    If a collective's pass is unknown, its ``rounds.least`` becomes 0.
    """
    found = [c for c in collectives if c.backward in (None, backward)]
    return [c if c.backward is not None else replace(c, rounds=Interval(0, c.rounds.most)) for c in found]


def _of_dtype(collectives: Iterable[Collective], dtype: str) -> list[Collective]:
    """Return the collectives that send ``dtype``. If a collective has several dtypes, its ``sent.least`` becomes 0."""
    found = [c for c in collectives if any(dtype == d for d, _ in c.operands)]
    return [c if c.dtype is not None else replace(c, sent=Interval(0, c.sent.most)) for c in found]
