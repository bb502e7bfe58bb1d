"""Check that arrays of random numbers are independent of each other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from grader.expect.failure import Failure

NEARLY = "nearly equal, or equal but shifted, mirrored or transposed"
OPPOSITE = "opposite (large in one array where they are small in the other), perhaps shifted, mirrored or transposed"
FALSE_ALARM = 1e-9  # upper bound for the probability that independent arrays fail by chance
# The largest allowed correlation. With few numbers, the computed limit would be 1 or more, and equal arrays would pass.
EQUAL = 0.999
# An array with at most this many different values is a mask. A mask has two values, and may have a third value for
# unknown elements. The limit of a mask follows from Hoeffding's inequality (see ``expect_independent``).
FEW_VALUES = 3


def expect_independent(arrays: Mapping[str, np.ndarray]) -> None:
    """Check that no two arrays of random numbers are correlated, even if one is shifted, mirrored or transposed.

    A *move* transposes the second array, then mirrors it along some axes, then shifts it cyclically. A transposed array
    gets its old shape back: its numbers are written into this shape row by row. The inverse of this transposition is
    also tried. Equal arrays have the correlation 1. The masks ``u < rate`` and ``1 - u < rate`` of one array ``u`` have
    a negative correlation: -1/3 for the rates 1/4 and 3/4.

    Two arrays fail if a correlation is above c or below -c. Let n be the size of an array, s its standard deviation,
    and r half of its range. For a mask with independent elements, Hoeffding's inequality limits the probability of a
    correlation beyond these limits: it is less than 2 exp(-n c² s² / (2 r²)). For independent normal or uniform
    numbers, it is less than 2 exp(-n c² / 2). The check chooses c so that these probabilities, summed over all pairs
    and moves, give 1e-9 (``FALSE_ALARM``). Examples: c = 0.23 for 20 masks of [15, 120] numbers with the rate 1/4, and
    0.89 for 60 masks of 120 numbers. Equal arrays fail at all sizes.

    ``arrays``: arrays of one shape, by their names in messages, such as "device 2 in step 1".
    """
    # float32 is exact enough for correlations, and takes half the time of float64.
    names, numbers = list(arrays), np.stack([array.astype(np.float32) for array in arrays.values()])
    axes = tuple(range(1, numbers.ndim))
    unit = numbers - numbers.mean(axis=axes, keepdims=True)
    unit /= np.maximum(np.abs(unit).max(axis=axes, keepdims=True), np.finfo(np.float32).tiny)  # squares stay finite
    unit /= np.maximum(np.sqrt((unit**2).sum(axis=axes, keepdims=True)), np.finfo(np.float32).tiny)
    # A Fourier transform gives the correlation of two arrays for all cyclic shifts at once.
    waves = [np.fft.rfftn(moved, axes=axes) for moved in _moved(unit)]
    limits = _limits(numbers, len(waves))
    for one in range(len(names) - 1):
        later = slice(one + 1, None)
        spectra = [waves[0][one] * wave[later].conj() for wave in waves]
        found = np.stack([np.fft.irfftn(s, numbers.shape[1:], axes) for s in spectra], axis=1)
        every = found.reshape(len(found), -1)
        largest, least = every.max(axis=1), every.min(axis=1)
        farthest = np.where(largest < -least, least, largest)
        for other, correlation in enumerate(farthest, start=one + 1):
            if abs(correlation) < min(limits[one], limits[other]):  # False for NaN
                continue
            alike = OPPOSITE if correlation < 0 else NEARLY
            alike = "equal" if np.array_equal(numbers[one], numbers[other]) else alike
            raise Failure(
                f"{names[one]} and {names[other]} have random numbers that are {alike}: "
                f"their correlation is {correlation:.2f}"
            )


def _moved(numbers: np.ndarray) -> list[np.ndarray]:
    """Return the stacked arrays once for each way to transpose and mirror them; the first item equals ``numbers``."""
    count, *shape = numbers.shape
    axes = range(1, numbers.ndim)
    backwards = [0, *reversed(axes)]
    turned = [numbers]
    if len(shape) > 1:
        turned.append(numbers.transpose(backwards).reshape(numbers.shape))
        turned.append(numbers.reshape(count, *reversed(shape)).transpose(backwards))
    flips = list(itertools.chain.from_iterable(itertools.combinations(axes, k) for k in range(numbers.ndim)))
    return [np.flip(array, flip) for array in turned for flip in flips]


def _limits(numbers: np.ndarray, moves: int) -> np.ndarray:
    """Return the limit c of ``expect_independent`` for each of the stacked arrays.

    For two arrays, the smaller of their limits applies.
    """
    flat = numbers.reshape(len(numbers), -1)
    comparisons = len(flat) * (len(flat) - 1) / 2 * flat.shape[1] * moves
    ratio = np.ones(len(flat))  # r / s
    for i, array in enumerate(flat):
        if 1 < len(np.unique(array)) <= FEW_VALUES:
            ratio[i] = np.ptp(array) / 2 / array.std()
    normal = np.sqrt(2 * np.log(2 * max(comparisons, 1) / FALSE_ALARM) / flat.shape[1])
    return np.minimum(ratio * normal, EQUAL)
