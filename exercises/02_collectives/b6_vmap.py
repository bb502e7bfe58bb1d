"""# B6 vmap when the batch is sharded, too

`centre` below takes from one matrix `A[I_X, J]` the mean of each column. Its rows are cut over x, so that costs one
small all-reduce. Now there is a batch of matrices, and the batch is cut over *another* axis: `A[B_Y, I_X, J]`.

`jax.vmap` makes a function of a batch out of a function of one example, also when there is a `shard_map` inside: the
block gets one more dimension, and so do its specs. What shall they say of the new dimension? "Whole", unless you name
the axis that cuts it: `jax.vmap(f, spmd_axis_name="y")`. And where a spec says "whole" but the array is cut, the
compiler makes it so: it gathers the batch, and all devices along y do the same work.

**Task.** Write `centre_batch`: centre every matrix of the batch.

**Budget.** One all-reduce over x, of the means of your own B/Y examples, and nothing over y. The result is sharded as
the batch was, P('y', 'x').

```
   A[B_Y, I_X, J], B=4, on x0 and x1

                        spmd_axis_name="y"     without it
   y0: examples 0 1     psum over x of 0 1     y0 and y1 swap all they have,
   y1: examples 2 3     psum over x of 2 3     then both psum 0 1 2 3
```

**Small case.** float32[12, 8, 10] on x=4, y=2: a device holds [6, 2, 10]. The means of its 6 examples are 240 bytes; the
all-reduce sends 2 · 3/4 · 240 = 360. Without the name, each device first sends its 480 bytes to the other half of the
batch, and then 720 for the means of all 12. A loop over the 6 examples also sends 360, in six all-reduces instead of one.

**In real systems.** MaxText's pipeline maps one layer over its stages with `spmd_axis_name`: each stage is one example.

**Read on.** JAX's notebook "Manual parallelism with shard_map".

Check your work: shardlings check b6_vmap
For all exercises of this module: README.md, or shardlings show 02_collectives
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def centre(a, *, mesh):
    """One matrix A[I_X, J] without the means of its columns."""

    def centred(a):
        return a - jax.lax.pmean(a.mean(0), "x")

    return jax.shard_map(centred, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)


def centre_batch(a, *, mesh):
    """Centre every matrix of A[B_Y, I_X, J].

    Args: a is float32[B, I, J] sharded P('y', 'x'); mesh has the axes 'x' and 'y'.
    Returns: float32[B, I, J] sharded P('y', 'x').
    """
    # TODO: write this function
    raise NotImplementedError("centre_batch")


# Question batch_gather_time [us]
# `A[B_Y, I_X, J]` is bfloat16[768, 4096, 3072] on v4p chips, x=8, y=12. How long does the all-
# gather of the batch take that a `vmap` without `spmd_axis_name` costs you?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both
# directions of one link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
batch_gather_time = None  # TODO: your answer


# Question looped_latency [us]
# A loop over the examples of a device, with a tiny all-reduce for each: B=96 on rings of x=16,
# y=12. How long do its all-reduces take?
#
# Answer in us (a bare number), or with a unit.
# Model: latency only: 1 us per hop, an all-reduce on a ring of N is 2 ⌊N/2⌋ hops, one all-reduce
# after the other.
looped_latency = None  # TODO: your answer
