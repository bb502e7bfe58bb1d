"""More programs with times derived by hand: over several axes, limited by HBM, and parts of models.

Programs without a named slice use a test chip with C = 1e14 FLOP/s and W1 = 5e10 B/s.
Its HBM has no limit, or 1e12 B/s for the programs that are bounded by HBM.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.clock import Placement, placed
from grader.hardware.chips import CHIPS
from grader.wire.operations import Operations
from tests.clock.programs import read, ring_of

N, MIB = 8, 1 << 20
W1, C, HBM = 5e10, 1e14, 1e12
ROUND = [(i, (i + 1) % N) for i in range(N)]
BACK = [(i, (i - 1) % N) for i in range(N)]
CUBE = {"x": 4, "y": 4, "z": 8}
LOCAL = ((1024, 1024), P())
D = 2 * 1024**3 / C * 1e6  # microseconds of a matmul with 1024³ multiplications
R = 7 / 4 * 2 * MIB / (2 * W1) * 1e6  # microseconds of an all-reduce of a bfloat16 matrix of 1024² (2 MiB) on the ring
H = 2 * MIB / W1 * 1e6  # microseconds in which 2 MiB cross one link


def grid(local: Callable, on: str, mesh: dict[str, int], spec: P) -> tuple[Callable[[], Operations], Placement]:
    """Return a collective on a slice, and its placement.

    The whole array has 32 MiB. For a reduction, each device has an array of 32 MiB.
    """
    return lambda: read(local, [((16 * MIB,), spec)], P(), mesh=mesh), placed(on, mesh)


def links(chip: str, part: float, wires: int) -> float:
    """Return the microseconds in which ``part`` times 32 MiB cross ``wires`` one-way links of a chip."""
    return part * 32 * MIB / (wires * CHIPS[chip].ici) * 1e6


def gather(*axes: str) -> Callable:
    return lambda a: lax.all_gather(a, axes, tiled=True)


def reduce(*axes: str) -> Callable:
    return lambda a: lax.psum(a, axes)


def exchange(a):
    return lax.all_to_all(a.reshape(16, -1), ("x", "y"), 0, 0, tiled=True)


def megatron(x, w, v):
    return lax.psum(jnp.tanh(x @ w) @ v, "x")


def data_parallel(x, y, d):
    """Return the sums of two gradients over x. The second matmul can run during the first sum."""
    return lax.psum(x @ d, "x"), lax.psum(y @ d, "x")


def reduced_each_round(x, w):
    return lax.fori_loop(0, 5, lambda _, x: lax.psum(x @ w, "x"), x)


def both_ways(a):
    return lax.ppermute(a, "x", ROUND), lax.ppermute(a, "x", BACK)


def one_way_twice(k, v):
    return lax.ppermute(k, "x", ROUND), lax.ppermute(v, "x", ROUND)


def ulysses(q, w):
    return lax.all_to_all(lax.all_to_all(q, "x", 1, 0, tiled=True) @ w, "x", 0, 1, tiled=True)


def branches(x, w):
    return lax.cond(x[0, 0] > 0, lambda: x @ w @ w, lambda: x @ w)


def highest(x, w):
    return jnp.dot(x, w, precision=lax.Precision.HIGHEST)


def on_ring(local: Callable, *shapes: tuple, out: object = P(), dtype: str = "bfloat16", hbm: float = math.inf):
    return lambda: read(local, list(shapes), out, dtype=dtype), ring_of(N, hbm=hbm)


PART = ((N * 1024, 1024), P("x", None))  # 2 MiB on a device
E = N * 2 * MIB / (8 * W1) * 1e6  # microseconds of an all-to-all, in which an eighth of all data crosses each link
# name, formula, the formula's value in microseconds, and (program, placement on a slice)
MORE: list[tuple[str, str, float, tuple[Callable[[], Operations], Placement]]] = [
    (
        "all-gather, unequal rings (v5p:4x4x8)", "31/32 V/(4 W1)", links("v5p", 31 / 32, 4),
        grid(gather("x", "z"), "v5p:4x4x8", CUBE, P(("x", "z"))),
    ),
    (
        "all-reduce, unequal rings (v5p:4x4x8)", "31/16 V/(4 W1)", links("v5p", 31 / 16, 4),
        grid(reduce("x", "z"), "v5p:4x4x8", CUBE, P()),
    ),
    (
        "all-gather, equal rings (v5p:4x4x8)", "15/16 V/(4 W1)", links("v5p", 15 / 16, 4),
        grid(gather("x", "y"), "v5p:4x4x8", CUBE, P(("x", "y"))),
    ),
    (
        "all-reduce, three rings (v5p:4x4x8)", "127/64 V/(6 W1)", links("v5p", 127 / 64, 6),
        grid(reduce("x", "y", "z"), "v5p:4x4x8", CUBE, P()),
    ),
    (
        "all-gather, line and ring (v5e:8x16)", "127/128 V/(3 W1)", links("v5e", 127 / 128, 3),
        grid(gather("x", "y"), "v5e:8x16", {"x": 8, "y": 16}, P(("x", "y"))),
    ),
    (
        "all-gather, cores and chips (7x:1x2x2)", "3/4 (V/2)/(2 (W1/2))", links("7x", 3 / 8, 1),
        grid(gather("x"), "7x:1x2x2", {"x": 8}, P("x")),
    ),
    (
        "all-to-all, equal rings (v5p:4x4x8)", "V/(32 W1)", links("v5p", 1 / 32, 1),
        grid(exchange, "v5p:4x4x8", CUBE, P(("x", "y"))),
    ),
    ("Megatron block", "2d + r", 2 * D + R, on_ring(megatron, LOCAL, LOCAL, LOCAL)),
    (
        "gradients of two layers", "d + max(d, r) + r", D + max(D, R) + R,
        on_ring(data_parallel, LOCAL, LOCAL, LOCAL, out=(P(), P())),
    ),
    ("all-reduce in each of 5 rounds", "5 (d + r)", 5 * (D + R), on_ring(reduced_each_round, LOCAL, LOCAL)),
    ("two permutes, both ways", "h", H, on_ring(both_ways, PART, out=(P("x"), P("x")))),
    ("two permutes, one way", "2h", 2 * H, on_ring(one_way_twice, PART, PART, out=(P("x"), P("x")))),
    (
        "all-to-alls round a matmul", "2e + d/8", 2 * E + D / 8,
        on_ring(ulysses, ((1024, N * 1024), P(None, "x")), ((128, 128), P()), out=P(None, "x")),
    ),
    ("conditional", "2d, the longest branch", 2 * D, on_ring(branches, LOCAL, LOCAL)),
    ("float32 matmul, highest precision", "6d", 6 * D, on_ring(highest, LOCAL, LOCAL, dtype="float32")),
    (
        "matmul of 8 rows, bounded by HBM", "bytes/HBM", (2 * 8 * 1024 + 1024**2) * 2 / HBM * 1e6,
        on_ring(lambda x, w: x @ w, ((8, 1024), P()), LOCAL, hbm=HBM),
    ),
    ("tanh, bounded by HBM", "bytes/HBM", 2 * 2 * MIB / HBM * 1e6, on_ring(jnp.tanh, LOCAL, hbm=HBM)),
]  # fmt: skip
