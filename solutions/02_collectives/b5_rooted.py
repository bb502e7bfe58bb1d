"""# B5 Collectives with a root

MPI has collectives in which one device, the *root*, is special. `shard_map` runs one program on every device, and
`jax.lax` has no root. So you build rooted collectives from other collectives: a device asks `axis_index` for its number
and masks its data.

```
   root = 1         broadcast     scatter      gather          reduce
   x0: a = a0 a1    x0: b         x0: b0       x0: 0 0         x0: 0
   x1: b = b0 b1    x1: b         x1: b1       x1: a b         x1: a+b
```

**Write** four bodies with the arguments `(a, *, root)`. The grader wraps them in `shard_map` over mesh axis `x`, with
`check_vma=False`. `a` is the device's block, float32[I, K]. `root` is a Python int.

| body | the root returns | each other device returns |
|---|---|---|
| `rooted_broadcast` | its block, [I, K] | the root's block |
| `rooted_scatter` | chunk number `root` of its rows, [I/N, K] | device i: chunk i of the root's rows |
| `rooted_gather` | all blocks side by side, [I, N·K] | zeros of this shape |
| `rooted_reduce` | the sum of all blocks, [I, K] | zeros of this shape |

**What is checked**

| body | value | bytes from each device, at most | small case |
|---|---|---|---|
| `rooted_broadcast` | every device has the root's block | 2·(N − 1)/N · V | 4800 bytes |
| `rooted_scatter` | device i has chunk i of the root's rows | (N − 1)/N · V | 2400 bytes |
| `rooted_gather` | the root has all blocks, the other devices have zeros | (N − 1) · V | 9600 bytes |
| `rooted_reduce` | the root has the sum, the other devices have zeros | 2·(N − 1)/N · V | 4800 bytes |

The grader also checks each body with another root. If only the root contributes to a sum, the sum is the root's value:
mask with `jnp.where`, then sum over x. Devices that are not the root may send zeros.

**Symbols.** N: devices along x (X in the questions). V: bytes of a block [I, K]. W: both-way bandwidth of a link.

**Small case.** N=4 devices have float32 blocks of [40, 20], V = 3200 bytes. In the broadcast each device sends 2 · 3/4
· 3200 = 4800 bytes, in the scatter 3/4 · 3200 = 2400 bytes.

## Going further

The bytes above are more than MPI sends. All devices run one program here, so in a broadcast or a scatter all devices
but the root send zeros.

**In real systems.** Rooted calls are rare in sharded training, because all devices do equal work. A checkpoint is
broadcast from the host that read it. Metrics are reduced to the host that logs them.

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
        "If all devices but the root contribute zeros, the sum over x is the root's block.",
        "jax.lax.psum(jnp.where(jax.lax.axis_index('x') == root, a, 0), 'x')",
    ],
)
def rooted_broadcast(a, *, root):
    """Return the block of device `root`, on every device."""
    return jax.lax.psum(jnp.where(jax.lax.axis_index("x") == root, a, 0), "x")


@exercise.body(
    out_specs=P("x"),
    hints=[
        "A broadcast would bring all chunks to every device, and a device needs only one chunk. Which collective leaves each device only its chunk?",
        "Mask as in the broadcast. Then call a collective that adds the blocks and leaves device i with chunk i of the rows.",
        "jax.lax.psum_scatter(masked, 'x', scatter_dimension=0, tiled=True)",
    ],
)
def rooted_scatter(a, *, root):
    """Return chunk i of the rows of the root's block, on device i."""
    mine = jnp.where(jax.lax.axis_index("x") == root, a, 0)
    return jax.lax.psum_scatter(mine, "x", scatter_dimension=0, tiled=True)


@exercise.body(
    out_specs=P("x"),
    hints=[
        "All devices run the same program: gather first, then ask axis_index for your number.",
        "Call all_gather along dimension 1, then return zeros on all devices but the root.",
        "jnp.where(jax.lax.axis_index('x') == root, jax.lax.all_gather(a, 'x', axis=1, tiled=True), 0)",
    ],
)
def rooted_gather(a, *, root):
    """Return all blocks side by side on device `root`, zeros on the other devices."""
    whole = jax.lax.all_gather(a, "x", axis=1, tiled=True)
    return jnp.where(jax.lax.axis_index("x") == root, whole, 0)


@exercise.body(
    out_specs=P(None, "x"),
    hints=[
        "Which device returns the sum, and what do the other devices return?",
        "Call psum first, then return zeros on all devices but the root.",
        "jnp.where(jax.lax.axis_index('x') == root, jax.lax.psum(a, 'x'), 0)",
    ],
)
def rooted_reduce(a, *, root):
    """Return the sum of all blocks on device `root`, zeros on the other devices."""
    return jnp.where(jax.lax.axis_index("x") == root, jax.lax.psum(a, "x"), 0)


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 8192], "K": [6144, 10240, 14336], "X": [8, 16]},
    model="ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the bandwidth of a link in both directions",
    hints=[
        "How many bytes does the masked all-reduce send, although all blocks but one are zeros?",
        "A masked all-reduce costs as much as any all-reduce: a reduce-scatter and an all-gather of the block.",
        "time = 2 · V / W with V = 2 · I · K bytes",
    ],
)
def rooted_broadcast_time(chip, I, K, X):
    """The root's block is bfloat16[{{ I }}, {{ K }}], on a ring of {{ X }} {{ chip }} chips. How long does
    `rooted_broadcast` take as a masked all-reduce?"""
    return all_reduce_time(2 * I * K, X, chip)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [4096, 8192], "K": [3072, 5120], "X": [4, 8, 16]},
    model="one-way ring: a reduce-scatter takes X - 1 hops; 1 MB is 10^6 bytes",
    hints=[
        "How many chunks does one device send, and how many bytes has a chunk?",
        "Each device sends (X − 1) chunks of the block. A chunk has 1 / X of the block's bytes.",
        "bytes of all devices = X devices · (X − 1) hops · (4 · I · K / X bytes in a chunk)",
    ],
)
def rooted_scatter_bytes(I, K, X):
    """The root scatters its block, float32[{{ I }}, {{ K }}], over {{ X }} devices. How many MB do all devices together send
    in `rooted_scatter`, as a masked reduce-scatter?"""
    return (X - 1) * 4 * I * K
