"""Ready-made functions for ``draw=``: ``array("B", "E", draw=draws.one_hot)``. They work along the last axis."""

from __future__ import annotations

import numpy as np


def permutation(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """0, 1, ..., n-1 in another order along the last axis, int64; each row of its own."""
    return rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)


def one_hot(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """One 1 along the last axis, else 0; bool."""
    return np.arange(shape[-1]) == rng.integers(shape[-1], size=shape[:-1])[..., None]


def probabilities(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Positive numbers with the sum 1 along the last axis, float64: the softmax of normal values."""
    weights = np.exp(rng.standard_normal(shape))
    return weights / weights.sum(axis=-1, keepdims=True)


def causal_mask(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Which keys (last axis) a query (the axis before) may look at: itself and those before; bool. It draws nothing."""
    return np.broadcast_to(np.arange(shape[-1]) <= np.arange(shape[-2])[:, None], shape)


def segments(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of the documents in a row of tokens, int64: 0, 0, 0, 1, 1, 2, ... One token in four starts a new one."""
    starts = rng.random(shape) < 0.25
    starts[..., 0] = False
    return np.cumsum(starts, axis=-1)
