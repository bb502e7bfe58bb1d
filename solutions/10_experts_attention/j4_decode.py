"""# J4 Decode with a cache that is cut along its length

A model writes one token at a time. Each step reads all keys and values so far, the *KV cache*; on long texts it is larger than
the weights, and is cut: sequences over z, positions over x, heads over y.

**Task.** Write the body `decode(q, k, v, length)`. For each sequence and head: the softmax of `q · k` over the positions, and
the mean of the rows of `v` with these weights. Only the first `length` positions of a sequence are filled, one at least; what
the cache holds behind them is left from others. `q` is scaled already.

**Budget.** Over x a device may send what an all-gather of one result of `H + 2` numbers for each of its heads takes, over y
and z nothing. Keys and values stay where they are.

```
   12 positions,    x0            x1            x2
   7 filled         k k k k       k k k -       - - - -
   for each head    max, mass,    max, mass,    nothing:
                    sum of v      sum of v      no mass
                    -- one max for all; masses, sums: rescaled, added --
```

A softmax is a ratio of two sums over the positions, `Σ e^s v / Σ e^s`. Sums can be cut anywhere; ratios cannot be averaged.
Scores may be in the hundreds, where `e^s` is out of range: subtract the same number from all of a head's, the largest that any
device has.

**Small case.** Scores (0, ln 3) on x0 and (0, 0) on x1. The weights of the two softmaxes are (1/4, 3/4) and (1/2, 1/2), of the
whole (1, 3, 1, 1)/6: x0 has two thirds of the mass, not half.

**In real systems** this is flash decoding's merge by log-sum-exp, and what a cache shared by several chips needs.

**Read on.** *How To Scale Your Model*, "All About Transformer Inference".
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, array, normal
from grader.expect import expect_close, expect_traffic
from grader.hardware import all_reduce_time, hbm_time

exercise = Exercise(
    meshes=[{"z": 2, "x": 2, "y": 2}, {"x": 4, "y": 2, "z": 1}, {"x": 3, "z": 2, "y": 1}], stars=3, extension=True
)


@exercise.body(
    out_specs=P("z", "y", None),
    hints=[
        "Which two sums does a softmax-weighted mean divide? Both can be taken over pieces.",
        "Agree on the largest score with pmax. Then every device's masses and sums are on one scale, and psum adds them.",
        "top = jax.lax.pmax(scores.max(-1), 'x'); weights = jnp.exp(scores - top[..., None]); position = axis_index('x') * rows + ...",
    ],
)
def decode(q, k, v, length):
    """Attention of one new token to a cache.

    Args: blocks of q float32[B, K, H] (z, y, -), of k and v float32[B, S, K, H] (z, x, y, -), of length int32[B] (z).
    Returns: a block of float32[B, K, H] (z, y, -).
    """
    rows = k.shape[1]
    position = jax.lax.axis_index("x") * rows + jnp.arange(rows)
    scores = jnp.einsum("bkh,bskh->bks", q, k)
    scores = jnp.where(position < length[:, None, None], scores, -jnp.inf)
    top = jax.lax.pmax(scores.max(-1), "x")  # finite: position 0 is filled
    weights = jnp.exp(scores - top[..., None])
    mass = jax.lax.psum(weights.sum(-1), "x")
    return jax.lax.psum(jnp.einsum("bks,bskh->bkh", weights, v), "x") / mass[..., None]


@exercise.helper
def spread(rng, shape):
    """Scores of some units for every other sequence, in the hundreds for those between."""
    return rng.standard_normal(shape) * np.where(np.arange(shape[0]) % 2, 40, 1)[:, None, None]


@exercise.helper
def filled(rng, shape, S, mesh):
    """Lengths of all kinds: within the first device's part, over the border of two, and all of S."""
    part = S // mesh["x"]
    kinds = [rng.integers(1, part), rng.integers(part + 1, S), S]
    return np.array([kinds[n % 3] for n in range(shape[0])])


CACHE = P("z", "x", "y", None)
call = exercise.call(
    decode,
    q=array("B", "K", "H", draw=spread, spec=P("z", "y", None)),
    k=normal("B", "S", "K", "H", spec=CACHE),
    v=normal("B", "S", "K", "H", spec=CACHE),
    length=array("B", draw=filled, spec=P("z"), dtype="int32"),
    dims={"B": 6, "S": 36, "K": 2, "H": 5},
    hidden_dims={"B": 10, "S": 60, "K": 6, "H": 7},
)


def attended(q, k, v, length):
    """The whole, in float64."""
    scores = np.einsum("bkh,bskh->bks", q, k, dtype=np.float64)
    scores[np.broadcast_to(np.arange(k.shape[1]) >= length[:, None, None], scores.shape)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bks,bskh->bkh", weights / weights.sum(-1, keepdims=True), v)


@exercise.check(call, points=2)
def decode_value(seen):
    """decode: the mean of v over the filled positions, weighted by the softmax"""
    expect_close(seen.out, attended(seen.q, seen.k, seen.v, seen.length))


@exercise.check(call, points=1, public=True, after=decode_value)
def decode_traffic(seen):
    """decode: over x no more than one result for each head is gathered, over y and z nothing is sent"""
    results = seen.dims["B"] / seen.mesh["z"] * seen.dims["K"] / seen.mesh["y"]
    expect_traffic(seen, at_most=(seen.mesh["x"] - 1) * 4 * results * (seen.dims["H"] + 2), axis="x")
    for axis in ("y", "z"):
        expect_traffic(seen, at_most=0, axis=axis)


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "B": [48, 96], "S": [20480, 40960], "X": [8, 16]},
    model="HBM bandwidth only",
)
def cache_read_time(chip, B, S, X):
    """A layer's cache has 8 heads of 128 bfloat16 numbers. {{ B }} sequences of {{ S }} positions are cut over x={{ X }}, y=2 and z=2
    {{ chip }} chips as above. How long does a chip take to read its part of the layer's cache in a step?"""
    return hbm_time(2 * 2 * B / 2 * S / X * 8 / 2 * 128, chip)


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "B": [640, 1024, 1536, 2304, 3584], "X": [4, 8]},
    model="ring, bandwidth only: an all-reduce takes 2·V / W; the maximum is left out",
)
def merge_time(chip, B, X):
    """The positions are cut over a ring of {{ X }} {{ chip }} chips, nothing else is. How long does `decode` take to add masses
    and sums of {{ B }} sequences with 16 heads of 128, in float32?"""
    return all_reduce_time(4 * B * 16 * 129, X, chip)
