"""# H8 Gradients of hybrid sharding

FSDP cuts the weights over all devices, so that every gather crosses the whole cluster. Hybrid sharding (HSDP) uses two axes: weights
are cut over `shard`, which is near (a node, or a torus axis), and every group along `rep`, which is far, holds a copy. All
devices have rows of their own. A gradient is first summed where bytes are cheap, and only what is left goes far.

**Task.** `hsdp_grads(w, x, y)`: w[D, K] is cut over shard; x and y hold M micro-batches, rows cut over (rep, shard). The loss is the
mean of `(x·w − y)²` over all micro-batches, rows and columns. Return (its gradient, cut as w is; the gradient's norm √Σg²).

**Budget.** V is the bytes of w, R and S the sizes of rep and shard. Over shard a device sends (S−1)/S · V to gather w and as many to scatter
the gradient, over rep 2 (R−1)/R · V/S; 32 more on each for single numbers. Micro-batches are summed before anything is sent.

```
   rep 0   shard 0  [ g of my rows ]   reduce-scatter   [ 0 ]       sum
           shard 1  [ g of my rows ]  ------ near --->     [ 1 ]   over rep
   - - - - - - - - - - - - - - - - - - - - - - - - - -    -- far --->
   rep 1   shard 0  [ g of my rows ]                    [ 0 ]      V/S each
           shard 1  [ g of my rows ]                       [ 1 ]
```

**Small case.** float32 w[24, 5], 480 bytes, on rep=2, shard=4: 360 bytes near for the gather, 360 for the scatter, and 120 bytes far.
One all-reduce over all eight devices would send 840 bytes, along rep, too.

**In real systems**: PyTorch's HYBRID_SHARD, and meshes (dp_replicate, dp_shard); `rep` is the data-centre network between nodes or pods.

**Read on.** Zhao et al., *PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel*, hybrid sharding.

Check your work: shardlings check h8_hsdp
For all exercises of this module: README.md, or shardlings show 08_training
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


ROWS = P(None, ("rep", "shard"))


def hsdp_grads(w, x, y, *, mesh):
    """The gradient of the mean squared error over all micro-batches, and its norm.

    Args: w float32[D, K] sharded P('shard'); x float32[M, B, D], y float32[M, B, K] sharded ROWS.
    Returns: (float32[D, K] sharded P('shard'), a number).
    """
    # TODO: write this function
    raise NotImplementedError("hsdp_grads")


# Question hsdp_far_bytes [GB]
# A model of 13 billion parameters trains with HSDP on 8 nodes of 8 GPUs, sharded within a node.
# How many bytes of bfloat16 gradients does each GPU send to other nodes?
#
# Answer in GB (a bare number), or with a unit.
# Model: ring over the nodes: what a device sends of an array it holds is 2 (R-1)/R of it; 1 GB is
# 10^9 bytes.
hsdp_far_bytes = None  # TODO: your answer


# Question hsdp_time [ms]
# 13 billion bfloat16 gradients on 2 nodes of 8 B200, sharded within a node: first the reduce-
# scatter in the node, then the all-reduce between nodes, both bound by bandwidth. How long do the
# two take?
#
# Answer in ms (a bare number), or with a unit.
# Model: near: (8-1)/8 of the gradient at the egress of a GPU; far: its all-reduce, at an eighth
# of the node's egress for each GPU; one after the other.
# Hardware: B200: 900 GB/s out of each GPU into the switch of its node of 8; 400 GB/s out of a
# node; HBM 192 GB at 8.0e12 B/s; bf16 2.3e15 FLOP/s dense; table 2026-11, from How To Scale Your
# Model of 2025-08-18.
hsdp_time = None  # TODO: your answer
