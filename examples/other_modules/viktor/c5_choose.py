from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Chip:
    flops: float
    link: float  # bytes/s, both directions


V4P = Chip(flops=2.75e14, link=9.0e10)
V5P = Chip(flops=4.59e14, link=1.8e11)


def gather_first(B, D, F, X, flops, bandwidth):
    return max(2 * B * D * F / flops, 2 * D * F / bandwidth)


def reduce_last(B, D, F, X, flops, bandwidth):
    return max(2 * B * D * F / X / flops, 2 * 2 * B * F / bandwidth)


def choose(*args, **kwargs):
    """1 = gather W, 2 = all-reduce Out."""
    times = [gather_first(*args, **kwargs), reduce_last(*args, **kwargs)]
    return int(np.argmin(times)) + 1


gather_first_total = np.sum([gather_first(b, 7168, 16384, 8, V5P.flops, V5P.link) for b in (384, 10240)]) * 1e6
reduce_last_total = np.round(
    1e6
    * (reduce_last(384, 4096, 73728, 8, V4P.flops, V4P.link) + reduce_last(384, 73728, 4096, 8, V4P.flops, V4P.link)),
    1,
)
