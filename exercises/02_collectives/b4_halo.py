"""# B4 Halo exchange

A stencil computes each element from its neighbours. Cut over devices, only the elements near a cut need anything from
another device, and only from the two next to it.

**Task.** `A[N_X]` lives on a ring of devices. Write

- `halo(a, w)`, a body for `shard_map` (wrapped for you, with `check_vma=False`): a block of n elements in, n + 2w out: the
  last w elements of the left neighbour, the block, the first w elements of the right neighbour;
- `stencil(a, *, mesh, weights)`, of the whole array: `out[i] = Σ_k weights[k] · a[i + k - w]` for k = 0 .. 2w, with
  2w + 1 weights.

Everything is periodic: the first device's left neighbour is the last device. w is at most the size of a block.

**Budget.** Two permutes over x and no other collective, w elements each way: with N elements of V bytes in all, a device
sends 2 · w · V/N bytes, however large its block is.

```
    w=1      x0  0 1 2 3      x1  4 5 6 7      x2  8 9 10 11
             right-going:  3 -> x1,  7 -> x2,  11 -> x0
             left-going:   0 -> x2,  4 -> x0,   8 -> x1
    halo     x0  11|0 1 2 3|4     x1  3|4 5 6 7|8     x2  7|8 9 10 11|0
```

**Small case.** The weights (-1, 0, 1) on that array: element 4, the first of x1, becomes 5 - 3 = 2 with the 3 from x0;
element 0 becomes 1 - 11 = -10. With zeros instead of the 11 it would be 1: a device that no pair of a `ppermute` names
as a target receives zeros, and no error.

**In real systems**: weather models, convolutions cut along the image, sliding-window attention.

**Read on.** `jax.lax.ppermute` in the JAX documentation; *Using MPI* (Gropp, Lusk, Skjellum), the Poisson problem.

Check your work: shardlings check b4_halo
For all exercises of this module: README.md, or shardlings show 02_collectives
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def halo(a, *, w):
    """A block [n] -> [n + 2w]: w elements of the left neighbour, the block, w elements of the right neighbour."""
    # TODO: write this function
    raise NotImplementedError("halo")


def stencil(a, *, mesh, weights):
    """out[i] = sum over k of weights[k] * a[i + k - w], periodic.

    Args: a is float32[N] sharded P('x'); weights is a tuple of 2w + 1 floats; mesh has an axis 'x'.
    Returns: float32[N] sharded P('x').
    """
    # TODO: write this function
    raise NotImplementedError("stencil")


# Question halo_bytes [KB]
# A grid `A[N_X, D]`, float32[24576, 9216], is cut into rows over a ring of 8 devices. A stencil
# reaches 5 rows up and 5 rows down. How many KB does each device send in one step?
#
# Answer in KB (a bare number), or with a unit.
# Model: 1 KB is 1000 bytes.
halo_bytes = None  # TODO: your answer
