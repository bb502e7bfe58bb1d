"""# C4 One axis cuts the rows of A and the columns of B

In `A[I_X, J] · B[J, K_X]` one axis cuts the rows of `A` and the columns of `B`. The matmul of local blocks gives only
the diagonal blocks of `C`. `C[I_X, K_X]` is not a sharding, because an axis may cut only one dimension. So devices must
gather one operand.

```
   A[I_X, J]    B[J, K_X]    local matmuls    gather B      gather A
   +------+    +----+----+     +----+----+    +-------+    +----+----+
   |  x0  |    |    |    |     | x0 | ?  |    |  x0   |    |    |    |
   +------+  · | x0 | x1 |  =  +----+----+    +-------+    | x0 | x1 |
   |  x1  |    |    |    |     | ?  | x1 |    |  x1   |    |    |    |
   +------+    +----+----+     +----+----+    +-------+    +----+----+
```

**Write** `matmul_keep_rows(a, b, *, mesh)` and `matmul_keep_columns(a, b, *, mesh)`, both with `jax.shard_map`.

| | shape | layout |
|---|---|---|
| `a` | float32[I, J] | `P("x", None)`, a block is [I/X, J] |
| `b` | float32[J, K] | `P(None, "x")`, a block is [J, K/X] |
| returns of `matmul_keep_rows` | float32[I, K] | `P("x", None)` |
| returns of `matmul_keep_columns` | float32[I, K] | `P(None, "x")` |

**What is checked**, for each function

| check | rule, per device | small case |
|---|---|---|
| C equals A @ B | | |
| C is sharded `P("x", None)` (keep rows) or `P(None, "x")` (keep columns) | | |
| in `shard_map`, one all-gather over x, no other collective | | 3840 bytes of `B`, or 2304 bytes of `A` |
| 1/X of the FLOPs | at most 2·I·J·K / X | 15,360 FLOPs |

**Symbols.** I, J, K: dimensions of the matmul. X: devices along x. V: bytes of the array that is gathered. W: both-way
bandwidth of a link.

**Small case.** I=24, J=32, K=40, float32, x=4. A local matmul gives [6, 10], a block of the diagonal: 60 of the 240
elements of a block of rows. The all-gather of `B` sends 3/4 · 32 · 40 · 4 = 3840 bytes per device. The all-gather of
`A` sends 3/4 · 24 · 32 · 4 = 2304 bytes.

## Going further

**In real systems.** In FSDP one axis cuts both the batch and the weights. FSDP gathers the weights.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 4.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_flops, expect_shard_map, expect_spec, needed
from grader.hardware import all_gather_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8}], stars=2)


@exercise.task(
    hints=[
        "Device x must end with whole rows of C. Which part of B does it lack?",
        "Device x lacks the other columns of B. Gather B along dimension 1, then multiply.",
        "local_a @ jax.lax.all_gather(local_b, 'x', axis=1, tiled=True), with out_specs=P('x', None).",
    ]
)
def matmul_keep_rows(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_X] into C[I_X, K].

    Args: a is float32[I, J] sharded P('x', None); b is float32[J, K] sharded P(None, 'x'); mesh has an axis 'x'.
    Returns: float32[I, K] sharded P('x', None).
    """

    def local(a, b):
        return a @ jax.lax.all_gather(b, "x", axis=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


@exercise.task(
    hints=[
        "Device x must end with whole columns of C. Which part of A does it lack?",
        "Device x lacks the other rows of A. Gather A along dimension 0, then multiply.",
        "jax.lax.all_gather(local_a, 'x', axis=0, tiled=True) @ local_b, with out_specs=P(None, 'x').",
    ]
)
def matmul_keep_columns(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_X] into C[I, K_X].

    Args: as for matmul_keep_rows.
    Returns: float32[I, K] sharded P(None, 'x').
    """

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


arrays = {"a": normal("I", "J", spec=P("x", None)), "b": normal("J", "K", spec=P(None, "x"))}
DIMS = {"I": 24, "J": 32, "K": 40}
HIDDEN = {"I": 40, "J": 15, "K": 24}
rows = exercise.call(matmul_keep_rows, **arrays, dims=DIMS, hidden_dims=HIDDEN)
columns = exercise.call(matmul_keep_columns, **arrays, dims=DIMS, hidden_dims=HIDDEN)


@exercise.check(rows, points=1, public=True)
def keep_rows_value(seen):
    """matmul_keep_rows: C equals A @ B"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(rows, points=0.5, after=keep_rows_value)
def keep_rows_layout(seen):
    """matmul_keep_rows: C is sharded P('x', None)"""
    expect_spec(seen.out, P("x", None))


@exercise.check(rows, points=1, after=keep_rows_value)
def keep_rows_budget(seen):
    """matmul_keep_rows: in shard_map, one all-gather over x, no other collective, 1/X of the FLOPs"""
    expect_shard_map(seen)
    expect_collectives(seen, all_gather={"x": 1})
    whole = 2 * seen.a.size * seen.b.shape[1]
    expect_flops(seen, at_most=needed(whole / seen.mesh["x"], whole))


@exercise.check(columns, points=1, public=True)
def keep_columns_value(seen):
    """matmul_keep_columns: C equals A @ B"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(columns, points=0.5, after=keep_columns_value)
def keep_columns_layout(seen):
    """matmul_keep_columns: C is sharded P(None, 'x')"""
    expect_spec(seen.out, P(None, "x"))


@exercise.check(columns, points=1, after=keep_columns_value)
def keep_columns_budget(seen):
    """matmul_keep_columns: in shard_map, one all-gather over x, no other collective, 1/X of the FLOPs"""
    expect_shard_map(seen)
    expect_collectives(seen, all_gather={"x": 1})
    whole = 2 * seen.a.size * seen.b.shape[1]
    expect_flops(seen, at_most=needed(whole / seen.mesh["x"], whole))


@exercise.number(
    points=1,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [2048, 12288], "J": [4096, 7168], "K": [3072, 10240], "X": [4, 8]},
    model="ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the bandwidth of a link in both directions",
    hints=[
        "Which operands can you gather, and how many bytes does each gather move?",
        "Gathering `A` moves I · J numbers, and gathering `B` moves J · K numbers. Gather the smaller operand.",
        "time = V / W with V = 2 bytes · J · (the smaller of I and K)",
    ],
)
def cheaper_gather_time(chip, I, J, K, X):
    """A ring of {{ X }} {{ chip }} chips computes `A[I_X, J] · B[J, K_X]` in bfloat16 with I={{ I }}, J={{ J }}, K={{ K }}.
    You may leave `C` cut by rows or by columns. How long does the cheaper of the two all-gathers take?"""
    return all_gather_time(2 * min(I, K) * J, X, chip)
