"""Slices of a torus of chips, and time formulas of collectives on them.

A slice decides which axes wrap around, and over how many hops a shard travels. A formula gives seconds from the size of
the array and the number of devices. Its ``bytes`` is always V, the array's size *without sharding over the devices that
communicate*, never the size of one device's shard. If other mesh axes also shard the array, divide its size by the
number of shards along these axes.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

from grader.hardware.chips import HOP_TIME, Chip, Gpu, is_read, lookup, tpu, unknown

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
Model = Literal["book", "exact"]


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


def hop_time() -> float:
    """Return the latency T_min of one hop over a link, in seconds: about 1 µs on every TPU.

    Source: How To Scale Your Model, 'Sharding'.
    """
    is_read("hop")
    return HOP_TIME


def latency(n: int | Sequence[int], topology: str = "ring") -> float:
    """Return the seconds of an all-gather or reduce-scatter of almost no data over ``n`` devices: 1 µs per hop.

    The latency of an all-reduce is twice as long. The time of a collective is the maximum of its latency and its
    bandwidth time (such as ``all_gather_time``), never their sum.

    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them'.
    """
    return hops(n, topology) * hop_time()


def latency_bound_bytes(chip: str | Chip) -> float:
    """Return the shard size, in bytes, below which the latency of a hop exceeds the time to transfer the shard.

    This size is W1·T_min (45 kB on v5e): W1 is the one-way bandwidth of a link, and T_min is the latency of a hop.

    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them'.
    """
    return tpu(chip).ici * hop_time()


def all_gather_time(
    bytes: float, n: int, chip: str | Chip | Gpu, *, topology: str = "ring", model: str = "book", axes: int = 1
) -> float:
    """Return the seconds to all-gather an array of ``bytes`` over ``n`` devices, without latency.

    The formulas use W1, the one-way bandwidth of a link, and W = 2·W1, its both-way bandwidth.

    On a ring, the all-gather takes V/W with ``model="book"``. For an even N, this is the exact time of an algorithm
        that sends whole shards in both directions, in N/2 steps.
    On a ring, the all-gather takes (N-1)/N·V/W with ``model="exact"``. This is the least possible time, because every
        device receives (N-1)/N of V over two incoming links.
    On a one-way ring, on a line and through a switch, the all-gather takes V·(N-1)/(N·W1), whatever the model. On a
        line, the device at the end receives everything over one link. With a switch, W1 is the bandwidth from a device
        into the switch.

    Args:
        bytes: V, the array's size without sharding over the ``n`` devices.
        n: N, the number of devices that communicate. N is the product of the sizes of their mesh axes.
        topology: "ring", "one_way_ring", "line" or "switch".
        model: the formula for a ring: "book" (the formula of *How To Scale Your Model*) or "exact".
        axes: number of mesh axes along which the devices communicate at once. The array is cut into ``axes`` parts, and
            each part uses the axes in another order. So the links of all axes are busy, and the time is divided by
            ``axes``.

    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them' and 'How to Think About GPUs'.
    """
    _model(model)
    w1 = _bandwidth(chip, topology, axes)
    check_group(n)
    if n == 1:
        return 0.0
    if topology == "ring":
        return bytes / (2 * w1) if model == "book" else bytes * (n - 1) / (n * 2 * w1)
    return bytes * (n - 1) / (n * w1)


def reduce_scatter_time(
    bytes: float, n: int, chip: str | Chip | Gpu, *, topology: str = "ring", model: str = "book", axes: int = 1
) -> float:
    """Return the seconds to reduce-scatter an array of ``bytes`` over ``n`` devices, without latency.

    Before the reduce-scatter, each device holds an unreduced array of ``bytes`` bytes. The time equals that of an
    all-gather, because partial sums travel along the all-gather's routes in the reverse direction.

    The arguments and the source are as in ``all_gather_time``.
    """
    return all_gather_time(bytes, n, chip, topology=topology, model=model, axes=axes)


def all_reduce_time(
    bytes: float,
    n: int,
    chip: str | Chip | Gpu,
    *,
    topology: str = "ring",
    model: str = "book",
    axes: int = 1,
    sharp: bool = False,
) -> float:
    """Return the seconds to all-reduce an array of ``bytes``, without latency: a reduce-scatter, then an all-gather.

    Args:
        sharp: True if the switch adds the arrays (SHARP), so each device sends its array once. Only for "switch".

    All other arguments, and the source of the formula, are as in ``all_gather_time``.
    """
    if sharp and topology != "switch":
        raise ValueError(
            f"sharp=True needs a switch that adds the arrays (SHARP): write topology='switch', not {topology!r}"
        )
    if sharp:
        _model(model)
        check_group(n)
        return 0.0 if n == 1 else bytes / _bandwidth(chip, topology, axes)
    return 2 * all_gather_time(bytes, n, chip, topology=topology, model=model, axes=axes)


def all_to_all_time(
    bytes: float,
    n: int | Sequence[int],
    chip: str | Chip | Gpu,
    *,
    topology: str = "ring",
    model: str = "book",
) -> float:
    """Return the seconds for an all-to-all of an array of ``bytes``, without latency.

    Each device sends V/N² bytes to each other device.

    On a ring, the all-to-all takes V/(4·W). For an even N, this is exact. For an odd N, ``model="exact"`` multiplies
        this time by 1 - 1/N².
    On a line, the all-to-all takes V/(4·W1), because the middle link carries the most data. For an odd N,
        ``model="exact"`` multiplies this time by 1 - 1/N².
    On a one-way ring, the all-to-all takes V·(N-1)/(2·N·W1), whatever the model.
    Through a switch, the all-to-all takes V·(N-1)/(N²·W1), whatever the model.

    Args:
        bytes: V, the array's size without sharding over the devices that communicate.
        n: N, the number of devices that communicate. With ``model="book"``, ``n`` may be the sizes of several ring
            axes. The time is then V·max(sizes)/(4·N·W), where N is the product of the sizes.
        topology, model: as in ``all_gather_time``.

    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them' and 'How to Think About GPUs';
    tests/network.py derives the formula for a line.
    """
    _model(model)
    w1 = _bandwidth(chip, topology, 1)
    if not isinstance(n, int):
        return _all_to_all_axes(bytes, n, w1, topology, model)
    check_group(n)
    if n == 1:
        return 0.0
    if topology == "switch":
        return bytes * (n - 1) / (n * n * w1)
    if topology == "one_way_ring":
        return bytes * (n - 1) / (2 * n * w1)
    odd = 1 - 1 / n**2 if model == "exact" and n % 2 else 1.0
    return odd * bytes / (4 * (2 * w1 if topology == "ring" else w1))


def _all_to_all_axes(bytes: float, sizes: Sequence[int], w1: float, topology: str, model: str) -> float:
    if topology != "ring" or model != "book":
        raise ValueError("an all-to-all over several axes needs model='book' and topology='ring'")
    for size in sizes:
        check_group(size)
    total = math.prod(sizes)
    return 0.0 if total == 1 else bytes * max(sizes) / (4 * total * 2 * w1)


def tree_time(bytes: float, levels: Sequence[tuple[int, float]]) -> float:
    """Return the seconds to all-gather or reduce-scatter ``bytes`` bytes over a tree of switches.

    At each level, a switch connects D GPUs or nodes, and each GPU or node sends W bytes/s into the switch. A level
    takes ``bytes``·(D-1)/(D·W) seconds. The result is the time of the slowest level.

    Args:
        levels: (D, W) of each level, for example [(8, 450e9), (32, 400e9)] for 32 nodes of 8 H100.

    Source: How To Scale Your Model, 'How to Think About GPUs'.
    """
    return bytes * max((d - 1) / (d * w) for d, w in levels)


def _model(model: str) -> None:
    if model not in get_args(Model):
        raise ValueError(unknown("model", model, get_args(Model)))


def _bandwidth(chip: str | Chip | Gpu, topology: str, axes: int) -> float:
    """Return the bytes/s that one device can send: on a TPU over one link per axis, on a GPU into its switch."""
    check_topology(topology)
    row = lookup(chip)
    if isinstance(row, Gpu):
        if topology != "switch":
            raise ValueError(f"{row.name} is a GPU behind a switch: use topology='switch', not {topology!r}")
        if axes != 1:
            raise ValueError("a switch has no axes: leave out axes=")
        return row.egress
    if topology == "switch":
        raise ValueError(f"{row.name} is a TPU in a torus: it has no switch")
    if not 1 <= axes <= row.torus:
        raise ValueError(f"{row.name} has a {row.torus}D torus: `axes` is 1 to {row.torus}, not {axes}")
    return row.ici * axes
