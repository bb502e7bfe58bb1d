"""Both sides flatten trees in JAX's order."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.wire.trees import Misfit, fitted, flat, leaves, mapped, named, rebuilt, shown

TREES = st.recursive(
    st.integers(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.lists(inner, min_size=1, max_size=3).map(tuple)
        | st.dictionaries(st.text(min_size=1, max_size=3), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)
STRUCTURE = ("loss", {"w2": "grads['w2']", "w1": ["grads['w1'][0]"]})


@given(TREES)
def test_leaves_come_in_the_order_of_jax(tree: Any) -> None:
    assert flat(tree) == jax.tree.leaves(tree)
    assert [name for name, _ in leaves(tree, "p")] == [f"p{jax.tree_util.keystr(k)}" for k, _ in jax.tree_util.tree_leaves_with_path(tree)]  # fmt: skip


@given(TREES)
def test_a_flattened_tree_is_rebuilt(tree: Any) -> None:
    assert rebuilt(tree, flat(tree)) == tree == jax.tree.unflatten(jax.tree.structure(tree), flat(tree))
    assert mapped(lambda leaf: leaf + 1, tree) == jax.tree.map(lambda leaf: leaf + 1, tree)
    assert flat(named(tree, "p")) == [name for name, _ in leaves(tree, "p")]


@given(TREES, TREES)
def test_trees_fit_if_their_structures_are_equal(found: Any, like: Any) -> None:
    try:
        parts = fitted(found, like)
    except Misfit:
        assert jax.tree.structure(found) != jax.tree.structure(like)
    else:
        assert parts == flat(found)


def test_a_spec_is_no_tree() -> None:
    assert flat({"w": P("x", None)}) == [P("x", None)]
    assert fitted((P(), P("x")), STRUCTURE, prefix=True) == [P(), P("x"), P("x")]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ((1, 2, 3), "a tuple of 3, expected (loss, {'w1': [grads['w1'][0]], 'w2'})"),
        (None, "None, expected (loss, {'w1': [grads['w1'][0]], 'w2'})"),
        (np.zeros(2), "one array, expected (loss, {'w1': [grads['w1'][0]], 'w2'})"),
        ((1, {"w1": [2]}), "a dict of 'w1' at [1], expected {'w1': [grads['w1'][0]], 'w2'}"),
        (((1, 2), {"w1": [2], "w2": 3}), "a tuple of 2 at [0], expected one array, loss"),
        ((1, {"w1": 3, "w2": 3}), "of type int at [1]['w1'], expected [grads['w1'][0]]"),
        ({1: 2}, "a dict of 1, expected (loss, {'w1': [grads['w1'][0]], 'w2'})"),
    ],
)
def test_a_tree_that_does_not_fit_is_reported_in_one_line(found: object, told: str) -> None:
    with pytest.raises(Misfit) as misfit:
        fitted(found, STRUCTURE)
    assert str(misfit.value) == told


def test_a_list_may_stand_for_a_tuple() -> None:
    assert fitted([1, {"w2": 2, "w1": (3,)}], STRUCTURE) == [1, 3, 2]


def test_a_tuple_of_one_looks_like_one() -> None:
    assert shown(("a",)) == "(a,)"
