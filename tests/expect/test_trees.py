"""Trees are compared leaf by leaf, and messages name the leaf."""

from __future__ import annotations

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.common.observation import Sharded
from grader.expect import expect_close, expect_equal, expect_spec
from tests.seen import reason, sharded

W, B = np.arange(32.0).reshape(8, 4), np.arange(4.0)


def named(value: np.ndarray, name: str, spec: tuple = (), **more) -> Sharded:
    return sharded(value, spec, name=name, **more)


GOT = (named(np.array(2.0), "loss"), {"w": named(W, "grads['w']", ("x",)), "b": named(B, "grads['b']")})


def test_all_leaves_of_a_tree_are_compared() -> None:
    expect_close(GOT, (np.array(2.0), {"b": B, "w": W}))
    expect_equal(GOT, [np.array(2.0), {"b": B, "w": W}])
    expect_spec(GOT, (P(), {"w": P("x"), "b": P()}))


def test_the_wrong_leaf_of_a_tree_is_reported() -> None:
    assert reason(expect_close, GOT, (np.array(2.0), {"b": B, "w": 2 * W})).startswith(
        "grads['w']: on device (x=0, y=0), "
    )
    assert reason(expect_close, GOT[0], np.array(3.0)) == "loss: on device (x=0, y=0), the value is wrong"
    assert reason(expect_equal, GOT[1], {"b": B + 1, "w": W}).startswith("grads['b']: on device")
    assert reason(expect_spec, GOT, (P(), P("x"))).startswith("grads['b']: the result is sharded P()")


@pytest.mark.parametrize(
    ("want", "told"),
    [
        ({"b": B, "w": W}, "the expected value is a dict of 'b', 'w', expected (loss, {'b', 'w'})"),
        ((B, {"w": W}), "the expected value is a dict of 'w' at [1], expected {'b', 'w'}"),
        (W, "the expected value is one array, expected (loss, {'b', 'w'})"),
    ],
)
def test_a_reference_with_a_different_tree_is_the_authors_mistake(want: object, told: str) -> None:
    with pytest.raises(ValueError) as error:
        expect_close(GOT, want)
    assert str(error.value) == told


def test_several_undeclared_results_are_not_a_tree() -> None:
    """A program that returns more results than required must not pass."""
    got = [sharded(W), sharded(W)]
    assert reason(expect_close, got, [W, W]) == "the result should be one array, not a tuple of 2"
    assert reason(expect_spec, got, P()) == "the result should be one array, not a tuple of 2"


def test_a_reference_made_of_results_may_be_infinite() -> None:
    """The reference of a later step uses the learner's results. Infinite results then fail the check, and do not break it."""
    expected = np.full(4, np.inf)
    told = "step 2: b: the results of the previous step lead to NaN or infinite values"
    assert reason(expect_close, named(B, "step 2: b", step=2), expected) == told
    with pytest.raises(ValueError, match="the reference's result in this check has NaN or infinite values"):
        expect_close(named(B, "step 1: b", step=1), expected)
