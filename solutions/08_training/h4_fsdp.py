"""# H4 FSDP: gather a layer, use it, drop it

Data parallelism keeps the whole model on every device. Fully sharded data parallelism (FSDP) keeps 1/N of each layer on
each of N devices. A device gathers a layer just before it uses it, and drops it afterwards. The backward pass gathers
the layer again. A reduce-scatter, the transpose of the all-gather, returns each part of the gradient to its owner.

```
  forward   gather 0 | gather 1 | gather 2 | gather 3 |
                     | matmul 0 | matmul 1 | matmul 2 | matmul 3
  backward  gather 3, two matmuls, scatter dW 3 | gather 2, ...
```

**Write** `fsdp_loss(ws, x, *, mesh)`. For each layer w of `ws` compute x ← tanh(x @ w). Then add the squares of each
row. The loss is the **mean** of these B sums. The grader takes gradients with `jax.grad`.

| | shape | layout |
|---|---|---|
| `ws` | float32[L, D, D] | `P(None, "dp")`: D/N rows of every layer on each device |
| `x` | float32[B, D] | `P("dp")`: B/N rows on each device |
| returns: loss | float32[] | whole on every device |
| gradient of `ws` | float32[L, D, D] | `P(None, "dp")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| loss, gradient | equal to the loss and gradient of the whole batch; gradients cut as `ws` | |
| forward pass | one all-gather per layer, of that layer only | 6 · 4800 bytes |
| backward pass | per layer at most one all-gather, exactly one reduce-scatter | 12 · 4800 bytes |
| memory | on dp=8: besides its own parts and activations, a device holds at most two gathered layers and one layer's whole gradient; forward and backward pass send no more than the two rows above allow | |
| order | forward pass: no gather waits for a matmul, so gather l + 1 can overlap matmul l | |

Allowed: `lax.scan`, `jax.checkpoint`, `jax.custom_vjp`, keeping activations, and all-reduces of single numbers.

**Symbols.** L layers, D width, B rows in the batch, N devices along dp (in the questions: X).

**Small case.** L=6, D=40, dp=4. A layer has 6400 bytes; a device owns 1600 of these bytes. In a gather a device sends
1600 bytes in each of three hops: 4800 bytes. A reduce-scatter sends 4800 bytes, too. A step has two gathers and one
reduce-scatter for each layer, so a device sends 6 · 3 · 4800 = 86,400 bytes.

## Going further

**In time.** The grader's clock computes the times of this picture for four layers of float32[4096, 4096] and 16,384
rows on 2x4 v5e chips, which form a ring. It uses the profile *ideal*: every collective can run beside the core. In
the picture `D` is a matmul, `k` is other work of the core, `G` is an all-gather and `R` is an all-reduce; times are
in us.

```
ahead: 3,027.999 us, 4 all-gathers, 42% of their time overlapped
         │0              │1,000           │2,000
compute  kk         D═════     D═════     D════     D═════k
link dp+ all_gather·all_gather·all_gather·G·········      R
link dp- all_gather·all_gather·all_gather·G·········      R

waiting: 4,074.489 us, 4 all-gathers, 2% of their time overlapped
         │0              │1,000           │2,000          │3,000
compute  k          D═════k          D════k          D═════          D═════k
link dp+ all_gather·      all_gather·     all_gather·      G·········      R
link dp- all_gather·      all_gather·     all_gather·      G·········      R
```

In v5e's own profile all-gathers also run beside the core.

**In real systems.** PyTorch's FSDP and MaxText's axis `fsdp` work like this.

**Gathering again.** `jax.checkpoint` drops the values that its function computed. The backward pass repeats the gathers
and computes these values again, but only when the cotangent is ready. To gather ahead in the backward pass too, write a
`jax.custom_vjp`. A compiler merges two equal gathers and then keeps the layer. So the backward rule ties the second
gather to the cotangent g that the rule receives: `w, g = jax.lax.optimization_barrier((w, g))`.

**Loops.** `lax.scan` is right as well: its gathers wait for no matmul. But a program of the TPU compiler (libtpu
0.0.42.1) finishes a round of a loop before it starts the next round. A gather in the loop then overlaps no matmul of
the previous round.

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
        "`jax.checkpoint` keeps the inputs of a function and none of its intermediate values: put the gather into the function.",
        "layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ jax.lax.all_gather(w, 'dp', tiled=True)))",
    ]
)
def fsdp_loss(ws, x, *, mesh):
    """Return the loss of the whole batch; 'dp' cuts its rows and the rows of each layer.

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
    dims={"L": 6, "D": 40, "B": 64},
    hidden_dims={"L": 7, "D": 88, "B": 72},
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
    model="A gather on a ring takes V / W, where W is the both-way bandwidth of a link. A matmul runs at the chip's peak rate",
    hints=[
        "Which steps can run at the same time in each of the two programs?",
        "Waiting: every layer takes the time of its gather plus the time of its matmul. Ahead: the gather of layer l + 1 overlaps matmul l; the first gather and the last matmul overlap nothing.",
        "ahead = gather + (L − 1) · (longer of gather and matmul) + matmul. A chip multiplies 1 / X of the batch's rows.",
    ],
)  # fmt: skip
def fsdp_forward_times(chip, L, D, X, small, large):
    """A forward pass goes through {{ L }} layers of bfloat16[{{ D }}, {{ D }}], cut over {{ X }} {{ chip }} chips. In row "waiting" of the answer each gather
    waits for the matmul before it. In row "ahead" a chip gathers the next layer during a matmul. How long does the forward pass take
    with a batch of {{ small }} rows in all (`small`), and with {{ large }} rows (`large`)?"""
    gather = all_gather_time(2 * D * D, X, chip)
    times = {"waiting": {}, "ahead": {}}
    for name, rows in (("small", small), ("large", large)):
        matmul = matmul_time(2 * rows / X * D * D, chip)
        times["waiting"][name] = L * (gather + matmul)
        times["ahead"][name] = gather + (L - 1) * max(gather, matmul) + matmul
    return times


@exercise.number(
    points=0.5,
    unit="MB",
    params={"L": [24, 40], "D": [3072, 5120], "X": [4, 8, 16]},
    model="Rings are one-way. A collective takes X - 1 hops, and each hop sends 1/X of the gathered or scattered array. 1 MB is 10^6 bytes",
    hints=[
        "How often does each layer's weight travel in a step, and in which dtype?",
        "Each layer has two gathers in bfloat16 (forward and backward) and one reduce-scatter in float32. Each collective sends (X − 1) / X of the array.",
        "L · D² · (2 + 2 + 4) bytes · (X − 1) / X",
    ],
)
def fsdp_step_bytes(L, D, X):
    """{{ L }} layers of [{{ D }}, {{ D }}] weights are cut over {{ X }} chips. The chips gather them in bfloat16 and scatter their gradients in float32. How
    many MB does a chip send in one step, in the forward and backward pass together?"""
    return L * D * D * (2 + 2 + 4) * (X - 1) / X
