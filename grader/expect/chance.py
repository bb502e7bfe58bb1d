"""Check random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from grader.expect.failure import Failure

NEARLY = "nearly equal, or equal but shifted or mirrored"
SPREADS = 7  # correlations of independent numbers are nearer to 0, even the largest of 10^7


def expect_independent(arrays: Mapping[str, np.ndarray]) -> None:
    """Check that no two arrays of random numbers are nearly equal, however one of them is shifted or mirrored.

    The correlation of two arrays is taken for all cyclic shifts at once, by a Fourier transform. For independent arrays
    of n numbers it is 0 with a spread of 1/sqrt(n). If a part of the numbers is equal, it is about that part.

    Args:
        arrays: arrays of one shape, under the words that name them in a message, such as "device 2 in step 1".
    """
    names, numbers = list(arrays), np.stack([array.astype(np.float64) for array in arrays.values()])
    axes = tuple(range(1, numbers.ndim))
    unit = numbers - numbers.mean(axis=axes, keepdims=True)
    unit /= np.maximum(np.sqrt((unit**2).sum(axis=axes, keepdims=True)), np.finfo(np.float64).tiny)
    flips = itertools.chain.from_iterable(itertools.combinations(axes, k) for k in range(numbers.ndim))
    waves = [np.fft.fftn(np.flip(unit, flip), axes=axes) for flip in flips]
    limit = SPREADS / np.sqrt(numbers[0].size)
    for one, other in itertools.combinations(range(len(names)), 2):
        alike = max(float(np.fft.ifftn(waves[0][one] * wave[other].conj()).real.max()) for wave in waves)
        if not alike < limit:
            same = "equal" if np.array_equal(numbers[one], numbers[other]) else NEARLY
            raise Failure(
                f"{names[one]} and {names[other]} have random numbers that are {same}: their correlation is {alike:.2f}"
            )
