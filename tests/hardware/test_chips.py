"""The hardware table: its rows, their names, and the line of figures that reports print under a question."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields

import pytest

from grader import hardware
from grader.hardware import (
    CHIPS,
    GPUS,
    describe,
    hbm_intensity,
    link_intensity,
    lookup,
    matmul_time,
)
from grader.hardware.chips import FIGURES, reading


def test_every_row_has_a_source_and_is_frozen():
    for row in [*CHIPS.values(), *GPUS.values()]:
        assert row.source and row.date.count("-") == 2
        with pytest.raises(FrozenInstanceError):
            row.name = "mine"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("chip", "chips", "both_ways"),
    [
        ("v3", 1024, 2e11),
        ("v4p", 4096, 9e10),
        ("v5p", 8960, 1.8e11),
        ("v5e", 256, 9e10),
        ("v6e", 256, 1.8e11),
        ("7x", 9216, 1.8e11),
    ],
)
def test_each_chip_has_its_published_pod(chip, chips, both_ways):
    row = CHIPS[chip]
    assert math.prod(row.pod) == chips
    assert row.ici_both == both_ways
    assert row.torus == len(row.pod)


def test_lookup_understands_common_spellings():
    assert lookup("TPU v5e") is lookup("V5E") is CHIPS["v5e"]
    assert lookup("h100") is GPUS["H100"]
    assert lookup(CHIPS["7x"]) is CHIPS["7x"]
    assert hardware.is_known("v4p") and not hardware.is_known("v4x") and not hardware.is_known(4)


def test_describe_prints_one_line_per_chip():
    assert describe("v5e") == (
        "v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); 2D torus, wraps only on an axis of 16; "
        "HBM 16 GB at 8.2e11 B/s; bf16 1.97e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04"
    )
    assert describe("v4p").count("\n") == 0 and "full 4x4x4 cubes" in describe("v4p")
    assert describe("H100") == (
        "H100: 450 GB/s out of each GPU into its node's switch (8 GPUs per node); 400 GB/s out of a node; "
        "HBM 80 GB at 3.4e12 B/s; bf16 9.9e14 FLOP/s dense; table 2026-11, from How To Scale Your Model of 2025-08-18"
    )
    assert describe("v5e", {"bf16", "hop"}) == (
        "v5e: bf16 1.97e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04"
    )
    assert describe("H100", {"hbm_bw"}).startswith("H100: HBM 80 GB at 3.4e12 B/s; table")
    assert "HBM" not in describe("GB200 NVL72")
    assert "400 GB/s out of a node (assumed, as for H100);" in describe("H200")
    assert describe("7x").endswith("from jax-ml/scaling-book pull requests 115 and 116 of 2026-05-22")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lookup("v5x"), "unknown chip 'v5x'; did you mean 'v5p'? (known: v3, v4p,"),
        (lambda: lookup("zzz"), "unknown chip 'zzz' (known: v3"),
        (lambda: hbm_intensity("GB200 NVL72"), "the table has no bfloat16 rate for GB200 NVL72"),
        (lambda: matmul_time(1, "A100", dtype="fp8"), "no fp8 rate for A100; it has bfloat16, int8"),
    ],
)
def test_errors_are_one_clear_line(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("read", "figures"),
    [
        (lambda: hardware.all_gather_time(1e6, 4, "v5e"), {"ici", "pod"}),
        (lambda: hardware.matmul_time(1e12, "v5e"), {"bf16"}),
        (lambda: hardware.latency(4), {"hop"}),
        (lambda: hardware.hbm_time(1e6, "v5e"), {"hbm_bw"}),
        (lambda: hardware.axis_topology("v5e", 16), {"wrap_whole"}),
        (lambda: hardware.all_gather_time(1e6, 4, "H100", topology="switch"), {"egress"}),
        (lambda: CHIPS["v5e"].name, set()),
    ],
)
def test_reading_a_row_shows_which_figures_are_used(read: Callable[[], object], figures: set[str]):
    with reading() as seen:
        read()
    assert seen & FIGURES == figures
    read()
    assert seen & FIGURES == figures  # reads after the ``with`` block are not recorded


def test_all_figures_of_a_line_have_a_name():
    names = {field.name for row in (*CHIPS.values(), *GPUS.values()) for field in fields(row)}
    assert names | {"ici_both", "hop"} >= FIGURES
    for chip in (*CHIPS, *GPUS):
        assert describe(chip, FIGURES) == describe(chip)


@pytest.mark.parametrize(
    ("chip", "want"), [("v5p", 2550), ("v5e", 2189), ("v4p", 3055), ("H100", 2200), ("B200", 2556)]
)
def test_link_intensities(chip, want):
    assert link_intensity(chip) == pytest.approx(want, rel=2e-3)


def test_roofline_numbers():
    """v5e needs 240 FLOP/byte, and H100 291. With the book's bandwidth of 3.35e12 B/s, H100 needs 295."""
    assert hbm_intensity("v5e") == pytest.approx(240, rel=2e-3)
    assert hbm_intensity("H100") == pytest.approx(291, rel=2e-3)
    assert hardware.peak_flops("H100") / 3.35e12 == pytest.approx(295, rel=3e-3)
    assert matmul_time(1.97e14, "v5e") == 1
    assert matmul_time(4.61e15, "7x", dtype="fp8") == 1
