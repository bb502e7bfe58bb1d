"""Layouts are compared by their slices, and not as texts."""

from __future__ import annotations

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.expect import (
    Failure,
    expect_spec,
)
from tests.seen import reason, sharded

A = np.random.default_rng(0).standard_normal((8, 12))


def test_expect_spec_compares_layouts_not_texts() -> None:
    expect_spec(sharded(A, ("x",)), P("x", None))
    text = reason(expect_spec, sharded(np.zeros((8, 8)), (("x", "y"),)), P(("y", "x")))
    assert text.startswith(
        "the result is sharded P(('x', 'y')), expected P(('y', 'x'), None): device (x=0, y=1) holds [1:2, 0:8]"
    )


def test_axes_of_size_1_do_not_change_a_layout() -> None:
    expect_spec(sharded(A, ("x",), {"x": 8, "y": 1}), P("x", "y"))


@pytest.mark.parametrize("got", [sharded(A[0]), sharded(A[:6])])
def test_expect_spec_reports_a_wrong_shape(got: object) -> None:
    assert "shape" in reason(expect_spec, got, P("x", "y"))


def test_a_layout_that_differs_comes_with_both_pictures() -> None:
    with pytest.raises(Failure) as failure:
        expect_spec(sharded(A, ("x",)), P(None, "x"))
    assert (failure.value.expected, failure.value.actual) == ("P(None, 'x')", "P('x')")
    assert failure.value.layouts is not None
    returned, wanted = failure.value.layouts
    assert returned[2] != wanted[2] and len(returned[2]) == len(wanted[2]) == 8
