"""# M1 A transformer block on three axes

One mesh has three axes. dp cuts the batch, sp cuts the positions of each text, and tp cuts the heads and the MLP's
units.

```
   x[B_dp, T_sp, D] --> norm, qkv --> q, k, v of own heads    tp cuts H, F
          |                              k, v: gathered    <-- over sp
          |                           scores, softmax, out
          + <--------------------------- summed            <-- over tp
          +-----------> norm, up, silu, down
          + <--------------------------- summed            <-- over tp

   gradients of parameters: -----------> summed            <-- over dp, sp
```

**Write** two functions of global arrays, each one `jax.shard_map`. Names in capitals and `norm` are given.

| | returns |
|---|---|
| `block(params, x, *, mesh)` | x ← x + attention(norm(x)); then x + MLP(norm(x)) |
| `train_step(params, x, y, *, mesh)` | (p − RATE · g · min(1, LIMIT/‖g‖) for each parameter, loss, ‖g‖) |

Attention is causal by positions in the text, with scores q · k / √d. The MLP of n is `silu(n @ up) @ down`. Arrays are
float32[B, T, D] in layout `ROWS`, parameters in `PARAMS`. The loss is the mean of (block − y)² over all numbers. g is
its gradient, and ‖g‖ is the norm of g over all parameters, each counted once. JAX differentiates `block`: leave
`check_vma` on.

**What is checked**

| check | rule |
|---|---|
| `block` | result and gradients equal those of one device |
| `train_step` | parameters, loss and norm equal those of one device, also in bfloat16 |
| `block`: sent, forward | tp: two all-reduces of a device's rows; sp: K and V of its heads gathered; dp: nothing |
| `block`: sent, backward | tp: as many bytes as forward, and the scales' gradients; sp: twice as many as forward |
| | dp and sp: one all-reduce of a device's parameters over both |
| sent by `train_step` | the forward and backward budgets together |
| its work | the same program at real sizes; at most one more forward pass of matmuls |
| its memory | besides parameters and rows, only scores and their softmax in the dtype of x, no float32 copy |
| its time | v5p:2x2x2, *ideal* clock: at most 2 · matmuls + collectives |

The budget for sp lets you gather K and V again in the backward pass.

**Symbols.** B texts of T positions, D width, H heads of d numbers, F units of the MLP.

**Small case.** B=6, T=12, D=10, 6 heads of 3, dp=tp=sp=2. A device's rows are [3, 6, 10], 720 bytes. An all-reduce
sends 720 bytes, and the forward pass 1440 bytes. K is [3, 6, 3, 3], 648 bytes. Gathering K and V sends 1296 bytes.

Check your work: shardlings check m1_block
For all exercises of this module: README.md, or shardlings show 13_capstone
Going further: below the code
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


ROWS = P("dp", "sp")


PARAMS = {
    "before": P(),  # [D], scale of the norm before attention
    "qkv": P(None, None, "tp"),  # [D, 3, H, d]
    "out": P("tp"),  # [H, d, D]
    "between": P(),  # [D], scale of the norm before the MLP
    "up": P(None, "tp"),  # [D, F]
    "down": P("tp"),  # [F, D]
}


RATE = 0.1


LIMIT = 7.0


leaderboard_name = ""


def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True)) * scale


def block(params, x, *, mesh):
    """Return the block's result, in layout ROWS.

    Args: params, float32 arrays in layouts PARAMS; x float32[B, T, D] in layout ROWS.
    Returns: float32[B, T, D] in layout ROWS.
    """
    # TODO: write this function
    raise NotImplementedError("block")


def train_step(params, x, y, *, mesh):
    """Make one step on the mean squared error, with its gradient clipped.

    Args: params, float32 arrays in layouts PARAMS; x, y float32[B, T, D] in layout ROWS.
    Returns: (new params in layouts PARAMS, the loss, the gradient's norm before clipping); loss and norm are for the
    whole batch.
    """
    # TODO: write this function
    raise NotImplementedError("train_step")


# Question block_times [products, rows, keys, gradients]
# A block has four parts. `products`: a chip's matmuls. `rows`: the all-reduces over tp. `keys`: K
# and V, each gathered once over sp, and their gradients. `gradients`: the parameters' gradients
# over dp and sp. How long does each part take on v5p with dp=8, sp=4, tp=4, b=1, T=40960, D=8192,
# in the forward and backward pass together?
#
# Answer with {"products": ..., "rows": ..., "keys": ..., "gradients": ...}: products in ms, rows
# in ms, keys in ms, gradients in ms (bare numbers), or with units.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over
# two, an all-reduce twice as long; matmuls at the peak rate, with scores of all positions, masked
# or not.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
block_times = None  # TODO: your answer


# Question block_step [ms]
# In a block matmuls wait for rows, K and V, and these wait for matmuls. K and V are gathered
# once. Only the all-reduce of the parameters' gradients overlaps the matmuls of the backward
# pass. How long does a block take on v5p, forward and backward pass together, with dp=8, sp=16,
# tp=4, b=1, T=16384, D=8192?
#
# Answer in ms (a bare number), or with a unit.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over
# two, an all-reduce twice as long; matmuls at the peak rate, with scores of all positions, masked
# or not; the all-reduce of gradients overlaps the backward matmuls, which are two thirds of all;
# nothing else overlaps.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
block_step = None  # TODO: your answer


# Question block_bottleneck [one of A, B, C, D]
# All four parts of a block overlap completely, on v5p with dp=4, sp=4, tp=8, b=1, T=40960,
# D=8192. Which part is the bottleneck?
#
# - A: K and V and their gradients over sp
# - B: the parameters' gradients over dp and sp
# - C: the rows over tp
# - D: the matmuls
# Answer with the letter or the text of one.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over
# two, an all-reduce twice as long; matmuls at the peak rate, with scores of all positions, masked
# or not.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
block_bottleneck = None  # TODO: your answer


# Question block_hides_from [token]
# On v5p, with T=16384 and D=2048: how many positions (b·T/sp) must each device's part of the
# batch have, so that the all-reduce of the parameters' gradients takes no longer than the matmuls
# of the backward pass?
#
# Answer in token (a bare number), or with a unit.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over
# two, an all-reduce twice as long; matmuls at the peak rate, with scores of all positions, masked
# or not.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
block_hides_from = None  # TODO: your answer


# ## Going further
#
# **Real sizes.** The clock times `train_step` in bfloat16 with B=6, T=8192, D=6400, H=50, d=128, F=25600, and similar
# sizes. There the program must equal the program for small arrays in bfloat16, operation by operation, except for sizes.
# A device's scores are [B/dp, H/tp, T/sp, T].
#
# **In time**, as the course's clock lays it out: `train_step` with the sizes above on 2x2x2 v5p chips, an axis of the
# mesh along each; `D` is a matmul, `k` is other work of the core, `G` is an all-gather, `S` is a reduce-scatter and `R`
# is an all-reduce, times are in us.
#
# ```
# the solution: 69,664.54 us, 12 all-reduces, 49% of their time overlapped
#          │0                 │20,000            │40,000             │60,000
# compute  k══kD═k─kD═D  k═══D═══  D═══D════ kD═D═k───k══D═══D════DD══D══D══kk
# link dp+                                                                RRRR
# link dp-                                                                RRRR
# link tp+             R·        R·         R                              R·R
# link tp-             R·        R·         R                              R·R
# link sp+    G     G                                               SS    RRRR
# link sp-    G     G                                               SS    RRRR
# ```
#
# The picture is of the *ideal* profile: every collective runs beside the core. In v5p's own profile only permutes do.
# There these all-reduces, gathers and scatters are fully exposed.
#
# **The leaderboard.** A class may have a leaderboard. It ranks solutions that pass all checks by the clock's
# step time at the sizes above. To take part, set `leaderboard_name`. The page shows only that name. It has at
# most 30 characters: letters, digits, blanks, `-` and `_`. Do not use a person's name.
#
# **In real systems.** Large training runs use such a mesh, often with more axes for pipelines or experts.
#
# **Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training"; Korthikanti et al.,
# *Reducing Activation Recomputation*.
