"""Random numbers are compared under all shifts."""

from __future__ import annotations

import numpy as np
import pytest

from grader.expect import Failure, expect_independent

RNG = np.random.default_rng(0)
MASK = RNG.random((20, 45)) < 0.75


def unlike(other: np.ndarray) -> None:
    expect_independent({"the first": MASK, "the second": other})


def test_independent_random_numbers_pass() -> None:
    expect_independent({f"draw {i}": RNG.random((20, 45)) < 0.75 for i in range(40)})
    expect_independent({f"draw {i}": RNG.standard_normal(900) for i in range(40)})


def test_equal_random_numbers_fail() -> None:
    with pytest.raises(Failure) as failed:
        unlike(MASK)
    assert str(failed.value) == "the first and the second have random numbers that are equal: their correlation is 1.00"


@pytest.mark.parametrize(
    "other",
    [
        np.roll(MASK, (7, 20), axis=(0, 1)),
        np.roll(MASK, 317),
        np.roll(MASK[:, ::-1], 5, axis=1),
        MASK[::-1, ::-1],
        np.where(RNG.random(MASK.shape) < 0.3, ~MASK, MASK),
        MASK + 1e-3 * RNG.standard_normal(MASK.shape),
        np.where(RNG.random(MASK.shape) < 0.6, np.roll(MASK, 3, axis=0) - 0.75, 0),
    ],
    ids=[
        "both axes",
        "flat",
        "one axis mirrored",
        "both axes mirrored",
        "a part differs",
        "noise",
        "a part is unknown",
    ],
)
def test_random_numbers_that_are_nearly_equal_or_shifted_fail(other: np.ndarray) -> None:
    with pytest.raises(
        Failure, match="random numbers that are nearly equal, or equal but shifted or mirrored: their correlation"
    ):
        unlike(other)


def test_constants_count_as_independent() -> None:
    unlike(np.zeros(MASK.shape))
