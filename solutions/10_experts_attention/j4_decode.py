"""# J4 Decode with a cache that is cut along its length

A model writes one token at a time, and each step reads all keys and values so far: the *KV cache*. The cache can be
larger than the weights. So z cuts the cache's sequences, x cuts its positions, and y cuts its heads. A mean with
softmax weights is a ratio of two sums over positions, Σ e^s v / Σ e^s. Devices can add such sums, but they cannot
average the ratios.

```
   12 positions,    x0            x1            x2
   7 filled         k k k k       k k k -       - - - -
   for each head    max, mass,    max, mass,    nothing:
                    sum of v      sum of v      no mass
                    -- one max for all; masses, sums: rescaled, added --
```

**Write** the body `decode(q, k, v, length)`. For each sequence and head, take the softmax of q · k over the first
`length` positions. The result is the mean of the rows of v with these weights. `q` is already scaled.

| | whole shape | layout |
|---|---|---|
| `q`, result | float32[B, K, H] | `P("z", "y", None)` |
| `k`, `v` | float32[B, S, K, H] | `P("z", "x", "y", None)` |
| `length` | int32[B], from 1 to S | `P("z")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | the mean of v over the filled positions, weighted by the softmax | |
| what is sent | over x at most (X−1) · B/Z · K/Y · (H + 2) numbers: an all-gather of H + 2 numbers for each of the device's sequences and heads | 84 bytes |
| | nothing over y and z | |

Positions from `length` on hold old data: ignore them. Scores may be in the hundreds, so that e^s overflows. From all
scores of a sequence and head, subtract the largest such score on any device.

**Symbols.** B sequences, S positions, K heads of H numbers; X, Y, Z sizes of mesh axes; s score, mass Σ e^(s −
max).

**Small case.** x0 has the scores (0, ln 3), and x1 has (0, 0). Over the scores of x0 only, the weights are (1/4, 3/4);
over the scores of x1 only, they are (1/2, 1/2). Over all scores they are (1, 3, 1, 1)/6, so x0 has 2/3 of the mass.
With B=6, K=2, H=5 on z=x=y=2 a device sends (X−1) · B/Z · K/Y · (H + 2) = 1 · 3 · 1 · 7 numbers, 84 bytes.

## Going further

**In real systems.** Flash decoding merges the devices' results in this way, by their log-sum-exp. Every cache that is
cut along its positions needs such a merge.

**Read on.** *How To Scale Your Model*, "All About Transformer Inference".
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, array, normal
from grader.expect import expect_close, expect_traffic, needed
from grader.hardware import all_reduce_time, hbm_time

exercise = Exercise(
    meshes=[{"z": 2, "x": 2, "y": 2}, {"x": 4, "y": 2, "z": 1}, {"x": 3, "z": 2, "y": 1}], stars=3, extension=True
)


@exercise.body(
    out_specs=P("z", "y", None),
    hints=[
        "A mean weighted by a softmax is a ratio of two sums. Which sums are these? Each device can compute its part of both sums.",
        "Find the largest score of all devices with pmax. Then every device's masses and sums have one scale, and psum adds them.",
        "top = jax.lax.pmax(scores.max(-1), 'x'); weights = jnp.exp(scores - top[..., None]); position = axis_index('x') * rows + ...",
    ],
)
def decode(q, k, v, length):
    """Return the attention of one new token to a cache.

    Args: one device's blocks of q float32[B, K, H] sharded P('z', 'y'), of k and v float32[B, S, K, H] sharded P('z', 'x', 'y'), and
        of length int32[B] sharded P('z').
    Returns: one device's block of float32[B, K, H] sharded P('z', 'y').
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
    """Queries whose scores are a few units for every second sequence, and in the hundreds for the sequences between."""
    return rng.standard_normal(shape) * np.where(np.arange(shape[0]) % 2, 40, 1)[:, None, None]


@exercise.helper
def filled(rng, shape, S, mesh):
    """Lengths of all kinds: within the first device's part, across the border between two devices, and all of S."""
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
    """The attention of the whole arrays, in float64."""
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
    """decode: at most one all-gather of results over x; nothing is sent over y and z"""
    results = seen.dims["B"] / seen.mesh["z"] * seen.dims["K"] / seen.mesh["y"]
    n, H = seen.mesh["x"], seen.dims["H"]
    most = (n - 1) * 4 * results * (H + 2)
    right = min((n - 1) * 4 * results * (H + 1), 2 / n * most)  # a gather without a maximum, or all-reduces
    wrong = (n - 1) * 4 * results * seen.dims["S"] / n * (H + 1)  # scores and values of all positions
    expect_traffic(seen, at_most=needed(right, wrong, at=most), axis="x")
    for axis in ("y", "z"):
        expect_traffic(seen, at_most=0, axis=axis)


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "B": [48, 96], "S": [24576, 49152], "X": [8, 12]},
    model="HBM bandwidth only",
    hints=[
        "Which part of the cache does a chip hold?",
        "x cuts the positions, and the axes of size 4 cut the sequences and the heads. Keys and values are two arrays.",
        "2 arrays · 2 bytes · (B / 4) · (S / X) · (8 / 4) · 128, divided by the HBM bandwidth",
    ],
)
def cache_read_time(chip, B, S, X):
    """A layer's cache has 8 heads of 128 bfloat16 numbers, and {{ B }} sequences of {{ S }} positions. A mesh
    x={{ X }}, y=4, z=4 of {{ chip }} chips cuts the cache as in the table. How long does a chip take to read its part
    of the layer's cache in a step?"""
    return hbm_time(2 * 2 * B / 4 * S / X * 8 / 4 * 128, chip)


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "B": [640, 1024, 1536, 2304, 3584], "X": [4, 8]},
    model="ring, bandwidth only: an all-reduce takes 2·V / W; the all-reduce of the maximum is left out",
    hints=[
        "Which arrays are summed over the devices of the ring, and how many numbers does each array have per head?",
        "The sum of v has 32 numbers for each head, and the mass is one more number: 33 numbers in float32.",
        "2 · V / W with V = 4 bytes · B · 64 heads · 33 numbers",
    ],
)
def merge_time(chip, B, X):
    """A ring of {{ X }} {{ chip }} chips cuts only the positions. How long does `decode` take to add the
    masses and the sums of v of {{ B }} sequences with 64 heads of 32 numbers, in float32?"""
    return all_reduce_time(4 * B * 64 * 33, X, chip)
