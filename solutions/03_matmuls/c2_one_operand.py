"""# C2 One operand cut along the contracting dimension

In `A[I, J_X] · B[J, K]` only `A` is cut along `J`, the dimension over which the matmul sums. `B` is whole on every
device, and `C` must be whole too. You can gather `A` and multiply, or you can take the matching rows of `B`, multiply,
and sum over devices.

```
   A[I, J_X]         B[J, K]     gather first   A[I, J_X] --all-gather--> A,
  +----+----+       +-------+                   C = A · B
  | x0 | x1 |   ·   | rows0 |
  +----+----+       | rows1 |    slice first    device x slices B: free,
                    +-------+                   A_x · B_x = C{U_X}
                                                C{U_X} --all-reduce--> C
```

**Write** `matmul_gather_first(a, b, *, mesh)` and `matmul_slice_first(a, b, *, mesh)`, both with `jax.shard_map`.

| | shape | layout |
|---|---|---|
| `a` | float32[I, J] | `P(None, "x")`, a block is [I, J/X] |
| `b` | float32[J, K] | whole on every device |
| returns | float32[I, K] | whole on every device |

**What is checked**

| function | check | rule, per device | small case |
|---|---|---|---|
| both | C equals A @ B on every device | | |
| both | in `shard_map`; C is whole on every device | `P()` | |
| gather first | one all-gather of A over x and no other collective | a device sends at most 4·I·J·(1 − 1/X) bytes | 2304 bytes |
| slice first | one all-reduce over x and no other collective | | 5760 bytes |
| slice first | 1/X of the FLOPs | at most 2·I·J·K / X | 15,360 FLOPs |

After an all-gather `shard_map` cannot see that all devices hold the same value, so `out_specs=P()` needs
`check_vma=False`. After `psum`, `shard_map` can see this.

**Symbols.** I, J, K: dimensions of the matmul. X: devices along x. `{U_X}`: partial sums over x. V: bytes of the array
that is gathered or reduced. W: both-way bandwidth of a link.

**Small case.** I=24, J=32, K=40, float32, x=4. `A` has 3072 bytes: the all-gather sends 3/4 · 3072 = 2304 bytes per
device. `C` has 3840 bytes: the all-reduce sends 2 · 3/4 · 3840 = 5760 bytes, but each device computes only a quarter of
the 61,440 FLOPs.

## Going further

**In real systems.** FSDP gathers first: its weight is the operand that is cut. Slicing first is faster where the result
is small, as in decoding (exercise C5).

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 2 and problem 4.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import (
    expect_close,
    expect_collectives,
    expect_flops,
    expect_shard_map,
    expect_spec,
    expect_traffic,
    needed,
)
from grader.hardware import all_gather_time, all_reduce_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8}], stars=2)


@exercise.task(
    hints=[
        "Which data does a device lack to compute C without the other devices?",
        "A device lacks the other columns of A. One collective brings them and joins them along dimension 1.",
        "a = jax.lax.all_gather(a, 'x', axis=1, tiled=True), then a @ b; out_specs=P(), check_vma=False.",
    ]
)
def matmul_gather_first(a, b, *, mesh):
    """Multiply A[I, J_X] by B[J, K] into C[I, K]: gather A, then multiply.

    Args: a is float32[I, J] sharded P(None, 'x'); b is float32[J, K], whole; mesh has an axis 'x'.
    Returns: float32[I, K], whole on every device.
    """

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b

    specs = (P(None, "x"), P())
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)


@exercise.task(
    hints=[
        "A device holds some columns of A. Which rows of B do these columns multiply?",
        "Cut B's rows over x in in_specs. This costs nothing, because every device holds all of B. The local matmuls give partial sums.",
        "in_specs=(P(None, 'x'), P('x', None)) and jax.lax.psum(a @ b, 'x').",
    ]
)
def matmul_slice_first(a, b, *, mesh):
    """Multiply A[I, J_X] by B[J, K] into C[I, K]: slice B, multiply, all-reduce.

    Args and Returns: as for matmul_gather_first.
    """

    def local(a, b):
        return jax.lax.psum(a @ b, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


arrays = {"a": normal("I", "J", spec=P(None, "x")), "b": normal("J", "K", spec=P())}
DIMS = {"I": 24, "J": 32, "K": 40}
HIDDEN = {"I": 21, "J": 24, "K": 56}
gathered = exercise.call(matmul_gather_first, **arrays, dims=DIMS, hidden_dims=HIDDEN)
sliced = exercise.call(matmul_slice_first, **arrays, dims=DIMS, hidden_dims=HIDDEN)


@exercise.check(gathered, points=1, public=True)
def gather_first_value(seen):
    """matmul_gather_first: C equals A @ B on every device"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(gathered, points=1, after=gather_first_value)
def gather_first_traffic(seen):
    """matmul_gather_first: in shard_map, one all-gather of A over x and no other collective; C is whole on every device"""
    expect_shard_map(seen)
    expect_collectives(seen, all_gather={"x": 1})
    others = 4 * (1 - 1 / seen.mesh["x"])
    expect_traffic(seen, at_most=needed(others * seen.a.size, others * (seen.a.size + seen.b.size)))
    expect_spec(seen.out, P())


@exercise.check(sliced, points=1, public=True)
def slice_first_value(seen):
    """matmul_slice_first: C equals A @ B on every device"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(sliced, points=1, after=slice_first_value)
def slice_first_traffic(seen):
    """matmul_slice_first: in shard_map, one all-reduce over x and no other collective, 1/X of the FLOPs; C is whole on every device"""
    expect_shard_map(seen)
    expect_collectives(seen, all_reduce={"x": 1})
    whole = 2 * seen.a.size * seen.b.shape[1]
    expect_flops(seen, at_most=needed(whole / seen.mesh["x"], whole))
    expect_spec(seen.out, P())


question = {
    "points": 1,
    "unit": "us",
    "params": {"chip": ["v4p", "v5p"], "I": [2048, 3072, 4096], "J": [8192, 14336], "K": [5120, 9216], "X": [4, 8]},
    "model": "ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the bandwidth of a link in both directions",
}


@exercise.number(
    **question,
    hints=[
        "Which array does the collective move, and how large is it when it is whole?",
        "`matmul_gather_first` all-gathers `A`, bfloat16[I, J].",
        "time = V / W with V = 2 · I · J bytes and W the both-way bandwidth",
    ],
)
def gather_first_time(chip, I, J, K, X):
    """In bfloat16, with I={{ I }}, J={{ J }}, K={{ K }} on a ring of {{ X }} {{ chip }} chips: how long does the
    communication of `matmul_gather_first` take?"""
    return all_gather_time(2 * I * J, X, chip)


@exercise.number(
    **question,
    hints=[
        "Which array does the collective of `matmul_slice_first` move?",
        "`matmul_slice_first` all-reduces `C`, bfloat16[I, K]: a reduce-scatter and an all-gather.",
        "time = 2 · V / W with V the bytes of `C` in bfloat16",
    ],
)
def slice_first_time(chip, I, J, K, X):
    """In bfloat16, with I={{ I }}, J={{ J }}, K={{ K }} on a ring of {{ X }} {{ chip }} chips: how long does the
    communication of `matmul_slice_first` take?"""
    return all_reduce_time(2 * I * K, X, chip)
