"""Time formulas of communication, from bytes and devices to seconds.

``bytes`` is always V, the bytes of the *full logical array over the axis group that communicates* (after dividing by
the shards over other mesh axes), never one device's shard.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

from grader.hardware.chips import HOP_TIME, Chip, Gpu, lookup, tpu, unknown
from grader.hardware.topology import check_group, check_topology, hops

Model = Literal["book", "exact"]


def hop_time() -> float:
    """Return seconds of one hop (T_min), about 1 µs on every TPU. Source: How To Scale Your Model, 'Sharding'."""
    return HOP_TIME


def latency(n: int | Sequence[int], topology: str = "ring") -> float:
    """Return seconds of an all-gather or reduce-scatter of almost no data: hops × 1 µs (an all-reduce: twice that).

    Model: latency only. The time of a collective is ``max(latency, bandwidth time)``, never the sum of both.
    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them'.
    """
    return hops(n, topology) * HOP_TIME


def latency_bound_bytes(chip: str | Chip) -> float:
    """Return bytes of a shard below which a hop's latency, not the link, sets the time: W1·T_min (45 kB on v5e).

    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them'.
    """
    return tpu(chip).ici * HOP_TIME


def all_gather_time(
    bytes: float, n: int, chip: str | Chip | Gpu, *, topology: str = "ring", model: str = "book", axes: int = 1
) -> float:
    """Return seconds to all-gather an array of ``bytes`` over ``n`` devices, bandwidth only.

    ring, "book": V/W, with W both directions of a link. Exact for whole shards on an even ring: ⌊N/2⌋ steps of V/N
        over W1 (in the last step, both directions carry one shard).
    ring, "exact": (N-1)/N·V/W, the optimum: every device receives (N-1)/N of V over two incoming links.
    one_way_ring, line, switch: V·(N-1)/(N·W1) in both models. On a line, the device at the end receives everything
        over one link. Behind a switch, W1 is the device's egress.

    Args:
        bytes: V, the full logical array over this axis group.
        n: devices in the group, over all its axes.
        axes: mesh axes used at once. Each axis adds its links: V/(axes·W). Parts of the array take the axes in
            different orders, so that all links are equally busy. Different orders reach "exact" for unequal axes, too.

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
    """Return seconds to reduce-scatter an array of ``bytes`` (unreduced on each of ``n`` devices), bandwidth only.

    The time equals that of an all-gather, the transpose: partial sums as large as shards take the routes backwards.
    Arguments, models and source are as in ``all_gather_time``.
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
    """Return seconds to all-reduce an array of ``bytes``, bandwidth only: a reduce-scatter, then an all-gather.

    Args:
        sharp: whether the switch adds (SHARP), so that each device sends its array once, V/W1. Only for "switch".

    All other arguments, models and sources are as in ``all_gather_time``.
    """
    if sharp and topology != "switch":
        raise ValueError(f"only a switch can add in the network (SHARP); topology is {topology!r}")
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
    """Return seconds for an all-to-all of an array of ``bytes`` (V/N² from each device to each), bandwidth only.

    ring: V/(4·W). Exact for an even N, where half of the chunk for the opposite device goes each way;
        "exact" for an odd N: times 1 - 1/N².
    one_way_ring: V·(N-1)/(2·N·W1) in both models.
    line: V/(4·W1), set by the middle link; "exact" for an odd N: times 1 - 1/N².
    switch: V·(N-1)/(N²·W1) in both models.

    Args:
        bytes: V, the full logical array over this axis group.
        n: devices in the group; or the sizes of several ring axes: V·max(sizes)/(4·N·W) ("book" only).

    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them' and 'How to Think About GPUs';
    the line is derived in tests/network.py.
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
        raise ValueError("an all-to-all over several axes has only the 'book' model on rings")
    for size in sizes:
        check_group(size)
    total = math.prod(sizes)
    return 0.0 if total == 1 else bytes * max(sizes) / (4 * total * 2 * w1)


def tree_time(bytes: float, levels: Sequence[tuple[int, float]]) -> float:
    """Return seconds to all-gather (or reduce-scatter) ``bytes`` over a tree of switches: the slowest level decides.

    Model: V·max over levels of (D-1)/(D·W), for D units of egress W bytes/s each under one switch.
    Source: How To Scale Your Model, 'How to Think About GPUs'.

    Args:
        levels: (D, W) of each level, e.g. [(8, 450e9), (32, 400e9)] for 32 H100 nodes.
    """
    return bytes * max((d - 1) / (d * w) for d, w in levels)


def _model(model: str) -> None:
    if model not in get_args(Model):
        raise ValueError(unknown("model", model, get_args(Model)))


def _bandwidth(chip: str | Chip | Gpu, topology: str, axes: int) -> float:
    """Return bytes/s out of one device in one direction, over all axes used (W1·axes)."""
    check_topology(topology)
    row = lookup(chip)
    if isinstance(row, Gpu):
        if topology != "switch":
            raise ValueError(f"{row.name} is a GPU behind a switch: use topology='switch', not {topology!r}")
        if axes != 1:
            raise ValueError("a switch has no axes: leave axes=1")
        return row.egress
    if topology == "switch":
        raise ValueError(f"{row.name} is a TPU in a torus: it has no switch")
    if not 1 <= axes <= row.torus:
        raise ValueError(f"{row.name} has a {row.torus}D torus: axes is 1 to {row.torus}, not {axes}")
    return row.ici * axes
