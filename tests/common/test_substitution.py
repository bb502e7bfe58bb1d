"""Replace small sizes by large sizes: products of dimensions, and cases with several possible results."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.common.substitution import Ambiguous, substitution

SMALL, LARGE, MESH = {"B": 2 * 11, "D": 13, "F": 3 * 17}, {"B": 8192, "D": 2048, "F": 3 * 4096}, {"x": 2, "y": 4}
SIZES = substitution(SMALL, LARGE, MESH, MESH)


@given(st.integers(1, 10), st.tuples(*[st.integers(0, 2)] * 3))
def test_a_product_of_dimensions_becomes_the_product_of_the_large_ones(times: int, powers: tuple[int, ...]) -> None:
    small = large = times
    for power, dim in zip(powers, SMALL, strict=True):
        small, large = small * SMALL[dim] ** power, large * LARGE[dim] ** power
    assert SIZES.of(small) == large


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_substitution_respects_products(a: int, b: int) -> None:
    assert SIZES.of(a * b) == SIZES.of(a) * SIZES.of(b)


@given(st.integers(0, 10))
def test_numbers_without_a_dimension_are_not_substituted(n: int) -> None:
    assert SIZES.of(n) == n


def test_parts_of_a_dimension_become_equal_parts_of_the_large_one() -> None:
    assert SIZES.of(11) == 4096 and SIZES.of(17) == 4096 and SIZES.of(13 * 5) == 5 * 2048


def test_an_unchanged_dimension_needs_no_prime() -> None:
    assert substitution({"B": 6, "D": 13}, {"B": 6, "D": 26}, MESH, MESH).of(6 * 13) == 6 * 26


@pytest.mark.parametrize(
    ("small", "told"),
    [
        ({"B": 6, "D": 13}, "the dimension B has size 6 in the judged call and 512 in the timing call. The grader recognizes a dimension by its size, so in the judged call choose a size with a prime factor that is larger than 8 (the number of devices) and that no other dimension has, such as 11"),
        ({"B": 26, "D": 13}, "the dimension B has size 26 in the judged call and 512 in the timing call. The grader recognizes a dimension by its size, so in the judged call choose a size with a prime factor that is larger than 8 (the number of devices) and that no other dimension has, such as 11"),
        ({"B": 7, "D": 11}, "the dimension B has size 7 in the judged call and 512 in the timing call. The grader recognizes a dimension by its size, so in the judged call choose a size with a prime factor that is larger than 8 (the number of devices) and that no other dimension has, such as 13"),
    ],
)  # fmt: skip
def test_an_ambiguous_dimension_is_reported_with_a_possible_prime(small: dict[str, int], told: str) -> None:
    with pytest.raises(Ambiguous) as error:
        substitution(small, {"B": 512, "D": 1024}, MESH, MESH)
    assert str(error.value) == told


def test_substitution_also_replaces_mesh_axes() -> None:
    sizes = substitution({"B": 5 * 11}, {"B": 256 * 4096}, {"x": 5, "y": 1}, {"x": 256, "y": 1})
    assert (sizes.of(5), sizes.of(11), sizes.of(55)) == (256, 4096, 256 * 4096)
    assert sizes.ratios[5] == Fraction(256, 5)
    for mesh in ({"x": 4, "y": 1}, {"x": 3, "y": 3}):
        with pytest.raises(Ambiguous, match=r"choose a prime size that no other axis has, such as 3 or 5"):
            substitution({}, {}, mesh, {"x": 256, "y": mesh["y"]})
