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
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, array
from grader.hardware import all_gather_time, matmul_time

exercise = Exercise(meshes=[{"dp": 4}, {"dp": 8}], stars=3)


@exercise.helper
def layers(rng, shape):
    return rng.standard_normal(shape) / np.sqrt(shape[-1])


@exercise.task(
    hints=[
        "What does JAX keep for the backward pass when you gather a layer and multiply by it?",
        "`jax.checkpoint` keeps what goes into a function and nothing that is made in it: put the gather into the function.",
        "layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, 'dp', tiled=True)))",
    ]
)
def fsdp_loss(ws, x, *, mesh):
    """The loss of a batch whose rows are spread over 'dp', as the layers' rows are.

    Args: ws is float32[L, D, D] sharded P(None, 'dp'); x is float32[B, D] sharded P('dp'); mesh has the axis 'dp'.
    Returns: the loss, float32[], whole on every device.
    """
    rows = x.shape[0]

    def local(ws, x):
        @jax.checkpoint
        def layer(x, w):
            return jnp.tanh(x @ jax.lax.all_gather(w, "dp", tiled=True))

        for w in ws:
            x = layer(x, w)
        return jax.lax.psum(jnp.sum(x**2) / rows, "dp")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "dp"), P("dp")), out_specs=P())(ws, x)


step = exercise.call(
    fsdp_loss,
    ws=array("L", "D", "D", spec=P(None, "dp"), draw=layers),
    x=array("B", "D", spec=P("dp"), draw=lambda rng, shape: 3 * rng.standard_normal(shape)),
    dims={"L": 6, "D": 40, "B": 8},
    hidden_dims={"L": 7, "D": 88, "B": 24},
    wrt=["ws"],
    returns="loss",
)


@exercise.table(
    points=1,
    columns={"small": "ms", "large": "ms"},
    rows=["waiting", "ahead"],
    params={
        "chip": ["v4p", "v5p"], "L": [6, 8], "D": [6144, 8192], "X": [8, 16],
        "small": [12288, 14336], "large": [131072, 196608],
    },
    model="ring: a gather takes V / W, W both directions of a link; a product takes its FLOPs at the chip's rate",
)  # fmt: skip
def fsdp_forward_times(chip, L, D, X, small, large):
    """A forward pass through {{ L }} layers, bfloat16[{{ D }}, {{ D }}] each, cut over {{ X }} {{ chip }} chips. How long does it take with a batch of
    {{ small }} rows in all, and of {{ large }}, when each gather waits for the product before it (waiting), and when a chip gathers the
    next layer while it multiplies (ahead)?"""
    gather = all_gather_time(2 * D * D, X, chip)
    times = {"waiting": {}, "ahead": {}}
    for name, rows in (("small", small), ("large", large)):
        product = matmul_time(2 * rows / X * D * D, chip)
        times["waiting"][name] = L * (gather + product)
        times["ahead"][name] = gather + (L - 1) * max(gather, product) + product
    return times


@exercise.number(
    points=0.5,
    unit="MB",
    params={"L": [24, 40], "D": [3072, 5120], "X": [4, 8, 16]},
    model="one-way rings: X - 1 hops, each of 1/X of what is gathered or scattered; 1 MB is 10^6 bytes",
)
def fsdp_step_bytes(L, D, X):
    """{{ L }} layers of [{{ D }}, {{ D }}] weights are cut over {{ X }} chips, gathered in bfloat16, and their gradients are scattered in float32. How many
    MB does a chip send in one step, forward and backward?"""
    return L * D * D * (2 + 2 + 4) * (X - 1) / X
