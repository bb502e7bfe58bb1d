"""# B4 Halo exchange

A stencil computes each element from its neighbours. If x cuts the array, only elements near a cut need data of another
device. This data, the halo, comes from the two neighbours on the ring.

```
    w=1      x0  0 1 2 3      x1  4 5 6 7      x2  8 9 10 11
             right-going:  3 -> x1,  7 -> x2,  11 -> x0
             left-going:   0 -> x2,  4 -> x0,   8 -> x1
    halo     x0  11|0 1 2 3|4     x1  3|4 5 6 7|8     x2  7|8 9 10 11|0
```

**Write** two functions. The grader wraps `halo` in `shard_map` over x, with `check_vma=False`.

| | arguments | returns |
|---|---|---|
| `halo(a, *, w)`, a body | the device's block, float32[n] | float32[n + 2w]: the last w elements of the left neighbour, the block, the first w elements of the right neighbour |
| `stencil(a, *, mesh, weights)` | the array, float32[N], `P("x")`; a tuple of 2w + 1 floats | float32[N], `P("x")`: `out[i] = Σ_k weights[k] · a[i + k − w]`, k = 0 .. 2w |

**What is checked**

| function | check | small case, w=1 |
|---|---|---|
| `halo` | one element of each neighbour around every block | above |
| `halo` | three elements of each neighbour around every block | |
| `halo` | two permutes over x with w elements each: 2 · w · 4 bytes, and no other collective | 8 bytes |
| `stencil` | the weights (-1, 0, 1) give `a[i + 1] − a[i − 1]` | element 4 becomes 2 |
| `stencil` | five unequal weights | |
| `stencil` | the result is sharded `P("x")`; two permutes over x with w elements each | 8 bytes |

The ring is closed: the first device's left neighbour is the last device. w is at most n. If no pair of `ppermute` names
a device as a target, this device receives zeros, without an error.

**Symbols.** N: elements of the array. n: elements of a block. w: reach of the stencil. X: devices on the ring. D:
columns of a grid.

**Small case.** The weights are (-1, 0, 1) on the array above. Element 4, the first of x1, becomes 5 - 3 = 2 with the 3
from x0. Element 0 becomes 1 - 11 = -10. With a zero in place of the 11, element 0 would become 1.

## Going further

A device sends 2 · w elements, however large its block is.

**In real systems.** Halos occur in weather models, in convolutions over a cut image, and in sliding-window attention.

**Read on.** `jax.lax.ppermute` in the JAX documentation; *Using MPI* (Gropp, Lusk, Skjellum), the Poisson problem.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec, expect_traffic, needed

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 5}, {"x": 8}], stars=2, extension=True)


@exercise.body(
    out_specs=P("x"),
    hints=[
        "What does a device have that its right neighbour needs? What does its left neighbour need? Send only these elements.",
        "One ppermute sends device i's last w elements to i + 1. Another ppermute sends device i's first w elements to i - 1, modulo X.",
        "left = jax.lax.ppermute(a[-w:], 'x', [(i, (i + 1) % n) for i in range(n)]), with n = jax.lax.axis_size('x').",
    ],
)
def halo(a, *, w):
    """A block [n] -> [n + 2w]: w elements of the left neighbour, the block, w elements of the right neighbour."""
    n = jax.lax.axis_size("x")
    left = jax.lax.ppermute(a[-w:], "x", [(i, (i + 1) % n) for i in range(n)])
    right = jax.lax.ppermute(a[:w], "x", [(i, (i - 1) % n) for i in range(n)])
    return jnp.concatenate([left, a, right])


@exercise.task(
    hints=[
        "With its halo, a block has all the data that the stencil needs. How many elements of the result does a device compute from its n + 2w elements?",
        "Inside shard_map: padded = halo(block, w=w), then a sum of 2w + 1 shifted slices of length n.",
        "sum(weight * padded[k : k + n] for k, weight in enumerate(weights))",
    ]
)
def stencil(a, *, mesh, weights):
    """Return out[i] = sum over k of weights[k] * a[i + k - w], with indices modulo N.

    Args: a is float32[N] sharded P('x'); weights is a tuple of 2w + 1 floats; mesh has an axis 'x'.
    Returns: float32[N] sharded P('x').
    """

    def local(block):
        padded = halo(block, w=len(weights) // 2)
        return sum(weight * padded[k : k + block.size] for k, weight in enumerate(weights))

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


a = normal("N", spec=P("x"))
WEIGHTS = (-0.5, 2.0, 0.25, 1.0, -3.0)
narrow = exercise.call(halo, a=a, static={"w": 1}, dims={"N": 120}, hidden_dims={"N": 200})
wide = exercise.call(halo, a=a, static={"w": 3}, dims={"N": 120}, hidden_dims={"N": 200})
derived = exercise.call(stencil, a=a, static={"weights": (-1.0, 0.0, 1.0)}, dims={"N": 120}, hidden_dims={"N": 280})
weighted = exercise.call(stencil, a=a, static={"weights": WEIGHTS}, dims={"N": 120}, hidden_dims={"N": 200})


def padded_blocks(a, parts, w):
    """Return the blocks of all devices, each with its halo, one after the other."""
    size = a.size // parts
    return np.concatenate([a[np.arange(i * size - w, (i + 1) * size + w) % a.size] for i in range(parts)])


@exercise.check(narrow, points=0.5, public=True)
def halo_value(seen):
    """halo: one element of each neighbour around every block"""
    blocks = seen.a.reshape(seen.mesh["x"], -1)
    left, right = np.roll(blocks[:, -1:], 1, axis=0), np.roll(blocks[:, :1], -1, axis=0)
    expect_close(seen.out, np.concatenate([left, blocks, right], axis=1).ravel())


@exercise.check(wide, points=0.5, after=halo_value)
def halo_wide(seen):
    """halo: three elements of each neighbour around every block"""
    expect_close(seen.out, padded_blocks(seen.a, seen.mesh["x"], 3))


@exercise.check(wide, points=0.5, after=halo_wide)
def halo_traffic(seen):
    """halo: two permutes over x with w elements each"""
    expect_collectives(seen, permute={"x": 2})
    sent = 2 * 3 * 4
    # a wrong program sends whole blocks
    expect_traffic(seen, at_most=needed(sent, seen.a.size / seen.mesh["x"] / 3 * sent))


@exercise.check(derived, points=0.25, public=True, after=halo_value)
def stencil_value(seen):
    """stencil: the weights (-1, 0, 1) give a[i + 1] - a[i - 1]"""
    expect_close(seen.out, np.roll(seen.a, -1) - np.roll(seen.a, 1))


@exercise.check(weighted, points=0.25, after=[stencil_value, halo_wide])
def stencil_weighted(seen):
    """stencil: five unequal weights"""
    expect_close(seen.out, sum(weight * np.roll(seen.a, 2 - k) for k, weight in enumerate(WEIGHTS)))


@exercise.check(weighted, points=0.5, after=[stencil_weighted, halo_traffic])
def stencil_traffic(seen):
    """stencil: the result is sharded P('x'); two permutes over x with w elements each"""
    expect_spec(seen.out, P("x"))
    expect_collectives(seen, permute={"x": 2})
    expect_traffic(seen, at_most=needed(2 * 2 * 4, 6 * 4))  # a wrong program shifts the array once for each weight


@exercise.number(
    points=0.5,
    unit="KB",
    params={"N": [6144, 8192, 24576], "D": [5120, 7168, 9216], "X": [8, 16, 32], "w": [3, 5, 12]},
    model="1 KB is 1000 bytes",
    hints=[
        "To how many neighbours does a device send, and how many rows to each?",
        "Each device sends w rows up and w rows down. The number of devices does not matter.",
        "bytes that a device sends = 2 neighbours · w rows · D numbers in a row · 4 bytes",
    ],
)
def halo_bytes(N, D, X, w):
    """A grid `A[N_X, D]`, float32[{{ N }}, {{ D }}], is cut into rows over a ring of {{ X }} devices. A stencil reaches {{ w }} rows up
    and {{ w }} rows down. How many KB does each device send in one halo exchange?"""
    return 2 * w * D * 4
