"""Check that arrays of random numbers are independent of each other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from grader.expect.failure import Failure

NEARLY = "nearly equal, or equal but shifted or mirrored"
SPREADS = 7  # limit in standard deviations; of 10^7 correlations of independent numbers, none exceeds the limit


def expect_independent(arrays: Mapping[str, np.ndarray]) -> None:
    """Check that no two arrays of random numbers are correlated, even after one array is shifted or mirrored.

    A Fourier transform gives the correlation of two arrays for all cyclic shifts at once. For independent arrays of n
    numbers, the correlation is 0 with a spread of 1/sqrt(n). If two arrays have half of their numbers in common, the
    correlation is about 1/2.

    ``arrays``: arrays of one shape, by their names in messages, such as "device 2 in step 1".
    """
    names, numbers = list(arrays), np.stack([array.astype(np.float64) for array in arrays.values()])
    axes = tuple(range(1, numbers.ndim))
    unit = numbers - numbers.mean(axis=axes, keepdims=True)
    unit /= np.maximum(np.sqrt((unit**2).sum(axis=axes, keepdims=True)), np.finfo(np.float64).tiny)
    flips = itertools.chain.from_iterable(itertools.combinations(axes, k) for k in range(numbers.ndim))
    waves = [np.fft.fftn(np.flip(unit, flip), axes=axes) for flip in flips]
    limit = SPREADS / np.sqrt(numbers[0].size)
    for one in range(len(names) - 1):
        later = slice(one + 1, None)
        correlations = [np.fft.ifftn(waves[0][one] * wave[later].conj(), axes=axes).real for wave in waves]
        largest = np.max([found.max(axis=axes) for found in correlations], axis=0)
        for other, alike in enumerate(largest, start=one + 1):
            if alike < limit:  # False for NaN
                continue
            same = "equal" if np.array_equal(numbers[one], numbers[other]) else NEARLY
            raise Failure(
                f"{names[one]} and {names[other]} have random numbers that are {same}: their correlation is {alike:.2f}"
            )
