"""# M1 A transformer block on three axes

dp cuts the batch, sp cuts the positions of each text, and tp cuts the heads and the MLP's units.

```
   x[B_dp, T_sp, D] --> norm, qkv --> q, k, v of own heads    tp cuts H, F
          |                              k, v: gathered    <-- over sp
          |                           scores, softmax, out
          + <--------------------------- summed            <-- over tp
          +-----------> norm, up, silu, down
          + <--------------------------- summed            <-- over tp

   gradients of parameters: -----------> summed            <-- over dp, sp
```

**Write** `block(params, x, *, mesh)` with `jax.shard_map`. First x ← x + attention(norm(x)), then x ← x + MLP(norm(x)).
Attention is causal (a position sees no later one), with scores q · k / √d. The MLP of n is `silu(n @ up) @ down`.
`norm`, `ROWS` and `PARAMS` are given. Outside `block`, write the function that `shard_map` runs: exercise M2 starts
from this function.

| | shape | layout |
|---|---|---|
| `params` | float32, shapes: see `PARAMS` | `PARAMS` |
| `x`, result | float32[B, T, D] | `ROWS`: a device has B/dp texts and T/sp of their positions |

JAX differentiates `block`. With `check_vma` on, JAX adds the sums that gradients need.

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | the result equals that of one device | |
| gradients | the gradients equal those of one device | |
| forward, tp | two all-reduces of a device's rows | 16128 bytes |
| forward, sp | K and V of a device's heads are gathered | 384 bytes |
| forward, dp | nothing | |
| backward, tp | at most the forward bytes, plus one all-reduce of the gradients of `before` and `between` | 16128 + 2688 bytes |
| backward, sp | at most twice the forward bytes | 768 bytes |
| backward, dp and sp | one all-reduce of the block's parameter gradients | 185472 bytes |
| work | at most the matmul FLOPs of four forward passes (necessary: three) | |
| sp=4, dp=1 | all rules hold on this mesh too | |

The backward pass may gather K and V again, with `jax.checkpoint` or a barrier as in exercise H4. It may sum the
gradients of `before` and `between` over all three axes at once.

**Symbols.** B texts of T positions, D width, H heads of d numbers, F units of the MLP.

**Small case.** B=6, T=4, D=336, 8 heads of 2 numbers, F=58, dp=tp=sp=2. A device's rows are [3, 2, 336], 8064 bytes. An
all-reduce over tp sends 8064 bytes. K is [3, 2, 4, 2], 192 bytes, and gathering K and V sends 384 bytes. A device has
30912 parameters, 123648 bytes. The all-reduce of their gradients over four devices sends 2 · 3/4 · 123648 bytes.

## Going further

**In real systems.** Large training runs use such a mesh, often with more axes for pipelines or experts.

**Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training"; Korthikanti et al.,
*Reducing Activation Recomputation*.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_gather_time, all_reduce_time, matmul_time

exercise = Exercise(meshes=[{"dp": 2, "tp": 2, "sp": 2}, {"dp": 1, "tp": 2, "sp": 4}], stars=3)
ROWS = exercise.given(P("dp", "sp"))
PARAMS = exercise.given(
    {
        "before": P(),  # [D], scale of the norm before attention
        "qkv": P(None, None, "tp"),  # [D, 3, H, d]
        "out": P("tp"),  # [H, d, D]
        "between": P(),  # [D], scale of the norm before the MLP
        "up": P(None, "tp"),  # [D, F]
        "down": P("tp"),  # [F, D]
    }
)


@exercise.given
def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True)) * scale


def attention(q, k, v):
    """Return attention of a device's own queries, [B/dp, T/sp, H/tp, d], to all positions up to each query's own."""
    k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
    there = jnp.arange(k.shape[1])
    here = jax.lax.axis_index("sp") * q.shape[1] + jnp.arange(q.shape[1])
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(jnp.where(there <= here[:, None], scores, -jnp.inf))
    return jnp.einsum("bhts,bshd->bthd", weights, v)


def on_device(params, x):
    """Return one device's part of the block's result."""
    q, k, v = jnp.einsum("btd,dchk->cbthk", norm(x, params["before"]), params["qkv"])
    x += jax.lax.psum(jnp.einsum("bthk,hkd->btd", attention(q, k, v), params["out"]), "tp")
    hidden = jax.nn.silu(norm(x, params["between"]) @ params["up"])
    return x + jax.lax.psum(hidden @ params["down"], "tp")


@exercise.task(
    hints=[
        "Follow one device. Which of its matmuls give partial sums, and which arrays of other devices does a query need?",
        "Gather k and v over sp; mask by the position in the text, axis_index('sp') * T/sp + row; psum over tp only after `out` and after `down`.",
        "x += psum(einsum('bthk,hkd->btd', attention(q, k, v), params['out']), 'tp'); x + psum(silu(norm(x, ...) @ up) @ down, 'tp')",
    ]
)
def block(params, x, *, mesh):
    """Return the block's result, in layout ROWS.

    Args: params, float32 arrays in layouts PARAMS; x float32[B, T, D] in layout ROWS.
    Returns: float32[B, T, D] in layout ROWS.
    """
    return jax.shard_map(on_device, mesh=mesh, in_specs=(PARAMS, ROWS), out_specs=ROWS)(params, x)


def times_of(chip, dp, sp, tp, b, T, D):
    """Return the seconds of each part of a block, forward and backward."""
    positions, parameters = b * T / sp, 12 * D**2
    return {
        "matmuls": matmul_time(3 * positions * (2 * parameters + 4 * T * D) / tp, chip),
        "rows": 4 * all_reduce_time(2 * positions * D, tp, chip),
        "keys": 4 * all_gather_time(2 * b * T * D / tp, sp, chip),
        "gradients": all_reduce_time(2 * parameters / tp, dp * sp, chip, axes=2),
    }


SIZES = {
    "chip": ["v5p"],
    "dp": [4, 8],
    "sp": [4, 16],
    "tp": [4, 8],
    "b": [1, 2],
    "T": [4096, 16384, 40960],
    "D": [2048, 8192],
}
BOOK = "rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over two axes, and an all-reduce takes twice as long; matmuls run at the peak rate; scores of all positions count, masked or not"


@exercise.table(
    points=1,
    params=SIZES | {"T": [16384, 32768, 65536]},
    where=lambda sp, tp, **_: sp != 2 * tp,  # else rows and keys take equally long
    columns={"matmuls": "ms", "rows": "ms", "keys": "ms", "gradients": "ms"},
    model=BOOK,
    hints=[
        "Which array does each part send? How large is this array when it is whole along the axis, and how often is it sent?",
        "The rows, [b, T/sp, D], have four all-reduces. K and V, [b, T, D/tp] each, have two gathers and two reduce-scatters. The parameters' gradients, 12·D²/tp numbers, have one all-reduce.",
        "n parameters take 3 · 2 · n FLOPs for each position. Scores and sums of V take 3 · 4 · T · D/tp FLOPs for each position.",
    ],
)
def block_times(chip, dp, sp, tp, b, T, D):
    """A block has four parts. `matmuls`: a chip's matmuls. `rows`: the all-reduces over tp. `keys`: K and V, each gathered once over sp, and
    the reduce-scatters of their gradients. `gradients`: the all-reduce of the parameters' gradients over dp and sp. How long does each part take on {{ chip }} with dp={{ dp }}, sp={{ sp }},
    tp={{ tp }}, b={{ b }}, T={{ T }}, D={{ D }}, in the forward and backward pass together?"""
    return times_of(chip, dp, sp, tp, b, T, D)


@exercise.choice(
    points=0.5,
    params=SIZES,
    where=lambda sp, tp, **_: sp != 2 * tp,
    options={
        "matmuls": "the matmuls",
        "rows": "the rows over tp",
        "keys": "K and V and their gradients over sp",
        "gradients": "the parameters' gradients over dp and sp",
    },
    model=BOOK,
    hints=[
        "How long does each of the four parts take?",
        "Compute all four times, as in `block_times`. If all parts run at the same time, the part with the longest time decides.",
        "Compute the four times. The bottleneck is the part with the longest time.",
    ],
)
def block_bottleneck(chip, dp, sp, tp, b, T, D):
    """All four parts of a block overlap completely, on {{ chip }} with dp={{ dp }}, sp={{ sp }}, tp={{ tp }}, b={{ b }}, T={{ T }}, D={{ D }}. Which part is the
    bottleneck?"""
    time = times_of(chip, dp, sp, tp, b, T, D)
    return max(time, key=time.__getitem__)
