"""``expect_independent`` also finds copies that are shifted, reflected, transposed or negated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from grader.expect import Failure, chance, expect_independent

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
        MASK.T.reshape(MASK.shape),
        MASK.reshape(MASK.shape[::-1]).T,
        np.where(RNG.random(MASK.shape) < 0.3, ~MASK, MASK),
        MASK + 1e-3 * RNG.standard_normal(MASK.shape),
        np.where(RNG.random(MASK.shape) < 0.6, np.roll(MASK, 3, axis=0) - 0.75, 0),
    ],
    ids=[
        "both axes",
        "flat",
        "one axis mirrored",
        "both axes mirrored",
        "transposed",
        "transposed back",
        "a part differs",
        "noise",
        "a part is unknown",
    ],
)
def test_random_numbers_that_are_nearly_equal_or_shifted_fail(other: np.ndarray) -> None:
    with pytest.raises(
        Failure, match=r"are nearly equal, or equal but shifted, mirrored or transposed: their correlation is [01]"
    ):
        unlike(other)


@pytest.mark.parametrize(
    "move",
    [
        lambda u: u,
        lambda u: np.roll(u, (2, 31), axis=(0, 1)),
        lambda u: u[::-1, ::-1],
        lambda u: u.T.reshape(u.shape),
    ],
    ids=["in place", "shifted", "mirrored", "transposed"],
)
@pytest.mark.parametrize("rate", [0.25, 0.4, 0.75])
def test_opposite_random_numbers_fail(move: Callable[[np.ndarray], np.ndarray], rate: float) -> None:
    u = RNG.random((15, 120))
    with pytest.raises(Failure, match=r"the first and the second have random numbers that are opposite .* is -0\."):
        expect_independent({"the first": u < rate, "the second": move(1 - u) < rate})


def test_complements_fail() -> None:
    with pytest.raises(Failure, match=r"their correlation is -1\.00"):
        unlike(~MASK)


def test_equal_numbers_fail_at_all_sizes() -> None:
    for n in (2, 20, 120):
        array = np.arange(n) % 2
        with pytest.raises(Failure, match=r"that are equal: their correlation is 1\.00"):
            expect_independent({"row 0": array, "row 1": array})


def test_limits_of_the_docstring() -> None:
    masks = np.stack([RNG.random((15, 120)) < 0.25 for _ in range(20)]).astype(float)
    rows = np.stack([RNG.random(120) < 0.25 for _ in range(60)]).astype(float)
    assert chance._limits(masks, 12).mean() == pytest.approx(0.23, abs=0.005)
    assert chance._limits(rows, 2).mean() == pytest.approx(0.89, abs=0.02)


@pytest.mark.parametrize(
    "draw", [lambda: RNG.random((6, 40)) < 0.25, lambda: RNG.standard_normal(240)], ids=["masks", "normal"]
)
def test_false_alarms_are_at_most_as_frequent_as_stated(
    draw: Callable[[], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chance, "FALSE_ALARM", 0.1)
    alarms = 0
    for _ in range(100):
        try:
            expect_independent({"the first": draw(), "the second": draw(), "the third": draw()})
        except Failure:
            alarms += 1
    assert alarms <= 20  # 10 alarms are expected; 1 of 1000 runs has more than 20


def test_constants_count_as_independent() -> None:
    unlike(np.zeros(MASK.shape))


@pytest.mark.parametrize("size", [1e-30, 1e-10, 1.0, 1e10, 1e30])
def test_the_size_of_the_numbers_does_not_matter(size: float) -> None:
    one, two = (np.random.default_rng(seed).normal(size=(30, 40)) * size for seed in (1, 2))
    expect_independent({"one": one, "two": two})
    with pytest.raises(Failure, match="have random numbers that are equal"):
        expect_independent({"one": one, "again": one})
