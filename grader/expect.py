"""The words of a check. Each compares what was seen with what was asked and raises Failure with data.

NumPy only. The reference sets the terms: shape and dtype are compared before values, and the tolerance
follows from what was due, so that nothing a program returns is more than a wrong result: no error of
ours, and no wider bound. NaN never passes: every comparison is ``difference <= bound``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from grader.common.layout import coordinates, owner_slices, show_device, show_spec
from grader.common.layout import entries as entries  # for authors, too
from grader.common.observation import NOTHING, Collective, Interval, Outcome, Seen, Sharded, total
from grader.wire.frames import NOT_PLAIN, dtype_of, is_inexact, is_spec, wide


class Failure(Exception):
    """A check that was not met.

    Attributes:
        reason: one line, lower case, for the learner; no hidden expected value in it.
        expected, actual: data for the renderer (None when there is nothing to show).
        where: device, index or source line.
        staff: one line for staff only, such as the arguments; of secret inputs only ``grade --why`` tells it.
        layouts: two of ``(mesh, shape, slices)`` to draw, the learner's and the expected one.
    """

    def __init__(
        self,
        reason: str,
        *,
        expected: Any = None,
        actual: Any = None,
        where: str = "",
        staff: str = "",
        layouts: tuple[tuple, tuple] | None = None,
    ) -> None:
        super().__init__(reason)
        self.staff = staff
        self.reason, self.expected, self.actual, self.where = reason, expected, actual, where
        self.layouts = layouts


# -- values ------------------------------------------------------------------------------------

AS_ARGUMENTS = "as the arguments"
COARSE = 0.5  # a tolerance of this part of the largest value lets nearly everything pass


def expect_close(
    got: Sharded,
    want: np.ndarray,
    *,
    terms: int = 1024,
    scale: float | None = None,
    dtype: str | None = AS_ARGUMENTS,
) -> None:
    """Every device holds its part of ``want``, in the dtype that is due.

    The bound follows from the due dtype's epsilon and the number of terms summed per element:
    ``eps * (4 + 2*sqrt(terms)) * max|want|`` (random-walk growth of rounding errors). 16-bit types
    accumulate in float32; what is rounded to them is at most a sum over devices, 8 terms.
    Nothing of it comes from what was returned.

    Args:
        got: an output array.
        want: reference, best computed in float64.
        terms: length of the longest reduction behind one element.
        scale: replaces ``max|want|``.
        dtype: what the result must be, by name; that of the call's arguments unless it is given.
            None: any dtype will do, if it is as accurate as the arguments'.
    """
    due, want = _expect_array(got, want, dtype)
    bound = _tolerance(due, terms, scale) * (scale if scale is not None else float(np.max(np.abs(want), initial=0.0)))
    with np.errstate(all="ignore"):
        for point, where, shard in zip(coordinates(got.mesh), got.slices, got.shards, strict=True):
            good = np.abs(wide(shard) - want[tuple(slice(a, b) for a, b in where)]) <= bound
            if not good.all():
                raise _wrong_values(got, want, point, where, good, bound)


def expect_equal(got: Sharded, want: np.ndarray, *, dtype: str | None = AS_ARGUMENTS) -> None:
    """Every device holds exactly its part of ``want``, in the dtype that is due (see ``expect_close``)."""
    exact = np.asarray(want)
    _, want = _expect_array(got, exact, dtype)
    for point, where, shard in zip(coordinates(got.mesh), got.slices, got.shards, strict=True):
        held = shard if shard.dtype.kind in "biu" else wide(shard)  # integers beyond 2**53 are no floats
        good = held == exact[tuple(slice(a, b) for a, b in where)]
        if not good.all():
            raise _wrong_values(got, want, point, where, good, 0.0)


def _tolerance(due: np.dtype, terms: int, scale: float | None) -> float:
    """The tolerance as a part of the largest value."""
    if not is_inexact(due):
        return 0.0
    rounded = terms if due.itemsize >= 4 else min(terms, 8)
    part = float(ml_dtypes.finfo(due).eps) * (4 + 2 * math.sqrt(rounded))
    if scale is None and part >= COARSE:
        raise ValueError(f"{due.name} is so coarse that wrong values would pass: use expect_equal, or give a scale")
    return part


def _expect_one(got: Any) -> None:
    if isinstance(got, Sharded):
        return
    if isinstance(got, list | tuple) and not got:
        raise Failure("returned nothing; is a return missing?")
    kind = f"a tuple of {len(got)}" if isinstance(got, list | tuple) else type(got).__name__
    raise Failure(f"the result should be one array, not {kind}")


def _expect_array(got: Any, want: np.ndarray, dtype: str | None) -> tuple[np.dtype, np.ndarray]:
    """The dtype that is due and the reference as float64 (or complex128), once shape and dtype are right."""
    _expect_one(got)
    want = wide(np.asarray(want))
    if not np.isfinite(want).all():
        raise ValueError("the reference of this check is not finite")
    due = dtype_of(dtype) if dtype not in (AS_ARGUMENTS, None) else got.due
    if due is None:
        raise ValueError("the arguments do not settle the dtype of the result: name it, dtype='float32'")
    if got.shape != want.shape:
        raise Failure(_wrong_shape(got, want.shape), expected=want.shape, actual=got.shape)
    if dtype is not None:
        expect_dtype(got, due.name)
    elif got.dtype.kind in "cW" and want.dtype.kind != "c":
        raise Failure(f"the result is {got.dtype.name}, expected real numbers", actual=got.dtype.name)
    return due, want


def _wrong_shape(got: Sharded, want: tuple[int, ...]) -> str:
    """Of a body a learner sees what each device returns, not what ``out_specs`` makes of it."""
    if not got.per_device:
        return f"the result has shape {got.shape}, expected {want}"
    local = got.shards[0].shape
    cuts = [whole // part if part else 0 for whole, part in zip(got.shape, local, strict=True)]
    pairs = list(itertools.zip_longest(want, cuts, fillvalue=1))
    if not all(cut and n % cut == 0 for n, cut in pairs):
        return f"each device returns shape {local}; put together that is {got.shape}, expected {want}"
    due = tuple(n // cut for n, cut in pairs)[: len(want)]
    whole = "" if got.shape == local else f"; put together that is {got.shape}, expected {want}"
    return f"each device returns shape {local}, expected {due}{whole}"


def _wrong_values(got, want, point, where, good, bound) -> Failure:
    from grader.common.diagnose import explain

    wrong = int(np.size(good) - np.count_nonzero(good))
    first = tuple(int(i) for i in np.argwhere(~good)[0]) if good.ndim else ()
    place = [i + a for i, (a, _) in zip(first, where, strict=True)]
    if good.size == 1:
        text = f"the value at {place} is wrong" if place else "the value is wrong"
    else:
        text = f"{'all' if wrong == good.size else f'{wrong} of {good.size}'} values are wrong, the first at {place}"
    device = show_device(point)
    return Failure(f"on device {device}, {text}{explain(got, want, bound)}", where=device)


def expect_dtype(got: Sharded, dtype: str) -> None:
    """The result has this dtype, by name."""
    _expect_one(got)
    if got.dtype.name != dtype:
        raise Failure(f"the result is {got.dtype.name}, expected {dtype}", expected=dtype, actual=got.dtype.name)


# -- layout ------------------------------------------------------------------------------------


def expect_spec(got: Sharded, spec: Iterable) -> None:
    """The devices hold the parts that ``spec`` gives them.

    Layouts are compared, not texts: P('x') and P('x', None) are one layout, P(('x', 'y')) and
    P(('y', 'x')) are two.
    """
    _expect_one(got)
    try:
        wanted = owner_slices(got.shape, spec, got.mesh)
    except ValueError:  # not an author's slip: another check has the right shape, or the reference fails it too
        full = show_spec(spec)
        raise Failure(f"the result has shape {got.shape}, which cannot be sharded {full}", actual=got.shape) from None
    if got.slices == wanted:
        return
    at = next(i for i, pair in enumerate(zip(got.slices, wanted, strict=True)) if pair[0] != pair[1])
    device = show_device(coordinates(got.mesh)[at])
    full = tuple(None if not e else e[0] if len(e) == 1 else e for e in entries(spec, len(got.shape)))
    raise Failure(
        f"the result is sharded {show_spec(got.spec)}, expected {show_spec(full)}: device {device} holds "
        f"{_ranges(got.slices[at])}, expected {_ranges(wanted[at])}",
        expected=show_spec(full),
        actual=show_spec(got.spec),
        where=device,
        layouts=((got.mesh, got.shape, got.slices), (got.mesh, got.shape, wanted)),
    )


def expect_shard_map(seen: Seen) -> None:
    """The matrix products stand in the body of ``jax.shard_map``: the learner laid them out, not the compiler."""
    if not seen.mapped:
        raise Failure("the product is not computed inside jax.shard_map, so the compiler says who computes what")


def _ranges(slices: tuple[tuple[int, int], ...]) -> str:
    return "[" + ", ".join(f"{a}:{b}" for a, b in slices) + "]"


# -- communication -----------------------------------------------------------------------------

Budget = Mapping[str | tuple[str, ...], int]
Key = tuple[str, tuple[str, ...]]


def expect_collectives(seen: Seen, **wanted: Budget) -> None:
    """Exactly these collectives: ``expect_collectives(seen, reduce_scatter={"x": 1})``.

    Keys are kinds (see ``Collective.kind``), values map an axis (or a tuple of axes) to a count,
    loops multiplied out, on every path. Axes of size 1 move nothing and are ignored on both sides.
    """
    want = {
        (kind, axes): count
        for kind, budget in wanted.items()
        for names, count in budget.items()
        if count and (axes := _real_axes((names,) if isinstance(names, str) else names, seen))
    }
    by_kind: dict[Key, list[Collective]] = {}
    for c in seen.collectives:
        by_kind.setdefault((c.kind, c.axes), []).append(c)
    found = {key: total(cs, lambda c: Interval.of(1)) for key, cs in by_kind.items()}
    for c in seen.collectives:
        if not c.rounds.known:
            raise Failure(
                f"{_line(c)}{c.kind} over {_axes(c)} runs in a loop whose number of rounds cannot be read "
                "from the program; use a fixed number of rounds",
                where=_line(c).rstrip(": "),
            )
    for c in seen.collectives:
        if not found[c.kind, c.axes].most <= want.get((c.kind, c.axes), 0):
            raise Failure(
                f"{_line(c)}{_say(found, c)}; {_say_budget(want)}",
                expected=_table(want),
                actual=_table(found),
                where=_line(c).rstrip(": "),
            )
    for key, count in want.items():
        if not found.get(key, NOTHING).least >= count:
            raise Failure(
                f"{_say_budget(want)}; the program has {_say_table(found)}",
                expected=_table(want),
                actual=_table(found),
            )


def expect_no_collectives(seen: Seen) -> None:
    """Devices do not talk."""
    expect_collectives(seen)


def expect_only(seen: Seen, *kinds: str) -> None:
    """No collective of another kind than these, whatever their number; one that never runs is none."""
    for c in seen.collectives:
        if c.kind not in kinds and c.count.most:
            raise Failure(
                f"{_line(c)}{c.kind} over {_axes(c)} is not allowed here, only {' and '.join(kinds) or 'local work'}",
                expected=list(kinds),
                actual=c.kind,
                where=_line(c).rstrip(": "),
            )


def expect_traffic(seen: Seen, *, at_most: float, axis: str | None = None) -> None:
    """No device sends more than this many bytes (over ``axis``, or in all), on any path."""
    counted = [c for c in seen.collectives if axis is None or axis in c.axes]
    sent = seen.sends(counted)
    if not sent.known:
        raise Failure("a loop's number of rounds cannot be read, so its traffic is unknown")
    if not sent.most <= at_most:
        worst = max(counted, key=lambda c: (c.sent * c.rounds).most, default=None)
        who = "each device sends" if sent.exact else "a device sends up to"
        raise Failure(
            f"{who} {show_bytes(sent.most)}, the budget is {show_bytes(at_most)}"
            + (f"; most of it by {_line(worst)}{worst.kind} over {_axes(worst)}" if worst else ""),
            expected=at_most,
            actual=sent.most,
            where=_line(worst).rstrip(": ") if worst else "",
        )


def expect_memory(seen: Seen, *, at_most: float) -> None:
    """The compiler needs at most this many temporary bytes per device."""
    if not seen.memory <= at_most:
        raise Failure(
            f"the program needs {show_bytes(seen.memory)} of temporary memory per device, "
            f"the budget is {show_bytes(at_most)}",
            expected=at_most,
            actual=seen.memory,
        )


def expect_flops(seen: Seen, *, at_most: float) -> None:
    """Matrix products cost at most this many FLOPs per device, on any path; all other arithmetic no more than that.

    Products written out as multiplications and sums are products. The other arithmetic has a budget of its own, so
    that nothing is gained by a product that is written so that nobody knows it for one.
    """
    other = _difference(seen.flops.most, seen.dot_flops.most)
    for spent, what in ((seen.dot_flops.most, "on matrix products"), (other, "besides matrix products")):
        if spent == math.inf:
            raise Failure("a loop's number of rounds cannot be read, so its FLOPs are unknown")
        if not spent <= at_most:
            raise Failure(
                f"each device spends {_show_number(spent)} FLOPs {what}, the budget is {_show_number(at_most)}",
                expected=at_most,
                actual=spent,
            )


def _difference(flops: float, dots: float) -> float:
    return math.inf if flops == math.inf else max(0, flops - dots)


def _show_number(n: float) -> str:
    return f"{int(n):,}" if math.isfinite(n) else str(n)


def show_bytes(n: float) -> str:
    """``1.5 KiB``: powers of 1024, at most one decimal."""
    if not math.isfinite(n):
        return str(n)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" or n == int(n) else f"{n:.1f} {unit}"
        n /= 1024
    raise AssertionError


def _real_axes(names: tuple[str, ...], seen: Seen) -> tuple[str, ...]:
    return tuple(a for a in seen.mesh if a in names and seen.mesh[a] > 1)


def _axes(c: Collective) -> str:
    return " and ".join(c.axes) or "devices that follow no mesh axis"


def _line(c: Collective) -> str:
    if c.by_compiler:
        return "put in by the compiler, because shardings do not match: "
    cell = f"{c.file}, " if c.file and c.file.startswith("cell") else ""
    return f"{cell}line {c.line}: " if c.line else ""


def _times(count: Interval | int) -> str:
    return "" if count == 1 else f" {count} times"


def _say(found: Mapping[Key, Interval], c: Collective) -> str:
    sent = f"{show_bytes(c.sent.most)} sent by each device" if c.sent.exact else f"up to {show_bytes(c.sent.most)} sent"
    return f"{c.kind} over {_axes(c)}{_times(found[c.kind, c.axes])} ({sent})"


def _say_table(table: Mapping[Key, Interval] | Mapping[Key, int]) -> str:
    said = [f"{kind} over {' and '.join(axes) or 'other'}{_times(n)}" for (kind, axes), n in table.items()]
    return ", ".join(said) or "none"


def _say_budget(want: Mapping[Key, int]) -> str:
    return f"the budget is {_say_table(want)}" if want else "no communication is needed"


def _table(counts: Mapping[Key, Interval] | Mapping[Key, int]) -> dict[str, int | str]:
    exact = {k: n if isinstance(n, int) else int(n.most) if n.exact else str(n) for k, n in counts.items()}
    return {f"{kind} {','.join(axes)}": n for (kind, axes), n in exact.items()}


# -- pure functions ----------------------------------------------------------------------------

UNTOLD = "it is wrong for arguments that are not shown here"
SHOWN = 300  # characters of a value


def expect_outcomes(seen: Seen, *, where: Any = None, rtol: float = 0.0, ints: bool = False) -> None:
    """The function returned (or raised) what the reference does, for every argument set ``where`` admits.

    Of arguments that are secret a learner is told one sentence, always the same.

    Args:
        where: ``where(args) -> bool`` keeps a part of the cases.
        rtol: relative tolerance for numbers; strings, specs and slices are compared exactly. What is equal
            is equal: a list and a tuple of its elements, 3.0 and 3, slice(0, 12) and slice(None, 12, 1).
        ints: 3.0 is no 3, as in a shape. The bounds of a slice are always ints.
    """
    cases = [c for c in seen.outcomes if where is None or where(c[0])]
    if not cases:
        raise ValueError("this check selects no case")
    wrong = [c for c in cases if not same_outcome(c[1], c[2], rtol, ints)]
    if not wrong:
        return
    args, got, want = wrong[0]
    call = ", ".join(f"{k}={show_value(v)}" for k, v in args.items())
    told = f"for {call} it {show_outcome(got)}, expected: it {show_outcome(want)}{_why(got, want, ints)}"
    if seen.public:
        raise Failure(told, expected=show_outcome(want), actual=show_outcome(got), where=_at_line(got))
    raise Failure(UNTOLD, staff=f"in {len(wrong)} of {len(cases)} cases it is wrong: {told}")


def _why(got: Outcome, want: Outcome, ints: bool) -> str:
    """What a reader of the two values may overlook."""
    if got.error or want.error:
        return ""
    if got.value is None:
        return "; is a return missing?"
    slip = _float_for_int(got.value, want.value, ints)
    return "" if slip is None else f"; {slip!r} is a float where an int is needed: use //"


def _at_line(outcome: Outcome) -> str:
    return f"line {outcome.line}" if outcome.line else ""


def same_outcome(got: Outcome, want: Outcome, rtol: float = 0.0, ints: bool = False) -> bool:
    """True when both returned the same value, or both raised the same kind of error."""
    if want.error or got.error:
        return want.error is not None and want.error in (got.error, *got.kinds)
    return _same(got.value, want.value, rtol, ints)


def _same(got: Any, want: Any, rtol: float, ints: bool) -> bool:
    if isinstance(want, list | tuple):
        return (
            isinstance(got, list | tuple)
            and len(got) == len(want)
            and all(_same(g, w, rtol, ints) for g, w in zip(got, want, strict=True))
        )
    if isinstance(want, dict):
        same_keys = isinstance(got, dict) and got.keys() == want.keys()
        return same_keys and all(_same(got[k], want[k], rtol, ints) for k in want)
    if isinstance(want, bool) or isinstance(got, bool) or want is None or isinstance(want, str):
        return type(got) is type(want) and got == want
    if is_spec(want):
        return is_spec(got) and _trimmed(got) == _trimmed(want)
    if isinstance(want, slice):
        return isinstance(got, slice) and _same(_bounds(got), _bounds(want), 0.0, True)
    if not isinstance(got, int | float) or (ints and isinstance(want, int) and isinstance(got, float)):
        return False
    if got == want:  # infinities, too
        return True
    if rtol == 0:  # Python compares integers beyond 2**53 with floats exactly, and subtracts them roughly
        return False
    try:
        return math.isfinite(got) and math.isfinite(want) and abs(got - want) <= rtol * abs(want)
    except OverflowError:  # an integer beyond all floats
        return False


def _float_for_int(got: Any, want: Any, ints: bool) -> float | None:
    """The first float that stands where an int is needed."""
    if isinstance(want, slice) and isinstance(got, slice):
        return _float_for_int(_bounds(got), _bounds(want), True)
    if isinstance(want, list | tuple) and isinstance(got, list | tuple):
        pairs = list(zip(got, want, strict=False))
    elif isinstance(want, dict) and isinstance(got, dict):
        pairs = [(got[k], want[k]) for k in want if k in got]
    else:
        return got if ints and isinstance(got, float) and type(want) is int else None
    return next((slip for g, w in pairs if (slip := _float_for_int(g, w, ints)) is not None), None)


def _bounds(part: slice) -> tuple[Any, Any, Any]:
    """Start, stop and step, with what Python takes where nothing is said."""
    step = 1 if part.step is None else part.step
    return 0 if part.start is None and step == 1 else part.start, part.stop, step


def _trimmed(spec: Any) -> list:
    """Entries without trailing None: P('x') and P('x', None) say the same of a two-dimensional array."""
    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return entries


def show_value(value: Any) -> str:
    """A value as a learner would type it, cut where it is long."""
    text = show_spec(value) if is_spec(value) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def show_outcome(outcome: Outcome) -> str:
    if outcome.error == NOT_PLAIN:
        return outcome.message
    if outcome.error:
        told = f" ({outcome.message})" if outcome.message else ""
        return f"raised {outcome.error}{told}"
    return f"returned {show_value(outcome.value)}"
