"""The arithmetic intensities of the hardware table's chips are equal to published intensities."""

from __future__ import annotations

import pytest

from grader import hardware
from grader.hardware import (
    hbm_intensity,
    link_intensity,
    matmul_time,
)


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


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: hbm_intensity("GB200 NVL72"), "the table has no bfloat16 rate for GB200 NVL72"),
        (lambda: matmul_time(1, "A100", dtype="fp8"), "no fp8 rate for A100; it has bfloat16, int8"),
    ],
)
def test_errors_are_one_clear_line(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value)
