"""Rooflines: the times of arithmetic and of memory traffic at peak rates, and the intensity that makes them equal.

An arithmetic intensity is a number of FLOPs per byte.
"""

from __future__ import annotations

from grader.hardware.chips import Chip, Gpu, lookup


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
