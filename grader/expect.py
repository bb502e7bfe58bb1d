"""The words of a check. Each compares what was seen with what was asked and raises Failure with data.

NumPy only. Shape and dtype are compared before values, so that a wrong shape is a learner's
failure and never an error of ours. NaN never passes: every comparison is ``difference <= bound``.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from grader.layout import coordinates, entries, owner_slices, show_device, show_spec
from grader.observation import Collective, Outcome, Seen, Sharded
from grader.wire import is_spec


class Failure(Exception):
    """A check that was not met.

    Attributes:
        reason: one line, lower case, for the learner; no hidden expected value in it.
        expected, actual: data for the renderer (None when there is nothing to show).
        where: device, index or source line.
        staff: one line for staff only, such as a hidden case.
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


def expect_close(got: Sharded, want: np.ndarray, *, terms: int = 1024, scale: float | None = None) -> None:
    """Every device holds its part of ``want``.

    The bound follows from the dtype's epsilon and the number of terms summed per element:
    ``eps * (4 + 2*sqrt(terms)) * max|want|`` (random-walk growth of rounding errors). 16-bit types
    accumulate in float32; what is rounded to them is at most a sum over devices, 8 terms.

    Args:
        got: an output array.
        want: reference, best computed in float64.
        terms: length of the longest reduction behind one element.
        scale: replaces ``max|want|``.
    """
    _expect_array(got, want)
    if got.dtype.kind == "c":
        raise Failure(f"the result is {got.dtype.name}, expected real numbers", actual=got.dtype.name)
    want = np.asarray(want, np.float64)
    eps = float(ml_dtypes.finfo(got.dtype).eps) if _is_float(got.dtype) else 0.0
    size = scale if scale is not None else float(np.max(np.abs(want), initial=0.0))
    rounded = terms if got.dtype.itemsize >= 4 else min(terms, 8)
    bound = eps * (4 + 2 * np.sqrt(rounded)) * size
    for point, where, shard in zip(coordinates(got.mesh), got.slices, got.shards, strict=True):
        part = want[tuple(slice(a, b) for a, b in where)]
        good = np.abs(shard.astype(np.float64) - part) <= bound
        if not good.all():
            raise _wrong_values(got, want, point, where, good, bound)


def expect_equal(got: Sharded, want: np.ndarray) -> None:
    """Every device holds exactly its part of ``want``."""
    _expect_array(got, want)
    for point, where, shard in zip(coordinates(got.mesh), got.slices, got.shards, strict=True):
        good = shard == np.asarray(want)[tuple(slice(a, b) for a, b in where)]
        if not good.all():
            raise _wrong_values(got, np.asarray(want, np.float64), point, where, good, 0.0)


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype.kind == "V" or "float" in dtype.name


def _expect_one(got: Any) -> None:
    if not isinstance(got, Sharded):
        raise Failure(f"the result should be one array, not {_describe(got)}")


def _expect_array(got: Any, want: np.ndarray) -> None:
    _expect_one(got)
    want = np.asarray(want)
    if got.shape != want.shape:
        raise Failure(f"the result has shape {got.shape}, expected {want.shape}", expected=want.shape, actual=got.shape)
    if not np.isfinite(want.astype(np.float64)).all():
        raise ValueError("the reference of this check is not finite")


def _describe(got: Any) -> str:
    return f"a tuple of {len(got)}" if isinstance(got, list | tuple) else type(got).__name__


def _wrong_values(got, want, point, where, good, bound) -> Failure:
    from grader.diagnose import explain

    wrong = int(np.size(good) - np.count_nonzero(good))
    first = tuple(int(i) for i in np.argwhere(~good)[0]) if good.ndim else ()
    place = tuple(i + a for i, (a, _) in zip(first, where, strict=True))
    many = "all" if wrong == good.size else f"{wrong} of {good.size}"
    text = f"on device {show_device(point)}, {many} values are wrong, the first at {list(place)}"
    return Failure(text + explain(got, want, bound), where=show_device(point))


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


def expect_collectives(seen: Seen, **wanted: Budget) -> None:
    """Exactly these collectives: ``expect_collectives(seen, reduce_scatter={"x": 1})``.

    Keys are kinds (see ``Collective.kind``), values map an axis (or a tuple of axes) to a count,
    loops multiplied out. Axes of size 1 move nothing and are ignored on both sides.
    """
    want = {
        (kind, axes): count
        for kind, budget in wanted.items()
        for names, count in budget.items()
        if count and (axes := _real_axes((names,) if isinstance(names, str) else names, seen))
    }
    found: dict[tuple[str, tuple[str, ...]], int] = {}
    for c in seen.collectives:
        if c.count is None:
            raise Failure(
                f"{_line(c)}{c.kind} over {_axes(c)} runs in a loop whose number of rounds cannot be read "
                "from the program; use a fixed number of rounds",
                where=_line(c).rstrip(": "),
            )
        found[c.kind, c.axes] = found.get((c.kind, c.axes), 0) + c.count
    for c in seen.collectives:
        if found[c.kind, c.axes] > want.get((c.kind, c.axes), 0):
            raise Failure(
                f"{_line(c)}{_say(found, c)}; {_say_budget(want)}",
                expected=_table(want),
                actual=_table(found),
                where=_line(c).rstrip(": "),
            )
    for key, count in want.items():
        if found.get(key, 0) < count:
            raise Failure(
                f"{_say_budget(want)}; the program has {_say_table(found)}",
                expected=_table(want),
                actual=_table(found),
            )


def expect_no_collectives(seen: Seen) -> None:
    """Devices do not talk."""
    expect_collectives(seen)


def expect_only(seen: Seen, *kinds: str) -> None:
    """No collective of another kind than these, whatever their number."""
    for c in seen.collectives:
        if c.kind not in kinds:
            raise Failure(
                f"{_line(c)}{c.kind} over {_axes(c)} is not allowed here, only {' and '.join(kinds) or 'local work'}",
                expected=list(kinds),
                actual=c.kind,
                where=_line(c).rstrip(": "),
            )


def expect_traffic(seen: Seen, *, at_most: float, axis: str | None = None) -> None:
    """One device sends at most this many bytes (over ``axis``, or in all)."""
    sent: float = 0
    for key, total in seen.traffic.items():
        if axis is None or axis in key.split(","):
            if total is None:
                raise Failure("a loop's number of rounds cannot be read, so its traffic is unknown")
            sent += total
    if not sent <= at_most:
        worst = max(seen.collectives, key=lambda c: c.sent * (c.count or 1))
        raise Failure(
            f"each device sends {show_bytes(sent)}, the budget is {show_bytes(at_most)}; most of it by "
            f"{_line(worst)}{worst.kind} over {_axes(worst)}",
            expected=at_most,
            actual=sent,
            where=_line(worst).rstrip(": "),
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
    """Matrix products cost at most this many FLOPs per device."""
    if not seen.flops <= at_most:
        raise Failure(
            f"each device spends {seen.flops:,} FLOPs on matrix products, the budget is {int(at_most):,}",
            expected=at_most,
            actual=seen.flops,
        )


def show_bytes(n: float) -> str:
    """``1.5 KiB``: powers of 1024, at most one decimal."""
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


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"


def _say(found: dict, c: Collective) -> str:
    return f"{c.kind} over {_axes(c)}{_times(found[c.kind, c.axes])} ({show_bytes(c.sent)} sent by each device)"


def _say_table(table: dict) -> str:
    said = [f"{kind} over {' and '.join(axes) or 'other'}{_times(n)}" for (kind, axes), n in table.items()]
    return ", ".join(said) or "none"


def _say_budget(want: dict) -> str:
    return f"the budget is {_say_table(want)}" if want else "no communication is needed"


def _table(counts: dict) -> dict[str, int]:
    return {f"{kind} {','.join(axes)}": n for (kind, axes), n in counts.items()}


# -- pure functions ----------------------------------------------------------------------------


def expect_outcomes(seen: Seen, *, where: Any = None, rtol: float = 0.0) -> None:
    """The function returned (or raised) what the reference does, for every argument set ``where`` admits.

    Args:
        where: ``where(args) -> bool`` keeps a part of the cases.
        rtol: relative tolerance for floats; ints, strings and tuples are compared exactly
            (a list counts as the tuple of its elements).
    """
    cases = [c for c in seen.outcomes if where is None or where(c[0])]
    if not cases:
        raise ValueError("this check selects no case")
    wrong = [c for c in cases if not same_outcome(c[1], c[2], rtol)]
    if not wrong:
        return
    args, got, want = wrong[0]
    call = ", ".join(f"{k}={show_value(v)}" for k, v in args.items())
    told = f"for {call} it {show_outcome(got)}, expected: it {show_outcome(want)}"
    if seen.public:
        raise Failure(told, expected=show_outcome(want), actual=show_outcome(got), where=_at_line(got))
    said = (
        f"it raised {_known_error(got)}"
        if got.error
        else f"it should raise {want.error}"
        if want.error
        else "gives a wrong value"
    )
    raise Failure(f"in {len(wrong)} of {len(cases)} hidden cases it is wrong: {said}", staff=told, where=_at_line(got))


def _known_error(got: Outcome) -> str:
    """The error's nearest built-in kind; its text is the learner's and could carry the hidden arguments away."""
    return next((k for k in (got.error or "", *got.kinds) if isinstance(getattr(builtins, k, None), type)), "an error")


def _at_line(outcome: Outcome) -> str:
    return f"line {outcome.line}" if outcome.line else ""


def same_outcome(got: Outcome, want: Outcome, rtol: float = 0.0) -> bool:
    """True when both returned the same value, or both raised the same kind of error."""
    if want.error or got.error:
        return want.error is not None and want.error in (got.error, *got.kinds)
    return _same(got.value, want.value, rtol)


def _same(got: Any, want: Any, rtol: float) -> bool:
    if isinstance(want, list | tuple):
        return (
            isinstance(got, list | tuple)
            and len(got) == len(want)
            and all(_same(g, w, rtol) for g, w in zip(got, want, strict=True))
        )
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(_same(got[k], want[k], rtol) for k in want)
    if isinstance(want, bool) or isinstance(got, bool) or want is None or isinstance(want, str):
        return type(got) is type(want) and got == want
    if is_spec(want):
        return is_spec(got) and _trimmed(got) == _trimmed(want)
    if isinstance(want, slice):  # its parts are indices: 3.0 is none
        parts = ((getattr(got, part, ...), getattr(want, part)) for part in ("start", "stop", "step"))
        return isinstance(got, slice) and all(_same(g, w, 0.0) for g, w in parts)
    if not isinstance(got, int | float) or (rtol == 0 and isinstance(want, int) and isinstance(got, float)):
        return False  # 3.0 is no shape, no count and no index
    if got == want:  # infinities, too
        return True
    try:
        return math.isfinite(got) and math.isfinite(want) and abs(got - want) <= rtol * abs(want)
    except OverflowError:  # an integer beyond all floats
        return False


def _trimmed(spec: Any) -> list:
    """Entries without trailing None: P('x') and P('x', None) say the same of a two-dimensional array."""
    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return entries


def show_value(value: Any) -> str:
    """A value as a learner would type it."""
    return show_spec(value) if is_spec(value) else repr(value)


def show_outcome(outcome: Outcome) -> str:
    if outcome.error:
        told = f" ({outcome.message})" if outcome.message else ""
        return f"raised {outcome.error}{told}"
    return f"returned {show_value(outcome.value)}"
