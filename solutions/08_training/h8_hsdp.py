"""# H8 Gradients of hybrid sharding

FSDP cuts the weights over all devices, so every gather crosses the whole cluster. Hybrid sharding (HSDP) uses two mesh
axes. Axis `shard` cuts the weights. *Near* links, which are fast, join the devices along `shard`: a node or a torus
axis. Devices along axis `rep` hold copies of the weights. *Far* links, which are slower, join these devices. Each
device has its own rows of the batch. Devices first sum a gradient over the near links. Then each device sends only its
part of the sum over the far links.

```
   rep 0   shard 0  [ g of my rows ]   reduce-scatter   [ 0 ]       sum
           shard 1  [ g of my rows ]  ------ near --->     [ 1 ]   over rep
   - - - - - - - - - - - - - - - - - - - - - - - - - -    -- far --->
   rep 1   shard 0  [ g of my rows ]                    [ 0 ]      V/S each
           shard 1  [ g of my rows ]                       [ 1 ]
```

**Write** `hsdp_grads(w, x, y, *, mesh)`. The loss is the mean of `(x·w − y)²` over all micro-batches, rows and
columns.

| | shape | layout |
|---|---|---|
| `w` | float32[D, K] | `P("shard")` |
| `x`, `y` | float32[M, B, D], float32[M, B, K] | `ROWS`: rows over (rep, shard) |
| returns: gradient of `w` | float32[D, K] | `P("shard")` |
| the gradient's norm √Σg² | float32[] | whole on every device |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | the gradient of all rows, and its norm, laid out as above | |
| far | a device sends over rep: 2 (R−1)/R · V/S bytes at most, and 32 bytes more for single numbers | 120 + 32 bytes |
| near | over shard: gather `w`, reduce-scatter the gradient; a device sends at most 2 (S−1)/S · V bytes in these two, and 32 bytes in all-reduces of single numbers | 720 + 32 bytes |

So a device has to sum the gradients of all M micro-batches before it sends any gradient.

**Symbols.** V bytes of `w`, R and S sizes of rep and shard, M micro-batches of B rows, D columns of x, K columns of y.

**Small case.** w is float32[24, 5], 480 bytes, on rep=2, shard=4. Near: 3/4 · 480 = 360 bytes for the gather and 360
bytes for the scatter. Far: 2 · 1/2 · 480/4 = 120 bytes. One all-reduce over all eight devices would send 2 · 7/8 · 480
= 840 bytes from each device. This all-reduce crosses rep, so all these bytes would count over rep, too.

## Going further

**In real systems.** PyTorch's HYBRID_SHARD and meshes (dp_replicate, dp_shard) work like this. In such meshes `rep`
runs over the data-centre network between nodes or pods.

**Read on.** Zhao et al., *PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel*, hybrid sharding.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import GPUS

exercise = Exercise(meshes=[{"rep": 2, "shard": 4}, {"rep": 3, "shard": 2}], stars=2, extension=True)

ROWS = exercise.given(P(None, ("rep", "shard")))


@exercise.task(
    hints=[
        "Which part of the whole sum does a device return? How many bytes does this part have?",
        "Reduce-scatter over shard first. A device then holds V/S bytes of the sum. Send only these bytes over rep.",
        "g = psum(psum_scatter(g, 'shard', tiled=True), 'rep') / every; norm = sqrt(psum(sum(g**2), 'shard'))",
    ]
)
def hsdp_grads(w, x, y, *, mesh):
    """Return the gradient of the mean squared error over all micro-batches, and its norm.

    Args: w float32[D, K] sharded P('shard'); x float32[M, B, D], y float32[M, B, K] sharded ROWS.
    Returns: (float32[D, K] sharded P('shard'), a number).
    """

    def local(w, x, y):
        every = y.size * mesh.size
        whole = jax.lax.all_gather(w, "shard", tiled=True)
        g = jnp.zeros_like(whole)
        for x_micro, y_micro in zip(x, y, strict=True):
            g += 2 * x_micro.T @ (x_micro @ whole - y_micro)
        g = jax.lax.psum(jax.lax.psum_scatter(g, "shard", tiled=True), "rep") / every
        return g, jnp.sqrt(jax.lax.psum(jnp.sum(g**2), "shard"))

    specs = {"in_specs": (P("shard"), ROWS, ROWS), "out_specs": (P("shard"), P())}
    return jax.shard_map(local, mesh=mesh, **specs, check_vma=False)(w, x, y)


@exercise.number(
    points=1,
    unit="ms",
    params={"chip": ["H100", "B200"], "M": [3, 7, 13], "R": [2, 8, 12]},
    model="Near: a GPU sends (8-1)/8 of the gradients through its egress. Far: each GPU all-reduces its part with the GPUs that hold this part in the other nodes. It sends 2 (R - 1)/R of the part, for R nodes, through an eighth of its node's egress. The far collective starts after the near collective ends",
    hints=[
        "Which bytes does a GPU send inside its node, and which does it send to other nodes?",
        "Near: each GPU sends 7 / 8 of the gradients' V bytes through its egress. Far: each GPU all-reduces its V / 8 bytes, so it sends 2 · (R − 1) / R · V / 8 bytes through an eighth of its node's egress.",
        "Add the two times. The gradients have V = 2 bytes for each parameter.",
    ],
)
def hsdp_time(chip, M, R):
    """{{ R }} nodes of 8 {{ chip }} sum {{ M }} billion bfloat16 gradients, sharded within a node. First comes the reduce-scatter in the node, then
    the all-reduce between nodes. Bandwidth bounds both collectives. How long do the two collectives take?"""
    row, size = GPUS[chip], 2e9 * M
    return size * 7 / 8 / row.egress + 2 * (R - 1) / R * (size / 8) / (row.node_egress / 8)
