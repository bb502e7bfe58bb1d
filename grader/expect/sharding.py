"""Check the layout of results, and that arithmetic is divided among devices by shard_map, not by the compiler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grader.common.layout import coordinates, entries, owner_slices, show_device, show_spec
from grader.common.observation import Seen, Sharded
from grader.expect.failure import Failure
from grader.expect.trees import leaf_by_leaf
from grader.expect.values import one_array


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
