"""The hardware table from which questions take the figures of chips; functions that find, describe and read its rows.

The table is frozen and versioned, because vendors' pages change and differ from the table by about 10 %. Each question
prints the row of the table that it uses. If you change a number, change ``TABLE_VERSION`` too.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from grader.wire.text import closest

TABLE_VERSION = "2026-11"

HOP_TIME = 1e-6
"""Seconds for one hop between neighbouring chips (T_min), whatever the message's size."""

VMEM_FACTOR = 22
"""Approximate ratio of a TPU's VMEM bandwidth to its HBM bandwidth."""

FIGURES = frozenset(
    [
        "ici",
        "ici_both",
        "pod",
        "wrap_whole",
        "wrap_cube",
        "hbm",
        "hbm_bw",
        "bf16",
        "hop",
        "egress",
        "node",
        "node_egress",
    ]
)
"""Names of the figures in the lines of ``describe``."""

BOOK_TPUS = ("How To Scale Your Model, chapter 'How to Think About TPUs'", "2025-02-04")
BOOK_GPUS = ("How To Scale Your Model, chapter 'How to Think About GPUs'", "2025-08-18")
BOOK_7X = ("jax-ml/scaling-book pull requests 115 and 116 (4x4x144 corrected to 4x4x576)", "2026-05-22")


_READ: ContextVar[set[str] | None] = ContextVar("_READ", default=None)


@contextmanager
def reading() -> Iterator[set[str]]:
    """Yield a set. Inside the block, each read of a figure (such as ``ici``) adds the figure's name to the set."""
    token = _READ.set(read := set())
    try:
        yield read
    finally:
        _READ.reset(token)


def is_read(figure: str) -> None:
    """Add a figure's name to the set that ``reading`` yielded. Outside of a ``with reading()`` block, do nothing."""
    if (read := _READ.get()) is not None:
        read.add(figure)


class Row:
    """A row of the hardware table. Inside a ``with reading()`` block, each read of an attribute is recorded."""

    def __getattribute__(self, name: str) -> Any:
        is_read(name)
        return super().__getattribute__(name)


@dataclass(frozen=True)
class Chip(Row):
    """One TPU generation, with numbers for one chip.

    Attributes:
        pod: chips along each axis of a full pod.
        host: chips along each axis of one host.
        hbm: size of the HBM, bytes.
        hbm_bw: bandwidth of the HBM, bytes/s.
        bf16, int8: peak rates of dense matmuls, FLOP/s and OP/s. On the chip 7x, fp8 has the same rate as int8.
        ici: one-way bandwidth W1 of a link, bytes/s. A link carries W1 in each of its two directions at the same time.
        pcie: bytes/s between host and chip.
        dcn: bytes/s of the data-centre network for each chip.
        wrap_whole: an axis is a ring only if it has this number of chips. None for a chip with ``wrap_cube``.
        wrap_cube: the side of a cube of chips, in chips. In a slice made of full cubes, an axis wraps around if its
            size is a multiple of this side. None for a chip with ``wrap_whole``.
        source: title of the publication with these numbers.
        date: the publication's date.
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
        """Both-way bandwidth of a link, bytes/s (W = 2·W1)."""
        return 2 * self.ici

    @property
    def torus(self) -> int:
        """Number of axes of the network: 2 (four neighbours) or 3 (six neighbours)."""
        return len(self.pod)


@dataclass(frozen=True)
class Gpu(Row):
    """One GPU generation, with numbers for one GPU. A number is None if the hardware table lacks it.

    Attributes:
        hbm: size of the HBM, bytes.
        hbm_bw: bandwidth of the HBM, bytes/s.
        bf16: peak rate of dense matmuls, FLOP/s.
        low: peak rate of dense matmuls with the one-byte dtype ``low_dtype``, FLOP/s (OP/s for int8).
        egress: bytes/s out of one GPU into its node's switch (W1).
        node_egress: bytes/s out of one node.
        node: number of GPUs in one node.
        note: remarks on the row.
        assumed: text to print beside ``node_egress`` if ``source`` does not give this number; else "".
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


# The rows are in the order of the tables that they come from. The rows assume that axes of v3 wrap around only along a
# full side of a pod.
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
            "18 links of 25 GB/s; problems in the book use an HBM bandwidth of 3.35e12 B/s", *BOOK_GPUS,
        ),
        Gpu(
            "H200", 141e9, 4.8e12, 9.9e14, 2.0e15, "fp8", 450e9, 400e9, 8, "", *BOOK_GPUS,
            assumed="assumed, as for H100",
        ),
        Gpu(
            "B200", 192e9, 8.0e12, 2.3e15, 4.5e15, "fp8", 900e9, 400e9, 8,
            "NVIDIA's data sheet of the DGX says 180 GB of memory", *BOOK_GPUS,
        ),
        Gpu(
            "GB200 NVL72", None, None, None, None, "", 900e9, 3600e9, 72,
            "the cited book gives only the network of this chip", *BOOK_GPUS,
        ),
    )
}  # fmt: skip


def lookup(chip: str | Chip | Gpu) -> Chip | Gpu:
    """Return the hardware table's row of this name ("v5e", "TPU v5e", "h100"). If ``chip`` is a row, return the row.

    Raises:
        ValueError: the table has no such row. The message suggests the nearest name.
    """
    if isinstance(chip, Chip | Gpu):
        return chip
    table: dict[str, Chip | Gpu] = {**CHIPS, **GPUS}
    names = {name.lower(): name for name in table}
    asked = str(chip).strip().lower().removeprefix("tpu").lstrip()
    if asked not in names:
        raise ValueError(unknown("chip", chip, list(table)))
    return table[names[asked]]


def tpu(chip: str | Chip) -> Chip:
    """Return the row of a TPU, given by its name or as a row. Raises ValueError for a GPU, which has no torus."""
    row = lookup(chip)
    if not isinstance(row, Chip):
        raise ValueError(f"{row.name} is a GPU: it has a switch, not a torus")
    return row


def is_known(name: object) -> bool:
    """Return True if the hardware table has a row of this name."""
    try:
        return isinstance(name, str | Chip | Gpu) and bool(lookup(name))
    except ValueError:
        return False


def describe(chip: str | Chip | Gpu, figures: Container[str] | None = None) -> str:
    """Return a row of the hardware table as one line of text, which is printed under a question.

    Args:
        chip: a row of the hardware table, or the name of a chip or GPU, such as "v5e".
        figures: names of the figures to show, such as ``ici`` (bandwidth of a link) or ``bf16`` (peak rate); by default
            all.
    """
    row = lookup(chip)
    parts = _parts_of_chip(row) if isinstance(row, Chip) else _parts_of_gpu(row)
    shown = [text for names, text in parts if figures is None or any(name in figures for name in names)]
    return f"{row.name}: {'; '.join([*shown, _provenance(row)])}"


Part = tuple[tuple[str, ...], str]
"""Names of figures, and the part of the line of ``describe`` that has these figures."""


def _parts_of_chip(c: Chip) -> Iterator[Part]:
    yield ("ici", "ici_both"), f"ICI {_e(c.ici)} B/s per link and direction ({_e(c.ici_both)} both ways)"
    yield ("pod", "wrap_whole", "wrap_cube"), f"{c.torus}D torus, {_say_wrap(c)}"
    yield ("hbm", "hbm_bw"), f"HBM {c.hbm / 1e9:.0f} GB at {_e(c.hbm_bw)} B/s"
    yield ("bf16",), f"bf16 {_e(c.bf16)} FLOP/s"
    yield ("hop",), f"hop {HOP_TIME * 1e6:.0f} us"


def _say_wrap(c: Chip) -> str:
    if c.wrap_whole:
        return f"wraps only on an axis of {c.wrap_whole}"
    cube = "x".join([str(c.wrap_cube)] * 3)
    return f"an axis wraps only if its size is a multiple of {c.wrap_cube} and the slice is full {cube} cubes"


def _parts_of_gpu(g: Gpu) -> Iterator[Part]:
    yield (
        ("egress", "node"),
        f"{g.egress / 1e9:.0f} GB/s out of each GPU into its node's switch ({g.node} GPUs per node)",
    )
    if g.node_egress:
        assumed = f" ({g.assumed})" if g.assumed else ""
        yield ("node_egress",), f"{g.node_egress / 1e9:.0f} GB/s out of a node{assumed}"
    if g.hbm and g.hbm_bw:
        yield ("hbm", "hbm_bw"), f"HBM {g.hbm / 1e9:.0f} GB at {_e(g.hbm_bw)} B/s"
    if g.bf16:
        yield ("bf16",), f"bf16 {_e(g.bf16)} FLOP/s dense"


def _provenance(row: Chip | Gpu) -> str:
    """Return the origin of a row, such as ``table 2026-11, from How To Scale Your Model of 2025-02-04``."""
    return f"table {TABLE_VERSION}, from {row.source.split(',')[0].split(' (')[0]} of {row.date}"


def _e(value: float) -> str:
    """Format a number in short scientific notation: ``4.5e10``."""
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}0e{int(exponent)}" if mantissa.endswith(".") else f"{mantissa}e{int(exponent)}"


def unknown(what: str, name: object, known: Sequence[str]) -> str:
    """Return a message such as ``unknown chip 'v5x'; did you mean 'v5e'? (known: ...)``."""
    lower = {k.lower(): k for k in known}
    near = closest(str(name).lower(), lower, 0.4)
    guess = f"; did you mean {lower[near]!r}?" if near else ""
    return f"unknown {what} {name!r}{guess} (known: {', '.join(known)})"


def matmul_time(flops: float, chip: str | Chip | Gpu, *, dtype: str = "bfloat16") -> float:
    """Return the seconds that ``flops`` FLOPs take at the chip's peak rate C for dense matmuls: flops / C."""
    return flops / peak_flops(chip, dtype)


def hbm_time(bytes: float, chip: str | Chip | Gpu) -> float:
    """Return the seconds to read or write ``bytes`` bytes of HBM at the HBM's bandwidth W: bytes / W."""
    row = lookup(chip)
    return bytes / _known(row.hbm_bw, row, "HBM bandwidth")


def peak_flops(chip: str | Chip | Gpu, dtype: str = "bfloat16") -> float:
    """Return the chip's peak rate of dense matmuls in FLOP/s. ``dtype`` is "bfloat16", "int8" or "fp8".

    Raises ValueError if the hardware table has no rate for this chip and dtype.
    """
    row = lookup(chip)
    low = {"int8": row.int8} if isinstance(row, Chip) else {row.low_dtype: row.low}
    if isinstance(row, Chip) and row.name == "7x":
        low["fp8"] = row.int8
    rates = {"bfloat16": row.bf16, **low}
    if dtype not in rates:
        raise ValueError(f"no {dtype} rate for {row.name}; it has {', '.join(k for k in rates if k)}")
    return _known(rates[dtype], row, f"{dtype} rate")


def hbm_intensity(chip: str | Chip | Gpu, dtype: str = "bfloat16") -> float:
    """Return the number of FLOPs per byte of HBM above which a program is compute-bound.

    This number is the peak FLOP/s divided by the HBM bandwidth (240 on v5e).

    Source: How To Scale Your Model, 'All About Rooflines'.
    """
    return peak_flops(chip, dtype) * hbm_time(1.0, chip)


def link_intensity(chip: str | Chip | Gpu) -> float:
    """Return the number of bf16 FLOPs per communicated byte above which compute takes longer than a collective.

    Above this number, the collective can overlap fully with the compute. On a TPU ring, this number is the peak FLOP/s
    divided by a link's both-way bandwidth W (2550 on v5p). On a GPU, this number is the peak FLOP/s divided by the
    bandwidth from the GPU into its switch (2200 on H100).

    Source: How To Scale Your Model, 'How to Parallelize a Transformer for Training'.
    """
    row = lookup(chip)
    return peak_flops(row) / (row.ici_both if isinstance(row, Chip) else row.egress)


def _known(value: float | None, row: Chip | Gpu, what: str) -> float:
    if value is None:
        raise ValueError(f"the table has no {what} for {row.name}")
    return value
