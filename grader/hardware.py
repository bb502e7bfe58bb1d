"""The hardware table every question is computed from, and the time formulas of communication.

Everything is in SI: bytes, seconds, bytes per second, FLOP per second. ``bytes`` is always V, the
bytes of the *full logical array over the axis group that talks* (what is left after dividing by the
shards over other mesh axes), never one device's shard.

The table is frozen and versioned: vendors' pages differ from it by about 10 % and change, so a
question prints the row it means. Change a number only together with ``TABLE_VERSION``.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

TABLE_VERSION = "2026-11"

HOP_TIME = 1e-6
"""Seconds for one hop between neighbouring chips (T_min), whatever the message's size."""

VMEM_FACTOR = 22
"""VMEM bandwidth over HBM bandwidth of a TPU, roughly."""

Topology = Literal["ring", "one_way_ring", "line", "switch"]
Model = Literal["book", "exact"]

BOOK_TPUS = ("How To Scale Your Model, chapter 'How to Think About TPUs'", "2025-02-04")
BOOK_GPUS = ("How To Scale Your Model, chapter 'How to Think About GPUs'", "2025-08-18")
BOOK_7X = ("jax-ml/scaling-book pull requests 115 and 116 (4x4x144 corrected to 4x4x576)", "2026-05-22")


@dataclass(frozen=True)
class Chip:
    """One TPU generation, per chip.

    Attributes:
        pod: chips along each axis of a full pod. host: chips along each axis of one host.
        hbm: bytes. hbm_bw: bytes/s. bf16, int8: dense FLOP/s (OP/s); 7x: int8 is also its fp8 rate.
        ici: bytes/s of one link in one direction (W1); a link carries as much the other way at once.
        pcie: bytes/s between host and chip. dcn: bytes/s of data-centre network per chip.
        wrap_whole: an axis wraps around only when it has exactly this size.
        wrap_cube: an axis wraps around when it is a multiple of this, in slices made of full cubes of this side.
        source: title. date: of the source.
    """

    name: str
    pod: tuple[int, ...]
    host: tuple[int, ...]
    hbm: float
    hbm_bw: float
    bf16: float
    int8: float
    ici: float
    pcie: float
    dcn: float
    wrap_whole: int | None
    wrap_cube: int | None
    source: str
    date: str

    @property
    def ici_both(self) -> float:
        """Bytes/s of one link, both directions together (W = 2·W1)."""
        return 2 * self.ici

    @property
    def torus(self) -> int:
        """Axes of the network: 2 (four neighbours) or 3 (six)."""
        return len(self.pod)


@dataclass(frozen=True)
class Gpu:
    """One GPU generation, per GPU; None where the table has no number.

    Attributes:
        hbm: bytes. hbm_bw: bytes/s. bf16: dense FLOP/s. low: dense FLOP/s at one byte per number.
        low_dtype: what ``low`` is for. egress: bytes/s out of one GPU into its node's switch (W1).
        node_egress: bytes/s out of one node. node: GPUs in one node. note: what to know about the row.
        assumed: what is printed where ``node_egress`` is not the source's.
    """

    name: str
    hbm: float | None
    hbm_bw: float | None
    bf16: float | None
    low: float | None
    low_dtype: str
    egress: float
    node_egress: float | None
    node: int
    note: str
    source: str
    date: str
    assumed: str = ""


# Rows in the order of the source. v3's wraparound (full pod side only) is this table's assumption.
CHIPS: dict[str, Chip] = {
    c.name: c
    for c in (
        Chip("v3", (32, 32), (4, 2), 32e9, 9.0e11, 1.4e14, 1.4e14, 1.0e11, 1.6e10, 6.25e9, 32, None, *BOOK_TPUS),
        Chip(
            "v4p", (16, 16, 16), (2, 2, 1), 32e9, 1.2e12, 2.75e14, 2.75e14,
            4.5e10, 1.6e10, 6.25e9, None, 4, *BOOK_TPUS,
        ),
        Chip(
            "v5p", (16, 20, 28), (2, 2, 1), 96e9, 2.8e12, 4.59e14, 9.18e14,
            9.0e10, 1.6e10, 6.25e9, None, 4, *BOOK_TPUS,
        ),
        Chip("v5e", (16, 16), (4, 2), 16e9, 8.2e11, 1.97e14, 3.94e14, 4.5e10, 1.6e10, 3.125e9, 16, None, *BOOK_TPUS),
        Chip("v6e", (16, 16), (4, 2), 32e9, 1.6e12, 9.20e14, 1.84e15, 9.0e10, 3.2e10, 12.5e9, 16, None, *BOOK_TPUS),
        Chip(
            "7x", (4, 4, 576), (2, 2, 1), 192e9, 7.4e12, 2.30e15, 4.61e15,
            9.0e10, 1.6e10, 12.5e9, None, 4, *BOOK_7X,
        ),
    )
}  # fmt: skip

GPUS: dict[str, Gpu] = {
    g.name: g
    for g in (
        Gpu("A100", 80e9, 2.0e12, 3.1e14, 6.2e14, "int8", 300e9, None, 8, "", *BOOK_GPUS),
        Gpu(
            "H100", 80e9, 3.4e12, 9.9e14, 2.0e15, "fp8", 450e9, 400e9, 8,
            "18 links of 25 GB/s; published problems use 3.35e12 B/s of HBM bandwidth", *BOOK_GPUS,
        ),
        Gpu("H200", 141e9, 4.8e12, 9.9e14, 2.0e15, "fp8", 450e9, 400e9, 8, "", *BOOK_GPUS, assumed="assumed, as for H100"),
        Gpu("B200", 192e9, 8.0e12, 2.3e15, 4.5e15, "fp8", 900e9, 400e9, 8, "the DGX sheet says 180 GB", *BOOK_GPUS),
        Gpu(
            "GB200 NVL72", None, None, None, None, "", 900e9, 3600e9, 72,
            "the source gives only the network of this row", *BOOK_GPUS,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class H100Pod:
    """The published H100 SuperPod: its switches and what was measured on them (B/s unless said)."""

    links: int = 18
    link: float = 25e9
    node_switches: int = 4
    all_node_switches: float = 6.4e12
    node_usable: float = 3.6e12
    nodes_per_unit: int = 32
    leaf_switches: int = 8
    units: int = 4
    spine_switches: int = 16
    measured_large: float = 370e9
    measured_large_bytes: float = 10e9
    measured_small: float = 150e9
    measured_small_bytes: float = 58e6
    sharp_gain: float = 1.3
    source: str = BOOK_GPUS[0]
    date: str = BOOK_GPUS[1]


H100_POD = H100Pod()

RING_SLICES: tuple[tuple[int, ...], ...] = ((2, 2),)
"""Slices whose chips form one physical ring although no axis wraps around: in 2x2 each chip has both neighbours."""


FLAT_SLICES: tuple[tuple[int, ...], ...] = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
"""Slices of a pod of 16x16 that can be had (v5e, v6e), the shorter side first. Source: Cloud TPU documentation, 'TPU v5e'."""

SMALL_SLICES: tuple[tuple[int, ...], ...] = ((1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
"""Slices of a 3D torus smaller than one cube, the shortest side first. Source: Cloud TPU documentation, 'TPU v4', 'TPU v5p'."""


# -- looking up --------------------------------------------------------------------------------


def lookup(chip: str | Chip | Gpu) -> Chip | Gpu:
    """A row of the table by name ("v5e", "TPU v5e", "h100"); a row passes through.

    Raises:
        ValueError: no such row; the message names the nearest one.
    """
    if isinstance(chip, Chip | Gpu):
        return chip
    table: dict[str, Chip | Gpu] = {**CHIPS, **GPUS}
    names = {name.lower(): name for name in table}
    asked = str(chip).strip().lower().removeprefix("tpu").lstrip()
    if asked not in names:
        raise ValueError(_unknown("chip", chip, list(table)))
    return table[names[asked]]


def is_known(name: object) -> bool:
    """True when the table has a row of this name."""
    try:
        return isinstance(name, str | Chip | Gpu) and bool(lookup(name))
    except ValueError:
        return False


def describe(chip: str | Chip | Gpu) -> str:
    """The hardware row as one line, printed under every question."""
    row = lookup(chip)
    return _describe_chip(row) if isinstance(row, Chip) else _describe_gpu(row)


def _describe_chip(c: Chip) -> str:
    return (
        f"{c.name}: ICI {_e(c.ici)} B/s per link and direction ({_e(c.ici_both)} both ways), {c.torus}D torus, "
        f"{_say_wrap(c)}; HBM {c.hbm / 1e9:.0f} GB at {_e(c.hbm_bw)} B/s; bf16 {_e(c.bf16)} FLOP/s; "
        f"hop {HOP_TIME * 1e6:.0f} us; {_provenance(c)}"
    )


def _say_wrap(c: Chip) -> str:
    if c.wrap_whole:
        return f"wraps only on an axis of {c.wrap_whole}"
    cube = "x".join([str(c.wrap_cube)] * 3)
    return f"wraps only on axes that are multiples of {c.wrap_cube} in slices of full {cube} cubes"


def _describe_gpu(g: Gpu) -> str:
    parts = [f"{g.name}: {g.egress / 1e9:.0f} GB/s out of each GPU into the switch of its node of {g.node}"]
    if g.node_egress:
        assumed = f" ({g.assumed})" if g.assumed else ""
        parts.append(f"{g.node_egress / 1e9:.0f} GB/s out of a node{assumed}")
    if g.hbm and g.hbm_bw:
        parts.append(f"HBM {g.hbm / 1e9:.0f} GB at {_e(g.hbm_bw)} B/s")
    if g.bf16:
        parts.append(f"bf16 {_e(g.bf16)} FLOP/s dense")
    return "; ".join([*parts, _provenance(g)])


def _provenance(row: Chip | Gpu) -> str:
    """``table 2026-11, from How To Scale Your Model of 2025-02-04``: when we froze it, and when its source was written."""
    return f"table {TABLE_VERSION}, from {row.source.split(',')[0].split(' (')[0]} of {row.date}"


def _e(value: float) -> str:
    """``4.5e10``: as the field writes it."""
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}0e{int(exponent)}" if mantissa.endswith(".") else f"{mantissa}e{int(exponent)}"


def _unknown(what: str, name: object, known: Sequence[str]) -> str:
    lower = {k.lower(): k for k in known}
    near = difflib.get_close_matches(str(name).lower(), list(lower), 1, cutoff=0.4)
    guess = f"; did you mean {lower[near[0]]!r}?" if near else ""
    return f"unknown {what} {name!r}{guess} (known: {', '.join(known)})"


# -- topology ----------------------------------------------------------------------------------


def wraps(chip: str | Chip, axis_size: int, slice_shape: Sequence[int] | None = None) -> bool:
    """Whether an axis of this size has wraparound links, so that it is a ring and not a line.

    Args:
        chip: a TPU.
        axis_size: chips along the axis.
        slice_shape: chips along each axis of the slice. Without it a 3D-torus axis is taken to lie in full cubes.

    Source: How To Scale Your Model, chapter 'How to Think About TPUs'.
    """
    row = _tpu(chip)
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
    """The ``topology`` of one axis: "ring" where it wraps around, else "line"."""
    return "ring" if wraps(chip, axis_size, slice_shape) else "line"


def is_physical_ring(chip: str | Chip, slice_shape: Sequence[int]) -> bool:
    """Whether all chips of a slice, taken as one group, form a ring of neighbours.

    A slice of 2x2 does on every TPU (see ``RING_SLICES``), a single axis does where it wraps around.
    """
    real = tuple(n for n in slice_shape if n > 1)
    if real in RING_SLICES:
        return True
    return len(real) == 1 and wraps(chip, real[0], slice_shape)


@functools.cache
def slices(chip: str | Chip) -> frozenset[tuple[int, ...]]:
    """Every slice that can be had, chips along each axis, the shortest first.

    On a 3D torus: one of ``SMALL_SLICES``, or as many full cubes along each axis as fit into a pod.
    """
    row = _tpu(chip)
    if row.wrap_cube is None:
        return frozenset(s for s in FLAT_SLICES if s[-1] <= max(row.pod))
    sides = [range(row.wrap_cube, n + 1, row.wrap_cube) for n in sorted(row.pod)]
    return frozenset({*SMALL_SLICES, *(tuple(sorted(s)) for s in itertools.product(*sides))})


def slice_problem(
    chip: str | Chip, *, shape: Sequence[int] = (), count: int = 0, rings: Sequence[int] = (), lines: Sequence[int] = ()
) -> str:
    """Why there is no such slice; nothing when there is one.

    Args:
        shape: chips along each of its axes, in any order. count: chips in all, where the shape is not told.
        rings, lines: sizes of axes that must, or must not, wrap around.
    """
    row = _tpu(chip)
    ask = tuple(sorted(shape))
    fit = [s for s in slices(chip) if not ask or s == ask]
    if not fit:
        return f"{row.name} has no slice of {'x'.join(map(str, shape))}"
    fit = [s for s in fit if not count or math.prod(s) == count]
    if not fit:
        return f"{row.name} has no slice of {count} chips"
    if any(_has_axes(s, rings, lines, row) for s in fit):
        return ""
    told = [f"{kind} of {', '.join(map(str, sizes))}" for kind, sizes in (("rings", rings), ("lines", lines)) if sizes]
    where = f" of {'x'.join(map(str, shape))}" if shape else f" of {count} chips" if count else ""
    return f"{row.name} has no slice{where} with {' and '.join(told)}"


def _has_axes(shape: tuple[int, ...], rings: Sequence[int], lines: Sequence[int], row: Chip) -> bool:
    """Whether a slice has axes of these sizes, each of its axes taken once, that wrap around or do not."""
    left = Counter(shape)
    left.subtract([*rings, *lines])
    return (
        min(left.values()) >= 0
        and all(wraps(row, n, shape) for n in rings)
        and not any(wraps(row, n, shape) for n in lines)
    )


def hops(n: int | Sequence[int], topology: str = "ring") -> int:
    """Hops of the longest way a shard travels: ⌊N/2⌋ on a ring, N-1 on a one-way ring or a line, 1 through a switch.

    Several axes (``n`` is their sizes) are walked one after the other.
    """
    _topology(topology)
    if not isinstance(n, int):
        return sum(hops(size, topology) for size in n)
    _group(n)
    return {"ring": n // 2, "switch": min(n - 1, 1)}.get(topology, n - 1)


# -- communication times -----------------------------------------------------------------------


def hop_time() -> float:
    """Seconds for one hop (T_min), about 1 µs on every TPU. Source: How To Scale Your Model, 'Sharding'."""
    return HOP_TIME


def latency(n: int | Sequence[int], topology: str = "ring") -> float:
    """Seconds an all-gather or reduce-scatter takes for next to no data: hops × 1 µs (an all-reduce twice that).

    Model: latency only. The time of a collective is ``max(latency, bandwidth time)``, never their sum.
    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them'.
    """
    return hops(n, topology) * HOP_TIME


def latency_bound_bytes(chip: str | Chip) -> float:
    """Bytes of one shard below which a hop's latency, not the link, sets the time: W1·T_min (45 kB on v5e).

    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them'.
    """
    return _tpu(chip).ici * HOP_TIME


def all_gather_time(
    bytes: float,
    n: int,
    chip: str | Chip | Gpu,
    *,
    topology: str = "ring",
    model: str = "book",
    axes: int = 1,
) -> float:
    """Seconds to all-gather an array of ``bytes`` over ``n`` devices, bandwidth only.

    ring, "book": V/W, with W both directions of a link. This is what whole shards take on an even ring:
        ⌊N/2⌋ steps of V/N over W1 (the last step carries the same shard round both sides).
    ring, "exact": (N-1)/N·V/W, the optimum: every device receives (N-1)/N of V over two incoming links.
    one_way_ring, line, switch: V·(N-1)/(N·W1) in both models. On a line the end device receives everything
        over its one link; behind a switch W1 is the device's egress.

    Args:
        bytes: V, the full logical array over this axis group.
        n: devices in the group, over all its axes.
        axes: mesh axes used at once; each adds its links (V/(axes·W)). For axes of equal size "exact" is what
            rotating the order of the axes takes; for unequal ones it is a lower bound.

    Source: How To Scale Your Model, 'Sharded Matrices and How to Multiply Them' and 'How to Think About GPUs'.
    """
    _model(model)
    w1 = _bandwidth(chip, topology, axes)
    _group(n)
    if n == 1:
        return 0.0
    if topology == "ring":
        return bytes / (2 * w1) if model == "book" else bytes * (n - 1) / (n * 2 * w1)
    return bytes * (n - 1) / (n * w1)


def reduce_scatter_time(
    bytes: float,
    n: int,
    chip: str | Chip | Gpu,
    *,
    topology: str = "ring",
    model: str = "book",
    axes: int = 1,
) -> float:
    """Seconds to reduce-scatter an array of ``bytes`` (unreduced on each of ``n`` devices), bandwidth only.

    The same as the all-gather, of which it is the transpose: partial sums as large as the shards take the
    same ways backwards. Arguments, models and source as ``all_gather_time``.
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
    """Seconds to all-reduce an array of ``bytes``, bandwidth only: a reduce-scatter, then an all-gather.

    Args:
        sharp: the switch adds (SHARP): each device sends its array once, V/W1. Topology "switch" only.

    Other arguments, models and source as ``all_gather_time``.
    """
    if sharp and topology != "switch":
        raise ValueError(f"only a switch can add in the network (SHARP); topology is {topology!r}")
    if sharp:
        _model(model)
        _group(n)
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
    """Seconds for an all-to-all of an array of ``bytes`` (V/N² from each device to each), bandwidth only.

    ring: V/(4·W). Exact for an even N, where the chunk for the opposite device goes half each way;
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
    _group(n)
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
        _group(size)
    total = math.prod(sizes)
    return 0.0 if total == 1 else bytes * max(sizes) / (4 * total * 2 * w1)


def tree_time(bytes: float, levels: Sequence[tuple[int, float]]) -> float:
    """Seconds to all-gather (or reduce-scatter) ``bytes`` over a tree of switches: the slowest level decides.

    Model: V·max over levels of (D-1)/(D·W), where D units of egress W bytes/s each hang on one switch.
    Source: How To Scale Your Model, 'How to Think About GPUs'.

    Args:
        levels: (D, W) of each level, e.g. [(8, 450e9), (32, 400e9)] for 32 H100 nodes.
    """
    return bytes * max((d - 1) / (d * w) for d, w in levels)


# -- rooflines ---------------------------------------------------------------------------------


def matmul_time(flops: float, chip: str | Chip | Gpu, *, dtype: str = "bfloat16") -> float:
    """Seconds of pure arithmetic at the peak dense rate. Model: FLOP / C."""
    return flops / peak_flops(chip, dtype)


def hbm_time(bytes: float, chip: str | Chip | Gpu) -> float:
    """Seconds to read or write ``bytes`` of HBM at the peak rate. Model: bytes / W_hbm."""
    row = lookup(chip)
    return bytes / _known(row.hbm_bw, row, "HBM bandwidth")


def peak_flops(chip: str | Chip | Gpu, dtype: str = "bfloat16") -> float:
    """Peak dense FLOP/s for "bfloat16", "int8" or "fp8"."""
    row = lookup(chip)
    low = {"int8": row.int8} if isinstance(row, Chip) else {row.low_dtype: row.low}
    if isinstance(row, Chip) and row.name == "7x":
        low["fp8"] = row.int8
    rates = {"bfloat16": row.bf16, **low}
    if dtype not in rates:
        raise ValueError(f"no {dtype} rate for {row.name}; it has {', '.join(k for k in rates if k)}")
    return _known(rates[dtype], row, f"{dtype} rate")


def hbm_intensity(chip: str | Chip | Gpu, dtype: str = "bfloat16") -> float:
    """FLOP per HBM byte above which the chip is compute-bound: C / W_hbm (240 on v5e).

    Source: How To Scale Your Model, 'All About Rooflines'.
    """
    return peak_flops(chip, dtype) * hbm_time(1.0, chip)


def link_intensity(chip: str | Chip | Gpu) -> float:
    """FLOP per communicated byte above which a collective hides behind bf16 arithmetic.

    C / W with both directions of a link on a TPU ring (2550 on v5p), C / egress on a GPU (2200 on H100).
    Source: How To Scale Your Model, 'How to Parallelize a Transformer for Training'.
    """
    row = lookup(chip)
    return peak_flops(row) / (row.ici_both if isinstance(row, Chip) else row.egress)


# -- guards ------------------------------------------------------------------------------------


def _tpu(chip: str | Chip) -> Chip:
    row = lookup(chip)
    if not isinstance(row, Chip):
        raise ValueError(f"{row.name} is a GPU: it has a switch, not a torus")
    return row


def _topology(topology: str) -> None:
    if topology not in get_args(Topology):
        raise ValueError(_unknown("topology", topology, get_args(Topology)))


def _model(model: str) -> None:
    if model not in get_args(Model):
        raise ValueError(_unknown("model", model, get_args(Model)))


def _group(n: int) -> None:
    if n < 1:
        raise ValueError(f"a group has at least one device, not {n}")


def _bandwidth(chip: str | Chip | Gpu, topology: str, axes: int) -> float:
    """Bytes/s out of one device in one direction, over all axes used (W1·axes)."""
    _topology(topology)
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


def _known(value: float | None, row: Chip | Gpu, what: str) -> float:
    if value is None:
        raise ValueError(f"the table has no {what} for {row.name}")
    return value
