"""Check values, shape, dtype and layout of results against the reference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from grader.common.diagnose import explain
from grader.common.layout import Slices, coordinates, entries, owner_slices, show_device, show_spec
from grader.common.observation import Seen, Sharded
from grader.expect.failure import Compared, Failure
from grader.wire.frames import dtype_of, is_inexact, wide
from grader.wire.trees import Misfit, fitted, flat, is_tree, mapped

AS_ARGUMENTS = "as the arguments"
SHOWN = 4  # a message shows at most this many wrong values
FACTORS = 4
TERMS = 1024
COARSE = 0.5  # if the tolerance is this fraction of the largest value, nearly all wrong values pass


def expect_close(
    got: Any,
    want: Any,
    *,
    terms: int = TERMS,
    scale: float | None = None,
    dtype: str | None = AS_ARGUMENTS,
) -> None:
    """Check that every device holds its part of ``want``, in the expected dtype.

    The bound follows from the expected dtype's epsilon and the number of terms summed per element: ``eps * (4 +
    2*sqrt(terms)) * max|want|`` (random-walk growth of rounding errors). For 16-bit types, the bound counts at most 8
    terms, because devices accumulate in float32 and round to 16 bits only in sums over devices. The bound never depends
    on the returned values.

    Real devices may round matmul operands more coarsely than the expected dtype. ``Sharded.factors`` is then the
    epsilon of the operands' dtype. The bound of these errors is ``FACTORS * factors * max|want|``. It does not depend
    on the number of terms, because the errors and ``max|want|`` grow equally with this number. One matmul has an error
    of half an epsilon of the operands; a chain of a few matmuls has an error of up to three epsilons. The larger of the
    two bounds applies, but float64 and complex128 have only the first bound. If the error exceeds the bound on real
    devices, the verdict comes from a second run with float32 matmuls.

    Args:
        got: an output array, or a tree of output arrays.
        want: reference, which authors should compute in float64; for a tree, a tree of references.
        terms: number of terms in the longest sum that an element of the result depends on.
        scale: replaces ``max|want|`` in the formula of the bound.
        dtype: name of the result's dtype. The default is the dtype of the call's arguments. None allows any dtype, but
            the bound still follows from the arguments' dtype.
    """
    leaf_by_leaf(lambda g, w: _close(g, w, terms, scale, dtype), got, want)


def _close(got: Sharded, want: np.ndarray, terms: int, scale: float | None, dtype: str | None) -> None:
    due, want = _expect_array(got, want, dtype)
    bound = _tolerance(due, terms, scale, got.factors) * (
        scale if scale is not None else float(np.max(np.abs(want), initial=0.0))
    )
    with np.errstate(all="ignore"):
        pairs = zip(got.slices, got.shards, strict=True)
        good = [np.abs(wide(shard) - _part(want, where)) <= bound for where, shard in pairs]
    _all_good(got, want, good, bound, want)


def expect_equal(got: Any, want: Any, *, dtype: str | None = AS_ARGUMENTS) -> None:
    """Check that every device holds exactly its part of ``want``, in the expected dtype (see ``expect_close``)."""
    leaf_by_leaf(lambda g, w: _equal(g, w, dtype), got, want)


def _equal(got: Sharded, want: np.ndarray, dtype: str | None) -> None:
    exact = np.asarray(want)
    _, want = _expect_array(got, exact, dtype)
    pairs = zip(got.slices, map(_held, got.shards), strict=True)
    _all_good(got, want, [held == _part(exact, where) for where, held in pairs], 0.0, exact)


def _held(shard: np.ndarray) -> np.ndarray:
    return shard if shard.dtype.kind in "biu" else wide(shard)  # float64 cannot hold all integers beyond 2**53


def _part(whole: np.ndarray, where: Slices) -> np.ndarray:
    return whole[tuple(slice(a, b) for a, b in where)]


def one_array(got: Any) -> None:
    """Raise Failure if the result is not one array."""
    if isinstance(got, Sharded):
        return
    if isinstance(got, list | tuple) and not got:
        raise Failure("returned nothing; is a return missing?")
    kind = f"a tuple of {len(got)}" if isinstance(got, list | tuple) else type(got).__name__
    raise Failure(f"the result should be one array, not {kind}")


def lets_pass(dtype: np.dtype) -> float:
    """Return the default tolerance of ``expect_close``, as a fraction of the largest value."""
    return _tolerance(dtype, TERMS, 1.0, 0.0)


def _tolerance(due: np.dtype, terms: int, scale: float | None, factors: float) -> float:
    """Return the tolerance for values of dtype ``due``, as a fraction of the largest value."""
    if not is_inexact(due):
        return 0.0
    rounded = terms if due.itemsize >= 4 else min(terms, 8)
    part = float(ml_dtypes.finfo(due).eps) * (4 + 2 * math.sqrt(rounded))
    part = max(part, FACTORS * factors if due.name not in ("float64", "complex128") else 0.0)
    if scale is None and part >= COARSE:
        raise ValueError(f"{due.name} is so coarse that wrong values would pass: use expect_equal, or give a scale")
    return part


def _expect_array(got: Any, want: np.ndarray, dtype: str | None) -> tuple[np.dtype, np.ndarray]:
    """Check shape and dtype; return the expected dtype, and the reference as float64 (or complex128)."""
    one_array(got)
    want = wide(np.asarray(want))
    if not np.isfinite(want).all():
        if got.step > 1:  # the reference was computed from the program's results of the previous step
            raise Failure("the results of the previous step lead to NaN or infinite values")
        raise ValueError("the reference's result in this check has NaN or infinite values")
    due = dtype_of(dtype) if dtype not in (AS_ARGUMENTS, None) else got.due
    if due is None:
        raise ValueError("the arguments do not determine the dtype of the result; pass dtype='float32'")
    if got.shape != want.shape:
        raise Failure(_wrong_shape(got, want.shape), expected=want.shape, actual=got.shape)
    if dtype is not None and got.dtype.name != due.name:
        raise Failure(f"the result is {got.dtype.name}, expected {due.name}", expected=due.name, actual=got.dtype.name)
    if dtype is None and got.dtype.kind in "cW" and want.dtype.kind != "c":
        raise Failure(f"the result is {got.dtype.name}, expected real numbers", actual=got.dtype.name)
    return due, want


def _wrong_shape(got: Sharded, want: tuple[int, ...]) -> str:
    """Describe a wrong shape. For the body of a ``shard_map``, describe the shape that each device returns."""
    if not got.per_device:
        return f"the result has shape {got.shape}, expected {want}{_stacked(got.shape, want, got.mesh)}"
    local = got.shards[0].shape
    cuts = [whole // part if part else 0 for whole, part in zip(got.shape, local, strict=True)]
    pairs = list(itertools.zip_longest(want, cuts, fillvalue=1))
    if not all(cut and n % cut == 0 for n, cut in pairs):
        return f"each device returns shape {local}; the whole result has shape {got.shape}, expected {want}"
    due = tuple(n // cut for n, cut in pairs)[: len(want)]
    whole = "" if got.shape == local else f"; the whole result has shape {got.shape}, expected {want}"
    return f"each device returns shape {local}, expected {due}{_stacked(local, due, got.mesh)}{whole}"


def _stacked(shape: tuple[int, ...], due: tuple[int, ...], mesh: Mapping[str, int]) -> str:
    """Return a remark if ``shape`` has one more dimension than ``due``, of the size of a mesh axis; else ''."""
    if len(shape) != len(due) + 1 or math.prod(shape) != math.prod(due):
        return ""
    for axis, dim in itertools.product(mesh, range(len(shape))):
        size, rest = mesh[axis], shape[:dim] + shape[dim + 1 :]
        if shape[dim] == size > 1 and sorted(due) != sorted(rest):
            grown = [d for d, (part, whole) in enumerate(zip(rest, due, strict=True)) if part != whole]
            if len(grown) == 1 and rest[grown[0]] * size == due[grown[0]]:
                return f"; dimension {dim} has the size of axis {axis}: did you leave out tiled=True?"
    return ""


def _all_good(got: Sharded, want: np.ndarray, good: list[np.ndarray], bound: float, due: np.ndarray) -> None:
    """Raise Failure for the first device with wrong values.

    ``good``: for each device, the mask of right values. ``want``: the reference as float64 or complex128. ``due``: the
    reference in its own dtype, because float64 cannot hold all integers.
    """
    wrong = [device for device, of_device in enumerate(good) if not np.all(of_device)]
    if not wrong:
        return
    at, where = wrong[0], got.slices[wrong[0]]
    count = int(np.size(good[at]) - np.count_nonzero(good[at]))
    first = tuple(int(i) for i in np.argwhere(~good[at])[0]) if good[at].ndim else ()
    place = [i + a for i, (a, _) in zip(first, where, strict=True)]
    if good[at].size == 1:
        text = f"the value at {place} is wrong" if place else "the value is wrong"
    else:
        many = "all" if count == good[at].size else f"{count} of {good[at].size}"
        text = f"{many} values are wrong, the first at {place}"
    device = show_device(coordinates(got.mesh)[at])
    raise Failure(
        f"on device {device}, {text}{explain(got, want, bound)}",
        where=device,
        values=(_some(_part(due, where), first), _some(_held(got.shards[at]), first)),
        layouts=[(got.mesh, got.shape, got.slices)] if len(wrong) < len(good) else [],
        wrong=wrong,
        compared=Compared(got.shards, [_part(due, where) for where in got.slices], good, bound),
    )


def _some(values: np.ndarray, first: tuple[int, ...]) -> str:
    """Return a few values along the last dimension, starting at the first wrong value: ``2.5, -1, nan, ...``."""
    row = values[first[:-1]][first[-1] :] if first else values.reshape(1)
    shown = [str(v) if values.dtype.kind in "biu" else f"{v:.5g}" for v in row[:SHOWN].tolist()]
    return ", ".join([*shown, *(["..."] if len(row) > SHOWN else [])])


def expect_spec(got: Any, spec: Any) -> None:
    """Check that each device holds the part of the result that ``spec`` assigns to this device.

    The check compares layouts, not texts: P('x') and P('x', None) are one layout, but P(('x', 'y')) and P(('y', 'x'))
    are two layouts. For a tree of results, ``spec`` is one spec for all leaves, or a tree of specs.
    """
    leaf_by_leaf(_laid_out, got, spec, prefix=True)


def _laid_out(got: Sharded, spec: Iterable) -> None:
    one_array(got)
    try:
        wanted = owner_slices(got.shape, spec, got.mesh)
    except ValueError:  # the right shape fits this spec, so this shape is wrong
        full = show_spec(spec)
        raise Failure(f"the result has shape {got.shape}, which cannot be sharded {full}", actual=got.shape) from None
    if got.laid == wanted:
        return
    wrong = [i for i, pair in enumerate(zip(got.laid, wanted, strict=True)) if pair[0] != pair[1]]
    at = wrong[0]
    device = show_device(coordinates(got.mesh)[at])
    full = tuple(None if not e else e[0] if len(e) == 1 else e for e in entries(spec, len(got.shape)))
    raise Failure(
        f"the result is sharded {show_spec(got.spec)}, expected {show_spec(full)}: device {device} holds "
        f"{_ranges(got.laid[at])}, expected {_ranges(wanted[at])}",
        expected=show_spec(full),
        actual=show_spec(got.spec),
        where=device,
        layouts=((got.mesh, got.shape, got.laid), (got.mesh, got.shape, wanted)),
        wrong=wrong,
    )


def expect_shard_map(seen: Seen) -> None:
    """Check that the arithmetic is in the body of ``jax.shard_map``, so that the learner divides it among devices.

    Outside the body, a program may do a little arithmetic, for example to scale a result, add two arrays or take a
    mean. The limit is one operation for each element of the program's arguments and results. An operation counts only
    if it depends on the task's arguments, and a result of the task depends on it.
    """
    if not seen.mapped:
        raise Failure(
            "the arithmetic is not in the body of jax.shard_map, so the compiler decides what each device computes; "
            "outside of the body, a program may use at most one operation for each element of its arguments and results"
        )


def _ranges(slices: tuple[tuple[int, int], ...]) -> str:
    return "[" + ", ".join(f"{a}:{b}" for a, b in slices) + "]"


def leaf_by_leaf(expect: Callable[[Any, Any], None], got: Any, want: Any, *, prefix: bool = False) -> None:
    """Call ``expect(got, want)`` for every result in ``got``, with the part of ``want`` at the same place.

    ``prefix``: whether a leaf of ``want`` may apply to a whole subtree of ``got``.

    Raises:
        Failure: the failure of the first leaf that fails, with the leaf's name; ``others`` has the failures of other
            leaves.
        ValueError: ``got`` and ``want`` have different structures, which is a mistake of the check's author.
    """
    failures: list[Failure] = []
    for one, wanted in _pairs(got, want, prefix):
        try:
            expect(one, wanted)
        except Failure as failure:
            failures.append(failure.about(one.name if isinstance(one, Sharded) else ""))
    if failures:
        failures[0].others = failures[1:]
        raise failures[0] from None


def _pairs(got: Any, want: Any, prefix: bool) -> list[tuple[Any, Any]]:
    if not _declared(got):
        return [(got, want)]
    names = mapped(lambda result: result.name, got)
    try:
        return list(zip(flat(got), fitted(want, names, prefix=prefix), strict=True))
    except Misfit as misfit:
        raise ValueError(f"the expected value is {misfit}") from None


def _declared(got: Any) -> bool:
    """Return True if the author declared a structure for the results, so that each result has a name."""
    results = flat(got) if is_tree(got) else []
    return bool(results) and all(isinstance(one, Sharded) and one.name for one in results)
