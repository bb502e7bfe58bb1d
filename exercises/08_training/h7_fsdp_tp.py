"""# H7 FSDP on one axis, tensor parallelism on the other

Axis x cuts the batch, and each chip along x keeps 1/X of each weight (FSDP). Axis y cuts the hidden dimension (tensor
parallelism). Weights travel along x and activations along y, so they use different links.

```
                    along x (weights)                  along y (activations)
   A[B_X, D_Y]                                         gather D:  A[B_X, D]
   W_in[D_X, F_Y]   gather D:  W_in[D, F_Y]
                    A[B_X, D] · W_in[D, F_Y] = H[B_X, F_Y]
   W_out[F_Y, D_X]  gather D:  W_out[F_Y, D]
                    tanh(H) · W_out[F_Y, D]  = Out[B_X, D]{U_Y}
   Out[B_X, D_Y]                                       sum, and scatter D
```

Axis x cuts both weights in *D*, so a gather over x never joins parts of F. Chips with the same y keep the same part of
F. One sum over y completes the result.

**Write** `mlp_2d(a, w_in, w_out, *, mesh)` = tanh(A · W_in) · W_out, with `jax.shard_map`. The grader takes
gradients with `jax.grad`.

| | shape | layout |
|---|---|---|
| `a`, returned Out | float32[B, D] | `P("x", "y")` |
| `w_in` | float32[D, F] | `P("x", "y")` |
| `w_out` | float32[F, D] | `P("y", "x")` |

**What is checked**

| check | rule, per chip | small case |
|---|---|---|
| value, gradients | right numbers; gradients laid out as their arrays | |
| weights | in the forward pass `shard_map` sends over x only weights, by gathers: 8DF/Y · (X−1)/X bytes | 720 bytes |
| activations | the forward pass sends over y one gather and one scatter: 8BD/X · (Y−1)/Y bytes | 96 bytes |
| backward pass | it sends at most twice the forward bytes over x, and at most 1.5 times the forward bytes over y | 1440 and 144 bytes |
| both passes | matmuls take at most 15BDF/(XY) FLOPs. (A program needs 12BDF/(XY), or 14BDF/(XY) if it computes H again.) Other operations take at most 2BDF/(XY) FLOPs | 3600 and 480 FLOPs |

Allowed: permutes in place of a collective; gathering weights and activations again in the backward pass.

**Symbols.** B rows, D width, F units of the MLP; X, Y sizes of the mesh axes. `{U_Y}`: unreduced, a partial sum on each
chip along y.

**Small case.** B=8, D=12, F=20 on x=4, y=2. Over x a chip sends 3/4 of W_in[12, 10] and of W_out[10, 12]: 2 · 360
bytes. Over y it sends 1/2 of A[2, 12] and of Out[2, 12]: 2 · 48 bytes. Here the weights send more bytes than the
activations, so a mesh of x=2, y=4 would send fewer bytes.

Check your work: shardlings check h7_fsdp_tp
Notes on all exercises of this module: see README.md, or run shardlings show 08_training
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def mlp_2d(a, w_in, w_out, *, mesh):
    """Return tanh(A · W_in) · W_out. Both axes cut the operands and the result.

    Args: a float32[B, D] sharded P('x', 'y'), w_in float32[D, F] sharded P('x', 'y'), w_out float32[F, D] sharded P('y', 'x').
    Returns: float32[B, D] sharded P('x', 'y').
    """
    # TODO: write this function
    raise NotImplementedError("mlp_2d")


# Question mlp_2d_bytes [x, y]
# `mlp_2d` runs with B=28672, D=4096, F=36864 in bfloat16, on a mesh of x=4, y=8. How many MB does
# a chip send along each axis in one forward pass?
#
# Answer with {"x": ..., "y": ...}. Give bare numbers (x in MB, y in MB), or numbers with units.
# Model: Rings are one-way. A collective over N chips takes N - 1 hops, and each hop sends 1/N of
# the gathered or scattered array. 1 MB is 10^6 bytes.
mlp_2d_bytes = None  # TODO: your answer


# ## Going further
#
# **Backward pass.** `jax.grad` reduce-scatters the weights' gradients over x. Over y it makes one all-gather and one
# reduce-scatter. One more gather of each array is allowed, for a program that did not keep the array.
#
# **In real systems.** MaxText's axes `fsdp` and `tensor` and torchtitan's FSDP2 on a `[dp, tp]` mesh work like this. The
# axis of tensor parallelism gets the shortest wires, because a chip waits while activations travel. Chips gather weights
# ahead of time (exercise H4).
#
# **Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training"; exercise D5 gives the bounds.
