"""# H7 FSDP and tensor parallelism, an axis each

Along x the chips share the batch and keep 1/X of each weight (FSDP). Along y they share the layer's hidden dimension
(tensor parallelism). Weights then travel along x, activations along y, and neither on the other's wires.

**Task.** Write `mlp_2d(a, w_in, w_out)`, `Out[B, D] = tanh(A[B, D] · W_in[D, F]) · W_out[F, D]`, with `jax.shard_map`:

    A[B_X, D_Y], W_in[D_X, F_Y], W_out[F_Y, D_X]  ->  Out[B_X, D_Y]

**Budget**, forward. Over x: each weight is gathered once, the 1/Y of it that is a chip's column of the mesh. Over y: the
activations of a chip's rows are gathered once and reduce-scattered once. Backward, `jax.grad` of that: over x the weights'
gradients are reduce-scattered, over y one all-gather and one reduce-scatter; what was gathered may be gathered again. No
chip multiplies what another one does: 4·B·D·F/(X·Y) FLOPs forward, and at most four times that in all.

```
                    along x, the rows of the mesh      along y, the columns
   A[B_X, D_Y]                                         gather D:  A[B_X, D]
   W_in[D_X, F_Y]   gather D:  W_in[D, F_Y]
                    A[B_X, D] · W_in[D, F_Y] = H[B_X, F_Y]
   W_out[F_Y, D_X]  gather D:  W_out[F_Y, D]
                    tanh(H) · W_out[F_Y, D]  = Out[B_X, D]{U_Y}
   Out[B_X, D_Y]                                       sum, and scatter D
```

`W_in` and `W_out` are cut along x in *D*, so that gathering over x never joins pieces of F. Pieces of F stay apart: each
column of the mesh has its own part of the hidden layer from first to last, and one sum over y at the end.

**Small case.** float32, B=8, D=12, F=20 on x=4, y=2. Over x a chip sends 3/4 of W_in[12, 10] and of W_out[10, 12]: 2 · 360
bytes. Over y it sends 1/2 of A[2, 12] and of Out[2, 12]: 2 · 48 bytes. The weights are larger: more of the chips should
lie along y.

**In real systems**: MaxText's axes `fsdp` and `tensor`, torchtitan's FSDP2 on a `[dp, tp]` mesh. y is the axis with the
shortest wires, since nothing else can be done while activations travel; weights are gathered ahead (H4).

**Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training"; D5 has its bounds.

Check your work: shardlings check h7_fsdp_tp
For all exercises of this module: README.md, or shardlings show 08_training
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def mlp_2d(a, w_in, w_out, *, mesh):
    """tanh(A · W_in) · W_out, whose operands and result are cut by both axes.

    Args: a float32[B, D] sharded P('x', 'y'), w_in float32[D, F] sharded P('x', 'y'), w_out float32[F, D] sharded P('y', 'x').
    Returns: float32[B, D] sharded P('x', 'y').
    """
    # TODO: write this function
    raise NotImplementedError("mlp_2d")


# Question mlp_2d_bytes [x, y]
# B=28672, D=4096, F=36864 in bfloat16, on a mesh of x=4, y=8. How many MB does a chip send along
# each axis in one forward pass of `mlp_2d`?
#
# Answer with {"x": ..., "y": ...}: x in MB, y in MB (bare numbers), or with units.
# Model: one-way rings: N - 1 hops, each of 1/N of what is gathered or scattered; 1 MB is 10^6
# bytes.
mlp_2d_bytes = None  # TODO: your answer


# Question mlp_balance [token]
# The hidden dimension is F=28672, the mesh x=8, y=2. From how many tokens B in the whole batch on
# do the activations' collectives of a forward pass take longer than the weights'?
#
# Answer in token (a bare number), or with a unit.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W on either axis; W is the same
# for both.
mlp_balance = None  # TODO: your answer
