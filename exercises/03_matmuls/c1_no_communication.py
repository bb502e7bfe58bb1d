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

Check your work: shardlings check c1_no_communication
Notes on all exercises of this module: see README.md, or run shardlings show 03_matmuls
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def matmul_local(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K_Y].

    Args:
        a: float32[I, J] sharded P('x', None).
        b: float32[J, K] sharded P(None, 'y').
        mesh: the device mesh, with axes 'x' and 'y'.

    Returns:
        float32[I, K] sharded P('x', 'y').
    """
    # TODO: write this function
    raise NotImplementedError("matmul_local")


# Question flops_per_device [GFLOP]
# The matmul `A[I_X, J] · B[J, K_Y]`, with I=8192, J=4096, K=8192, runs on a mesh with three axes,
# x=2, y=8 and z=16. How many GFLOP does each device spend?
#
# Answer in GFLOP (a bare number), or with a unit.
# Model: a matmul of [I, J] by [J, K] costs 2·I·J·K FLOPs.
flops_per_device = None  # TODO: your answer


# ## Going further
#
# **In real systems.** This is the first matmul of a tensor-parallel MLP: the data axis cuts the batch, and the model axis
# cuts `W_in[D, F_Y]`.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 1.
