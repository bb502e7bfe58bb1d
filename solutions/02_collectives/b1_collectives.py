"""# B1 The four collectives

A collective moves data among all devices of a mesh axis. Four collectives carry almost all traffic of sharded training.

```
      all-gather   all-reduce   reduce-scatter   all-to-all
  x0  a -> abc     p -> p+q+r   p -> (p+q+r)_0   a0 a1 a2 -> a0 b0 c0
  x1  b -> abc     q -> p+q+r   q -> (p+q+r)_1   b0 b1 b2 -> a1 b1 c1
  x2  c -> abc     r -> p+q+r   r -> (p+q+r)_2   c0 c1 c2 -> a2 b2 c2
```

**Write** four bodies: functions of the block of one device. The grader wraps them in `shard_map` over mesh axis `x`,
with `check_vma=False`.

| body | you get | you return |
|---|---|---|
| `all_gather_body(a, *, dim)` | a shard of `A`, cut along `dim` | the whole `A` |
| `all_reduce_body(a)` | a partial sum [I, J] | the whole sum [I, J] |
| `reduce_scatter_body(a)` | a partial sum [I, J] | your columns of the sum, [I, J/X] |
| `all_to_all_body(a)` | a shard of `A[I_X, J]`, [I/X, J] | a shard of `A[I, J_X]`, [I, J/X] |

All arrays are float32. In `all_gather_body`, `A` has two or three dimensions, and `dim` may be the last one.

**What is checked**

| body | value | communication | small case, sent per device |
|---|---|---|---|
| `all_gather_body` | every device holds the whole `A`, for `dim=0` and for an array cut along its last dimension | one all-gather over x and no other collective | 960 bytes |
| `all_reduce_body` | every device holds the sum | one all-reduce over x and no other collective | 480 bytes |
| `reduce_scatter_body` | every device holds its columns of the sum | one reduce-scatter over x and no other collective | 240 bytes |
| `all_to_all_body` | every device holds its columns of `A`, not its rows | one all-to-all over x and no other collective | 240 bytes |

**Symbols.** I, J: rows and columns. X: devices along x. `{U_X}`: partial sums over x. V: bytes of the whole array. W:
both-way bandwidth of a link.

**Small case.** x=4; every block is float32[2, 40], 320 bytes. The reduce-scatter sends 3/4 · 320 = 240 bytes. The
all-reduce sends 2 · 240 = 480 bytes: a reduce-scatter, then an all-gather of the chunks of 80 bytes. The all-gather
sends the block three times, 960 bytes.

## Going further

In an all-to-all a chunk travels only to the one device that needs it. On a ring an all-to-all takes a quarter of an
all-gather's time.

**In real systems.** FSDP all-gathers weights. Data parallelism all-reduces gradients. ZeRO reduce-scatters gradients.
An all-to-all brings tokens to their experts.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; `jax.lax` parallel operators.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_to_all_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8}], stars=1)


@exercise.body(
    out_specs=P(),
    hints=[
        "One function of jax.lax joins the shards of all devices.",
        "Give jax.lax.all_gather the mesh axis, the dimension, and the argument that joins shards instead of stacking them.",
        "jax.lax.all_gather(a, 'x', axis=dim, tiled=True)",
    ],
)
def all_gather_body(a, *, dim):
    """Return the whole A, from a shard cut along `dim` over x."""
    return jax.lax.all_gather(a, "x", axis=dim, tiled=True)


@exercise.body(
    out_specs=P(),
    hints=[
        "Which function of jax.lax adds the blocks of all devices?",
        "Use the function for a parallel sum over a mesh axis.",
        "jax.lax.psum(a, 'x')",
    ],
)
def all_reduce_body(a):
    """Return the sum [I, J] of the partial sums [I, J] on all devices of x."""
    return jax.lax.psum(a, "x")


@exercise.body(
    out_specs=P(None, "x"),
    hints=[
        "One function of jax.lax adds the partial sums and leaves each device its part of the sum.",
        "Use jax.lax.psum_scatter. Its scatter_dimension is 0 by default. Like all_gather, it has an argument `tiled`.",
        "jax.lax.psum_scatter(a, 'x', scatter_dimension=1, tiled=True)",
    ],
)
def reduce_scatter_body(a):
    """Return this device's columns of the sum, [I, J_X], from a partial sum [I, J] on every device of x."""
    return jax.lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True)


@exercise.body(
    out_specs=P(None, "x"),
    hints=[
        "Every device sends a part of its block to every other device. Along which dimension do you split, and along which do you join?",
        "Use jax.lax.all_to_all: split the dimension that becomes cut, and concatenate along the dimension that was cut before.",
        "jax.lax.all_to_all(a, 'x', split_axis=1, concat_axis=0, tiled=True)",
    ],
)
def all_to_all_body(a):
    """Return a shard of A[I, J_X], from a shard of A[I_X, J]."""
    return jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=0, tiled=True)


@exercise.number(
    points=1,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 6144, 8192], "J": [8192, 14336], "X": [8, 16]},
    model="ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the bandwidth of a link in both directions",
    hints=[
        "Does every byte go to every device, as in an all-gather?",
        "In an all-to-all each byte goes to one device only. On a ring that sends in both directions the mean distance is a quarter of the ring.",
        "a quarter of the all-gather's time V / W, with V = 2 · I · J bytes",
    ],
)
def all_to_all_on_ring(chip, I, J, X):
    """`A` is bfloat16[{{ I }}, {{ J }}] on a ring of {{ X }} {{ chip }} chips. How long does the all-to-all
    `A[I_X, J] → A[I, J_X]` take?"""
    return all_to_all_time(2 * I * J, X, chip)
