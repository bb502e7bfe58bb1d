"""# H4 FSDP: gather a layer, use it, forget it

Data parallelism keeps the whole model on each device. *Fully sharded* data parallelism keeps 1/N of each layer: a device
gathers a layer where it is used, and forgets it. In the backward pass it gathers the layer again, and the gradient goes
back to the owners: the transpose of an all-gather is a reduce-scatter.

**Task.** Write `fsdp_loss(ws, x)`: x goes through `tanh(x @ w)` for each layer w of `ws[L, D, D]`, in turn; the loss is
the **mean** over all B rows of the batch of the sum of a row's squares. Gradients come from `jax.grad`, cut as `ws` is.

**Budget.** For each layer: one all-gather forward; at most one all-gather and exactly one reduce-scatter backward. A
device never holds more than two whole layers and one whole gradient, beside its 1/N of everything else. Forward, no
gather waits for a product: so the gather of layer l + 1 can run while layer l is multiplied.

```
  forward   gather 0 | gather 1 | gather 2 | gather 3 |
                     | product 0| product 1| product 2| product 3
  backward  gather 3, product 3 twice, scatter dw 3 | gather 2, ...
```

**Small case.** float32, L=6, D=40, dp=4: a layer is 6400 bytes, of which a device has 1600. It sends 4800 bytes in each
gather and 4800 in each reduce-scatter: 6 · 3 · 4800 = 86,400 bytes for a step.

**In time**, as the course's clock lays it out: four layers of float32[4096, 4096] and 16,384 rows on 2x4 v5e chips,
which form a ring; `D` is a product, `k` is other work of the core, `G` is an all-gather and `R` is an all-reduce,
times are in us.

```
ahead: 3,027.999 us, 4 all-gathers, 42% of their time hidden
         │0              │1,000           │2,000
compute  kk         D═════     D═════     D════     D═════k
link dp+ all_gather·all_gather·all_gather·G·········      R
link dp- all_gather·all_gather·all_gather·G·········      R

waiting: 4,074.489 us, 4 all-gathers, 2% of their time hidden
         │0              │1,000           │2,000          │3,000
compute  k          D═════k          D════k          D═════          D═════k
link dp+ all_gather·      all_gather·     all_gather·      G·········      R
link dp- all_gather·      all_gather·     all_gather·      G·········      R
```

**In real systems**: FSDP of PyTorch and MaxText's `fsdp` axis. `jax.checkpoint` forgets what its function made and makes
it again, gathers included, but not before the cotangent is there: whoever wants to gather ahead in the backward pass, too,
writes a `jax.custom_vjp`. Its backward rule ties the second gather to the cotangent, `w, g =
jax.lax.optimization_barrier((w, g))`: a compiler merges two equal gathers, and then the layer is kept. A loop (`lax.scan`) is right as well. Its gathers wait for no product, but compilers seldom
move work from one round to the next.

**Read on.** Rajbhandari et al., *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*, stage 3.

Check your work: shardlings check h4_fsdp
For all exercises of this module: README.md, or shardlings show 08_training
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def fsdp_loss(ws, x, *, mesh):
    """The loss of a batch whose rows are spread over 'dp', as the layers' rows are.

    Args: ws is float32[L, D, D] sharded P(None, 'dp'); x is float32[B, D] sharded P('dp'); mesh has the axis 'dp'.
    Returns: the loss, float32[], whole on every device.
    """
    # TODO: write this function
    raise NotImplementedError("fsdp_loss")


# Question fsdp_forward_times [small, large]
# A forward pass through 8 layers, bfloat16[6144, 6144] each, cut over 8 v5p chips. How long does
# it take with a batch of 12288 rows in all, and of 196608, when each gather waits for the product
# before it (waiting), and when a chip gathers the next layer while it multiplies (ahead)?
#
# Answer with a table, a dict of
# - "waiting": {"small": ..., "large": ...}
# - "ahead": {"small": ..., "large": ...}
# with small in ms, large in ms (bare numbers), or with units. Model: ring: a gather takes V / W,
# W both directions of a link; a product takes its FLOPs at the chip's rate. Hardware: v5p: ICI
# 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on axes that are
# multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16 4.59e14 FLOP/s; hop
# 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
#
fsdp_forward_times = None  # TODO: your answer


# Question fsdp_step_bytes [MB]
# 24 layers of [5120, 5120] weights are cut over 4 chips, gathered in bfloat16, and their
# gradients are scattered in float32. How many MB does a chip send in one step, forward and
# backward?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way rings: X - 1 hops, each of 1/X of what is gathered or scattered; 1 MB is 10^6
# bytes.
fsdp_step_bytes = None  # TODO: your answer
