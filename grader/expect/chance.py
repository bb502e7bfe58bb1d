"""Check random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from grader.expect.failure import Failure

SPREADS = 7  # so far from 0 no correlation of independent numbers is, with 10^6 of them in one check


def expect_independent(arrays: Mapping[str, np.ndarray]) -> None:
    """Check that no two arrays of random numbers are nearly equal, however one of them is shifted.

    The correlation of two arrays is taken for all cyclic shifts at once, by a Fourier transform. For independent arrays
    of n numbers it is 0 with a spread of 1/sqrt(n). If a part of the numbers is equal, it is about that part.

    Args:
        arrays: arrays of one shape, under the words that name them in a message, such as "device 2 in step 1".
    """
    centered = {name: array.astype(np.float64) - array.mean(dtype=np.float64) for name, array in arrays.items()}
    waves = {name: np.fft.fftn(one / (np.linalg.norm(one) or 1.0)) for name, one in centered.items()}
    for one, other in itertools.combinations(waves, 2):
        alike = float(np.fft.ifftn(waves[one] * waves[other].conj()).real.max())
        if not alike < SPREADS / np.sqrt(waves[one].size):
            equal = "equal" if np.array_equal(arrays[one], arrays[other]) else "nearly equal, or equal but shifted"
            raise Failure(f"{one} and {other} have random numbers that are {equal}: their correlation is {alike:.2f}")
