"""# B4 Halo exchange

A stencil computes each element from its neighbours. If x cuts the array, only elements near a cut need data of another
device. This data, the halo, comes from the two neighbours on the ring.

```
    w=1      x0  0 1 2 3      x1  4 5 6 7      x2  8 9 10 11
             right-going:  3 -> x1,  7 -> x2,  11 -> x0
             left-going:   0 -> x2,  4 -> x0,   8 -> x1
    halo     x0  11|0 1 2 3|4     x1  3|4 5 6 7|8     x2  7|8 9 10 11|0
```

**Write** two functions. The grader wraps `halo` in `shard_map` over x, with `check_vma=False`.

| | arguments | returns |
|---|---|---|
| `halo(a, *, w)`, a body | the device's block, float32[n] | float32[n + 2w]: the last w elements of the left neighbour, the block, the first w elements of the right neighbour |
| `stencil(a, *, mesh, weights)` | the array, float32[N], `P("x")`; a tuple of 2w + 1 floats | float32[N], `P("x")`: `out[i] = Σ_k weights[k] · a[i + k − w]`, k = 0 .. 2w |

**What is checked**

| function | check | small case, w=1 |
|---|---|---|
| `halo` | one element of each neighbour around every block | above |
| `halo` | three elements of each neighbour around every block | |
| `halo` | two permutes over x with w elements each: 2 · w · 4 bytes, and no other collective | 8 bytes |
| `stencil` | the weights (-1, 0, 1) give `a[i + 1] − a[i − 1]` | element 4 becomes 2 |
| `stencil` | five unequal weights | |
| `stencil` | the result is sharded `P("x")`; two permutes over x with w elements each | 8 bytes |

The ring is closed: the first device's left neighbour is the last device. w is at most n. If no pair of `ppermute` names
a device as a target, this device receives zeros, without an error.

**Symbols.** N: elements of the array. n: elements of a block. w: reach of the stencil. X: devices on the ring. D:
columns of a grid.

**Small case.** The weights are (-1, 0, 1) on the array above. Element 4, the first of x1, becomes 5 - 3 = 2 with the 3
from x0. Element 0 becomes 1 - 11 = -10. With a zero in place of the 11, element 0 would become 1.

Check your work: shardlings check b4_halo
Notes on all exercises of this module: see README.md, or run shardlings show 02_collectives
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def halo(a, *, w):
    """A block [n] -> [n + 2w]: w elements of the left neighbour, the block, w elements of the right neighbour."""
    # TODO: write this function
    raise NotImplementedError("halo")


def stencil(a, *, mesh, weights):
    """Return out[i] = sum over k of weights[k] * a[i + k - w], with indices modulo N.

    Args: a is float32[N] sharded P('x'); weights is a tuple of 2w + 1 floats; mesh has an axis 'x'.
    Returns: float32[N] sharded P('x').
    """
    # TODO: write this function
    raise NotImplementedError("stencil")


# Question halo_bytes [KB]
# A grid `A[N_X, D]`, float32[24576, 9216], is cut into rows over a ring of 8 devices. A stencil
# reaches 5 rows up and 5 rows down. How many KB does each device send in one halo exchange?
#
# Answer in KB (a bare number), or with a unit.
# Model: 1 KB is 1000 bytes.
halo_bytes = None  # TODO: your answer


# ## Going further
#
# A device sends 2 · w elements, however large its block is.
#
# **In real systems.** Halos occur in weather models, in convolutions over a cut image, and in sliding-window attention.
#
# **Read on.** `jax.lax.ppermute` in the JAX documentation; *Using MPI* (Gropp, Lusk, Skjellum), the Poisson problem.
