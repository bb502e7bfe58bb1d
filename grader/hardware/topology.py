"""Slices of a torus of chips: which slices exist, which axes wrap around, and over how many hops a shard travels."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

from grader.hardware.chips import Chip, tpu, unknown

Topology = Literal["ring", "one_way_ring", "line", "switch"]

RING_SLICES: tuple[tuple[int, ...], ...] = ((2, 2),)
"""Slices in which all chips form one ring of neighbours although no axis wraps around: the four chips of 2x2."""

FLAT_SLICES: tuple[tuple[int, ...], ...] = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
"""Available slices of a 16x16 pod (v5e, v6e), shorter side first. Source: Cloud TPU documentation, 'TPU v5e'."""

SMALL_SLICES: tuple[tuple[int, ...], ...] = ((1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
"""Slices of a 3D torus that are smaller than a 4x4x4 cube, shortest side first. Source: Cloud TPU
documentation, 'TPU v4', 'v5p'."""


LARGEST_SLICES: dict[str, tuple[int, ...]] = {"v5p": (16, 16, 24)}
"""The largest available slice, by chip. On other chips, this slice is a whole pod.

Source: Cloud TPU documentation, 'TPU v5p'.
"""


def wraps(chip: str | Chip, axis_size: int, slice_shape: Sequence[int] | None = None) -> bool:
    """Return True if an axis of this size has wraparound links, so that it is a ring and not a line.

    Args:
        chip: a TPU.
        axis_size: chips along the axis.
        slice_shape: chips along each axis of the slice. By default, the slice is a cube with ``axis_size`` chips along
            each axis.

    Source: How To Scale Your Model, chapter 'How to Think About TPUs'.
    """
    row = tpu(chip)
    if slice_shape is not None and axis_size not in slice_shape:
        raise ValueError(f"no axis of size {axis_size} in a slice of {'x'.join(map(str, slice_shape))}")
    if row.wrap_whole is not None:
        return axis_size == row.wrap_whole
    side = row.wrap_cube or 1
    shape = (axis_size,) * 3 if slice_shape is None else tuple(slice_shape) + (1,) * (3 - len(slice_shape))
    return axis_size % side == 0 and all(n % side == 0 for n in shape)


def axis_topology(
    chip: str | Chip, axis_size: int, slice_shape: Sequence[int] | None = None
) -> Literal["ring", "line"]:
    """Return the ``topology`` of one mesh axis of a TPU slice: "ring" if the axis wraps around, else "line"."""
    return "ring" if wraps(chip, axis_size, slice_shape) else "line"


def is_physical_ring(chip: str | Chip, slice_shape: Sequence[int]) -> bool:
    """Return True if the links of a slice form a ring through all its chips.

    The 2x2 slices of all TPUs (``RING_SLICES``) are rings. A slice with one axis that wraps around, and no other axis
    longer than 1 chip, is also a ring.
    """
    real = tuple(n for n in slice_shape if n > 1)
    if real in RING_SLICES:
        return True
    return len(real) == 1 and wraps(chip, real[0], slice_shape)


def largest_slice(chip: str | Chip) -> tuple[int, ...]:
    """Return the numbers of chips along the axes of the largest available slice."""
    row = tpu(chip)
    return LARGEST_SLICES.get(row.name, row.pod)


@functools.cache
def slices(chip: str | Chip) -> frozenset[tuple[int, ...]]:
    """Return all available slices. A slice is a tuple of the numbers of chips along its axes, in ascending order.

    A chip with a 3D torus has the slices in ``SMALL_SLICES``, and all slices made of full cubes (see
    ``Chip.wrap_cube``), up to the largest slice.
    """
    row = tpu(chip)
    if row.wrap_cube is None:
        return frozenset(s for s in FLAT_SLICES if s[-1] <= max(row.pod))
    sides = [range(row.wrap_cube, n + 1, row.wrap_cube) for n in sorted(largest_slice(row))]
    return frozenset({*SMALL_SLICES, *(tuple(sorted(s)) for s in itertools.product(*sides))})


def slice_problem(
    chip: str | Chip, *, shape: Sequence[int] = (), count: int = 0, rings: Sequence[int] = (), lines: Sequence[int] = ()
) -> str:
    """Return the reason why no slice of this chip has the given shape, count and axes; '' if a slice has them.

    Args:
        shape: chips along each axis of the slice, in any order.
        count: total chips, if the shape is not given.
        rings: sizes of axes that must wrap around.
        lines: sizes of axes that must not wrap around.
    """
    row = tpu(chip)
    ask = tuple(sorted(shape))
    fit = [s for s in slices(chip) if not ask or s == ask]
    if not fit:
        return f"{row.name} has no slice of {'x'.join(map(str, shape))}"
    fit = [s for s in fit if not count or math.prod(s) == count]
    if not fit:
        return f"{row.name} has no slice of {_chips(count)}"
    if any(_has_axes(s, rings, lines, row) for s in fit):
        return ""
    axes = [f"{kind} of {', '.join(map(str, sizes))}" for kind, sizes in (("rings", rings), ("lines", lines)) if sizes]
    where = f" of {'x'.join(map(str, shape))}" if shape else f" of {_chips(count)}" if count else ""
    return f"{row.name} has no slice{where} with {' and '.join(axes)}"


def _chips(count: int) -> str:
    return f"{count} chip{'' if count == 1 else 's'}"


def _has_axes(shape: tuple[int, ...], rings: Sequence[int], lines: Sequence[int], row: Chip) -> bool:
    """Return True if a slice has a separate axis for each size in ``rings`` and ``lines``.

    Axes for ``rings`` must wrap around, and axes for ``lines`` must not.
    """
    left = Counter(shape)
    left.subtract([*rings, *lines])
    return (
        min(left.values()) >= 0
        and all(wraps(row, n, shape) for n in rings)
        and not any(wraps(row, n, shape) for n in lines)
    )


def hops(n: int | Sequence[int], topology: str = "ring") -> int:
    """Return the number of hops (links) of the longest route that a shard takes in a collective over N devices.

    The number is ⌊N/2⌋ on a ring, N-1 on a one-way ring or a line, and 1 through a switch. If ``n`` has the sizes of
    several axes, the result is the sum over these axes.
    """
    check_topology(topology)
    if not isinstance(n, int):
        return sum(hops(size, topology) for size in n)
    check_group(n)
    return {"ring": n // 2, "switch": min(n - 1, 1)}.get(topology, n - 1)


def check_topology(topology: str) -> None:
    """Raise ValueError if ``topology`` is not one of the names in the type ``Topology``."""
    if topology not in get_args(Topology):
        raise ValueError(unknown("topology", topology, get_args(Topology)))


def check_group(n: int) -> None:
    """Raise ValueError for a group without devices."""
    if n < 1:
        raise ValueError(f"a group has at least one device, not {n}")
