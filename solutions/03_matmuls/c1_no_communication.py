"""# C1 A matmul without communication

In `A[I_X, J] · B[J, K_Y]` no axis cuts the contracting dimension `J`, over which the matmul sums. Each device holds
whole rows of `A` and whole columns of `B`. So each device can compute its block of `C` without data of other devices.

```
       A[I_X, J]             B[J, K_Y]              C[I_X, K_Y]
     +----------+         +-----+-----+          +-------+-------+
     |    x0    |         |     |     |          | x0 y0 | x0 y1 |
     +----------+    ·    | y0  | y1  |     =    +-------+-------+
     |    x1    |         |     |     |          | x1 y0 | x1 y1 |
     +----------+         +-----+-----+          +-------+-------+
```

**Write** `matmul_local(a, b, *, mesh)` with `jax.shard_map`. It returns `C = A @ B`.

| | shape | layout | block |
|---|---|---|---|
| `a` | float32[I, J] | `P("x", None)` | [I/X, J] |
| `b` | float32[J, K] | `P(None, "y")` | [J, K/Y] |
| returns | float32[I, K] | `P("x", "y")` | [I/X, K/Y] |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| C equals A @ B | | |
| C is sharded `P("x", "y")` | | |
| no collective | not even one that the compiler adds | 0 bytes |
| inside `shard_map` each device computes only its own block of C | at most an equal share of the 2·I·J·K FLOPs | 3840 FLOPs |

The matmul must be in the body of `shard_map`. One of the grader's meshes has y=1.

**Symbols.** I, J, K: dimensions of the matmul. X, Y, Z: sizes of the mesh axes x, y, z.

**Small case.** I=16, J=24, K=40 on the mesh x=4, y=2. Device (1, 1) multiplies rows 4:8 of `A` by columns 20:40 of `B`.
That is 2 · 4 · 24 · 20 = 3840 FLOPs, an eighth of 2 · 16 · 24 · 40 = 30,720.

## Going further

**In real systems.** This is the first matmul of a tensor-parallel MLP: the data axis cuts the batch, and the model axis
cuts `W_in[D, F_Y]`.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 1.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_flops, expect_no_collectives, expect_shard_map, expect_spec, needed

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8, "y": 1}], stars=1)


@exercise.task(
    hints=[
        "Which row of A and which column of B does one element of C need? Which devices hold this row and this column?",
        "The matmul of the two local blocks is the local block of C.",
        "jax.shard_map(jnp.matmul, mesh=mesh, in_specs=(two specs), out_specs=P('x', 'y'))(a, b)",
    ]
)
def matmul_local(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K_Y].

    Args:
        a: float32[I, J] sharded P('x', None).
        b: float32[J, K] sharded P(None, 'y').
        mesh: the device mesh, with axes 'x' and 'y'.

    Returns:
        float32[I, K] sharded P('x', 'y').
    """

    def local(a, b):
        return a @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "y")), out_specs=P("x", "y"))(a, b)


matmul = exercise.call(
    matmul_local,
    a=normal("I", "J", spec=P("x", None)),
    b=normal("J", "K", spec=P(None, "y")),
    dims={"I": 16, "J": 24, "K": 40},
    hidden_dims={"I": 40, "J": 15, "K": 20},
)


@exercise.check(matmul, points=1, public=True)
def local_value(seen):
    """matmul_local: C equals A @ B"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(matmul, points=0.5, public=True, after=local_value)
def local_layout(seen):
    """matmul_local: C is sharded P('x', 'y')"""
    expect_spec(seen.out, P("x", "y"))


@exercise.check(matmul, points=1, after=local_value)
def local_traffic(seen):
    """matmul_local: no collective"""
    expect_no_collectives(seen)


@exercise.check(matmul, points=0.5, public=True, after=local_value)
def local_flops(seen):
    """matmul_local: inside shard_map each device computes only its own block of C"""
    expect_shard_map(seen)
    work = 2 * seen.a.size * seen.b.shape[1] / (seen.mesh["x"] * seen.mesh["y"])
    expect_flops(seen, at_most=needed(work, 2 * work))


@exercise.number(
    points=1,
    unit="GFLOP",
    params={"I": [2048, 8192], "J": [4096, 6144], "K": [8192, 16384], "X": [2, 16], "Y": [4, 8], "Z": [4, 16]},
    model="a matmul of [I, J] by [J, K] costs 2·I·J·K FLOPs",
    hints=[
        "Which axes cut C, and what do the devices along the other axis compute?",
        "x and y cut C. The devices along z all compute the same block.",
        "FLOPs of a device = 2 · (I / X) · J · (K / Y), in units of 10^9",
    ],
)
def flops_per_device(I, J, K, X, Y, Z):
    """The matmul `A[I_X, J] · B[J, K_Y]`, with I={{ I }}, J={{ J }}, K={{ K }}, runs on a mesh with three axes,
    x={{ X }}, y={{ Y }} and z={{ Z }}. How many GFLOP does each device spend?"""
    return 2 * I * J * K / (X * Y)
