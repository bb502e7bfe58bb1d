"""# C3 Both operands cut along the contracting dimension

In `A[I, J_X] · B[J_X, K]` every device holds matching columns of `A` and rows of `B`. The local matmul gives a *partial
sum*, as large as `C` itself. We write `C[I, K]{U_X}`: `C` is unreduced over x. A collective must finish the sum.

```
    A[I, J_X]        B[J_X, K]      C[I, K]{U_X}           C[I, K_X]
   +----+----+      +--------+      on x0 and x1         +----+----+
   | x0 | x1 |   ·  |   x0   |   =   +--------+   --->   | x0 | x1 |
   +----+----+      |   x1   |       | a part |          +----+----+
                    +--------+       +--------+
```

**Write** `matmul_all_reduce(a, b, *, mesh)` and `matmul_reduce_scatter(a, b, *, mesh)`, both with `jax.shard_map`.

| | shape | layout |
|---|---|---|
| `a` | float32[I, J] | `P(None, "x")`, a block is [I, J/X] |
| `b` | float32[J, K] | `P("x", None)`, a block is [J/X, K] |
| returns of `matmul_all_reduce` | float32[I, K] | whole on every device |
| returns of `matmul_reduce_scatter` | float32[I, K] | `P(None, "x")`, a block is [I, K/X] |

**What is checked**

| function | check | small case, sent per device |
|---|---|---|
| `matmul_all_reduce` | C equals A @ B on every device | |
| `matmul_all_reduce` | in `shard_map`, one all-reduce over x and no other collective; C is whole on every device | 5760 bytes |
| `matmul_reduce_scatter` | C equals A @ B | |
| `matmul_reduce_scatter` | C is sharded `P(None, "x")` | |
| `matmul_reduce_scatter` | in `shard_map`, one reduce-scatter over x and no other collective | 2880 bytes |

Keep all arrays in float32.

**Symbols.** I, J, K: dimensions of the matmul. X: devices along x. V: bytes of the whole array `C`. W: both-way
bandwidth of a link.

**Small case.** I=24, J=32, K=40, float32, x=4. Each device multiplies [24, 8] by [8, 40] and holds a partial sum of 24
· 40 · 4 = 3840 bytes. The reduce-scatter sends 3/4 · 3840 = 2880 bytes and leaves a block [24, 10]. The all-reduce
sends twice as many, 5760 bytes.

## Going further

**In real systems.** This is the second matmul of a tensor-parallel MLP. Megatron's MLP ends with the all-reduce. With
sequence parallelism the MLP ends with the reduce-scatter.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 3.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_shard_map, expect_spec
from grader.hardware import reduce_scatter_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8}], stars=2)


@exercise.task(
    hints=[
        "What does the local matmul of the two slices give?",
        "The local matmul gives a partial sum: one collective adds the partial sums of all devices along x.",
        "Inside shard_map: jax.lax.psum(local_a @ local_b, 'x').",
    ]
)
def matmul_all_reduce(a, b, *, mesh):
    """Multiply A[I, J_X] by B[J_X, K] into C[I, K], whole on every device.

    Args: a is float32[I, J] sharded P(None, 'x'); b is float32[J, K] sharded P('x', None); mesh has an axis 'x'.
    Returns: float32[I, K], whole on every device.
    """

    def local(a, b):
        return jax.lax.psum(a @ b, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


@exercise.task(
    hints=[
        "You keep only your own columns of C. Do you need the rest of the sum?",
        "One collective adds the partial sums and leaves each device its part of the sum. By default it cuts dimension 0.",
        "jax.lax.psum_scatter(local_a @ local_b, 'x', scatter_dimension=1, tiled=True)",
    ]
)
def matmul_reduce_scatter(a, b, *, mesh):
    """Multiply A[I, J_X] by B[J_X, K] into C[I, K_X].

    Args: as for matmul_all_reduce.
    Returns: float32[I, K] sharded P(None, 'x').
    """

    def local(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


arrays = {"a": normal("I", "J", spec=P(None, "x")), "b": normal("J", "K", spec=P("x", None))}
DIMS = {"I": 24, "J": 32, "K": 40}
HIDDEN = {"I": 56, "J": 40, "K": 24}
reduced = exercise.call(matmul_all_reduce, **arrays, dims=DIMS, hidden_dims=HIDDEN)
scattered = exercise.call(matmul_reduce_scatter, **arrays, dims=DIMS, hidden_dims=HIDDEN)


@exercise.check(reduced, points=1, public=True)
def reduced_value(seen):
    """matmul_all_reduce: C equals A @ B on every device"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(reduced, points=0.5, after=reduced_value)
def reduced_traffic(seen):
    """matmul_all_reduce: in shard_map, one all-reduce over x and no other collective; C is whole on every device"""
    expect_shard_map(seen)
    expect_collectives(seen, all_reduce={"x": 1})
    expect_spec(seen.out, P())


@exercise.check(scattered, points=1, public=True)
def scattered_value(seen):
    """matmul_reduce_scatter: C equals A @ B"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(scattered, points=0.5, public=True, after=scattered_value)
def scattered_layout(seen):
    """matmul_reduce_scatter: C is sharded P(None, 'x')"""
    expect_spec(seen.out, P(None, "x"))


@exercise.check(scattered, points=1, after=scattered_value)
def scattered_traffic(seen):
    """matmul_reduce_scatter: in shard_map, one reduce-scatter over x and no other collective"""
    expect_shard_map(seen)
    expect_collectives(seen, reduce_scatter={"x": 1})


@exercise.number(
    points=1,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [2048, 3072, 4096], "K": [8192, 14336], "X": [4, 8]},
    model="ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the bandwidth of a link in both directions",
    hints=[
        "What does a reduce-scatter cost, compared with an all-gather of an equal array?",
        "A reduce-scatter costs as much as an all-gather: V / W. V counts the whole array, before it is cut.",
        "time = V / W with V = 2 · I · K bytes and W the both-way bandwidth",
    ],
)
def scatter_time(chip, I, K, X):
    """`C` is bfloat16[{{ I }}, {{ K }}] and is unreduced on a ring of {{ X }} {{ chip }} chips.
    How long does the reduce-scatter to `C[I, K_X]` take?"""
    return reduce_scatter_time(2 * I * K, X, chip)


@exercise.number(
    points=1,
    unit="MB",
    params={"I": [2048, 4096], "K": [6144, 10240], "X": [4, 8]},
    model="one-way ring: a reduce-scatter of X - 1 steps, then an all-gather of X - 1 steps; 1 MB is 10^6 bytes",
    hints=[
        "Which two collectives make an all-reduce?",
        "An all-reduce is a reduce-scatter and an all-gather. In each of the two a device sends X − 1 chunks, and a chunk is 1 / X of the array.",
        "bytes that a device sends = 2 · (X − 1) chunks · (4 · I · K / X bytes in a chunk)",
    ],
)
def all_reduce_bytes(I, K, X):
    """`C` is float32[{{ I }}, {{ K }}], unreduced on {{ X }} devices. How many MB does each device send in the
    all-reduce?"""
    return 2 * 4 * I * K * (X - 1) / X
