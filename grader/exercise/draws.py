"""Functions for the argument ``draw`` of ``array``, which draw values: ``array("B", "E", draw=draws.one_hot)``."""

from __future__ import annotations

import numpy as np


def permutation(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw 0, 1, ..., n-1 in random order along the last axis, each row independently; int64."""
    return rng.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)


def one_hot(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw one-hot rows: a single 1 along the last axis, else 0; bool."""
    return np.arange(shape[-1]) == rng.integers(shape[-1], size=shape[:-1])[..., None]


def probabilities(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw positive numbers that sum to 1 along the last axis, float64: the softmax of normal values."""
    weights = np.exp(rng.standard_normal(shape))
    return weights / weights.sum(axis=-1, keepdims=True)


def causal_mask(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return a bool mask that is not random: query i (second-last axis) attends to keys 0 to i (last axis)."""
    return np.broadcast_to(np.arange(shape[-1]) <= np.arange(shape[-2])[:, None], shape)


def segments(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw document indices of tokens, int64: 0, 0, 0, 1, 1, 2, ... About one token in four starts a new document."""
    starts = rng.random(shape) < 0.25
    starts[..., 0] = False
    return np.cumsum(starts, axis=-1)
