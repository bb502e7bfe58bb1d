"""Rooflines: times of arithmetic and memory at peak rates, and the intensities at which the two times are equal."""

from __future__ import annotations

from grader.hardware.chips import Chip, Gpu, lookup


def matmul_time(flops: float, chip: str | Chip | Gpu, *, dtype: str = "bfloat16") -> float:
    """Return the seconds that ``flops`` take at the chip's peak dense rate. Model: FLOP / C."""
    return flops / peak_flops(chip, dtype)


def hbm_time(bytes: float, chip: str | Chip | Gpu) -> float:
    """Return seconds to read or write ``bytes`` of HBM at the peak rate. Model: bytes / W_hbm."""
    row = lookup(chip)
    return bytes / _known(row.hbm_bw, row, "HBM bandwidth")


def peak_flops(chip: str | Chip | Gpu, dtype: str = "bfloat16") -> float:
    """Return peak dense FLOP/s for "bfloat16", "int8" or "fp8"."""
    row = lookup(chip)
    low = {"int8": row.int8} if isinstance(row, Chip) else {row.low_dtype: row.low}
    if isinstance(row, Chip) and row.name == "7x":
        low["fp8"] = row.int8
    rates = {"bfloat16": row.bf16, **low}
    if dtype not in rates:
        raise ValueError(f"no {dtype} rate for {row.name}; it has {', '.join(k for k in rates if k)}")
    return _known(rates[dtype], row, f"{dtype} rate")


def hbm_intensity(chip: str | Chip | Gpu, dtype: str = "bfloat16") -> float:
    """Return the FLOP per HBM byte above which the chip is compute-bound: peak FLOP/s / HBM bandwidth (240 on v5e).

    Source: How To Scale Your Model, 'All About Rooflines'.
    """
    return peak_flops(chip, dtype) * hbm_time(1.0, chip)


def link_intensity(chip: str | Chip | Gpu) -> float:
    """Return the FLOP per communicated byte above which a collective can overlap fully with bf16 arithmetic.

    On a TPU ring, this intensity is the peak FLOP/s divided by a link's both-way bandwidth W (2550 on v5p). On a GPU,
    this intensity is the peak FLOP/s divided by the egress (2200 on H100).

    Source: How To Scale Your Model, 'How to Parallelize a Transformer for Training'.
    """
    row = lookup(chip)
    return peak_flops(row) / (row.ici_both if isinstance(row, Chip) else row.egress)


def _known(value: float | None, row: Chip | Gpu, what: str) -> float:
    if value is None:
        raise ValueError(f"the table has no {what} for {row.name}")
    return value
