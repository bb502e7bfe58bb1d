"""# B5 Collectives with a root

MPI knows collectives in which one device, the *root*, is special. `shard_map` runs the same program on every device
and `jax.lax` has no root, so you make them: a device asks `axis_index` who it is, and masks.

**Task.** Write four bodies for `shard_map` (it is around them already, with `check_vma=False`; the mesh axis is `x`).
`root` is a Python number. V is the size of a block of [I, K] that every device has.

| body | the root returns | the others return | each device may send |
|---|---|---|---|
| `rooted_broadcast` | its block | the root's block | 2·(N − 1)/N · V |
| `rooted_scatter` | chunk `root` of its rows | device i: chunk i of the root's rows | (N − 1)/N · V |
| `rooted_gather` | all blocks, side by side: [I, N·K] | zeros of this shape | (N − 1) · V |
| `rooted_reduce` | the sum of all blocks | zeros of this shape | 2·(N − 1)/N · V |

```
   root = 1         broadcast     scatter      gather          reduce
   x0: a = a0 a1    x0: b         x0: b0       x0: 0 0         x0: 0
   x1: b = b0 b1    x1: b         x1: b1       x1: a b         x1: a+b
```

A sum to which only the root contributes *is* the root's value: mask with `jnp.where`, then add. Which collective adds
and leaves every device with its chunk only?

**Budget.** The bytes in the table: one collective each. They are what one program for all devices costs, not what MPI
pays: the others send zeros as diligently as the root sends data.

**Small case.** float32, x=4, blocks of [40, 20], V = 3200 bytes: the broadcast sends 4800 bytes per device, the scatter
2400, the gather 9600, the reduce 4800.

**In real systems.** Rooted calls are rare in sharded training, where all devices do the same work: a checkpoint is
broadcast from the host that read it, metrics are reduced to the one that logs them.

**Read on.** The MPI standard, chapter "Collective Communication"; `jax.lax` parallel operators.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_reduce_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}], stars=2)


@exercise.body(
    out_specs=P(),
    hints=[
        "Which collective gives all devices the same value?",
        "If all devices but the root contribute zeros, the sum over x is what the root has.",
        "jax.lax.psum(jnp.where(jax.lax.axis_index('x') == root, a, 0), 'x')",
    ],
)
def rooted_broadcast(a, *, root):
    """The block of device `root`, on every device."""
    return jax.lax.psum(jnp.where(jax.lax.axis_index("x") == root, a, 0), "x")


@exercise.body(
    out_specs=P("x"),
    hints=[
        "It is a broadcast of which every device keeps one chunk. Is there a collective that sends no more than that?",
        "Mask as in the broadcast; then a collective that adds and leaves device i with chunk i of the rows.",
        "jax.lax.psum_scatter(masked, 'x', scatter_dimension=0, tiled=True)",
    ],
)
def rooted_scatter(a, *, root):
    """Chunk i of the rows of the root's block, on device i."""
    mine = jnp.where(jax.lax.axis_index("x") == root, a, 0)
    return jax.lax.psum_scatter(mine, "x", scatter_dimension=0, tiled=True)


@exercise.body(
    out_specs=P("x"),
    hints=[
        "All devices run the same program: gather first, and then ask who you are.",
        "all_gather along dimension 1, then zeros for everybody but the root.",
        "jnp.where(jax.lax.axis_index('x') == root, jax.lax.all_gather(a, 'x', axis=1, tiled=True), 0)",
    ],
)
def rooted_gather(a, *, root):
    """All blocks side by side on device `root`, zeros on the others."""
    whole = jax.lax.all_gather(a, "x", axis=1, tiled=True)
    return jnp.where(jax.lax.axis_index("x") == root, whole, 0)


@exercise.body(
    out_specs=P(None, "x"),
    hints=[
        "Who shall have the sum, and what do the others return?",
        "psum first, then zeros for everybody but the root.",
        "jnp.where(jax.lax.axis_index('x') == root, jax.lax.psum(a, 'x'), 0)",
    ],
)
def rooted_reduce(a, *, root):
    """The sum of all blocks on device `root`, zeros on the others."""
    return jnp.where(jax.lax.axis_index("x") == root, jax.lax.psum(a, "x"), 0)


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 8192], "K": [6144, 10240, 14336], "X": [8, 16]},
    model="ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both directions of one link",
)
def rooted_broadcast_time(chip, I, K, X):
    """The root's block is bfloat16[{{ I }}, {{ K }}], on a ring of {{ X }} {{ chip }} chips. How long does
    `rooted_broadcast` take as a masked all-reduce?"""
    return all_reduce_time(2 * I * K, X, chip)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [4096, 8192], "K": [3072, 5120], "X": [4, 8, 16]},
    model="one-way ring, a reduce-scatter of X - 1 hops, all devices together; 1 MB is 10^6 bytes",
)
def rooted_scatter_bytes(I, K, X):
    """The root scatters its block, float32[{{ I }}, {{ K }}], over {{ X }} devices. How many MB do all of them together send
    in `rooted_scatter`, as a masked reduce-scatter?"""
    return (X - 1) * 4 * I * K
