"""# C1 A matmul in which nobody talks

**Task.** With `jax.shard_map`, compute `A[I_X, J] · B[J, K_Y] → C[I_X, K_Y]`. The contracting dimension `J`, the one that
is summed over and that `C` has not, is whole on every device: each can compute its block of `C` from what it holds.

**Budget.** No collective; 2·I·J·K / (X·Y) FLOPs on each device, all of them in the body of `shard_map`.

```
       A[I_X, J]             B[J, K_Y]              C[I_X, K_Y]
     +----------+         +-----+-----+          +-------+-------+
     |    x0    |         |     |     |          | x0 y0 | x0 y1 |
     +----------+    ·    | y0  | y1  |     =    +-------+-------+
     |    x1    |         |     |     |          | x1 y0 | x1 y1 |
     +----------+         +-----+-----+          +-------+-------+
```

**Small case.** I=16, J=24, K=40 on the mesh x=4, y=2: device (1, 1) multiplies rows 4:8 of `A` by columns 20:40 of `B`.
That is 2·4·24·20 = 3840 FLOPs, an eighth of 2·16·24·40 = 30720.

**In real systems**: the first matmul of a tensor-parallel MLP, batch cut over the data axis, `W_in[D, F_Y]` over the
model axis.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 1.

Check your work: shardlings check c1_no_communication
For all exercises of this module: README.md, or shardlings show 03_matmuls
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
# The same matmul, `A[I_X, J] · B[J, K_Y]` with I=8192, J=4096, K=8192, runs on a mesh with three
# axes, x=2, y=8 and z=16. How many GFLOP does each device spend?
#
# Answer in GFLOP (a bare number), or with a unit.
# Model: a matmul of [I, J] by [J, K] costs 2·I·J·K.
flops_per_device = None  # TODO: your answer
