"""# M2 A training step on three axes

A training step takes the gradient of a loss through M1's block, clips it by its norm and updates the parameters.

```
   x, y --> block --> loss --------> g ----> p − RATE·g·min(1, LIMIT/‖g‖)
                       |             |                          ^
            summed over dp, sp   summed over dp, sp             |
                                     +--> squares, summed over tp
```

**Start**: copy the body of your `shard_map` from M1 (in the notebook: M1's cells).

**Write** `train_step(params, x, y, *, mesh)` with `jax.shard_map`. Names in capitals and `norm` are given.

| | shape | layout |
|---|---|---|
| `params` | float32, shapes: see `PARAMS` | `PARAMS` |
| `x`, `y` | float32[B, T, D] | `ROWS` |
| returns: new parameters | as `params` | `PARAMS` |
| loss, ‖g‖ | numbers | whole on every device |

The loss is the mean of (block − y)² over all numbers. g is the gradient of the loss. ‖g‖ is the norm of g before
clipping. New parameters are p − RATE·g·min(1, LIMIT/‖g‖).

**What is checked**

| check | rule |
|---|---|
| loss | the mean over the whole batch |
| norm | over all parameters, each counted once |
| parameters | as on one device after each of three steps with ‖g‖ < LIMIT |
| clipping | norm and parameters as on one device after a step with ‖g‖ > LIMIT |
| tp=4, dp=1 | the four rules above |
| bfloat16 arguments | parameters, loss and norm as above, in the dtype of x |
| sent | the forward and backward budgets of M1 together, and single numbers, all in the dtype of x |
| work | at most the matmul FLOPs of four forward passes (necessary: three), also on sp=6 |
| | the programs for real ("Going further") and small sizes have equal operations |
| memory | a device holds parameters, gradients, rows and at most three arrays of its scores, in the dtype of x |
| time | v5p:2x2x2, profile *ideal*: at most the collectives' time plus twice the matmuls' time |

**Symbols.** B texts of T positions, D width, H heads of d numbers, F units of the MLP. A device's scores: [B/dp, H/tp,
T/sp, T].

**Small case.** Let tp=2. For parameters that tp cuts, the squares of g sum to 3 on one device and 5 on the other. For
`before` and `between`, they sum to 1. So ‖g‖ = √(3 + 5 + 1) = 3 < LIMIT: no clipping. In M1's small case, a step sends
34944 bytes over tp, 1152 over sp, 185472 over dp and sp together.

Check your work: shardlings check m2_train_step
Notes on all exercises of this module: see README.md, or run shardlings show 13_capstone
The text "Going further" is below the code.
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


LIMIT = 30.0


leaderboard_name = ""


def norm(x, scale):
    """Return each row of x divided by its root mean square, times scale."""
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True)) * scale


def train_step(params, x, y, *, mesh):
    """Make one step on the mean squared error, with its gradient clipped. Start from your block of M1.

    Args: params, float32 arrays in layouts PARAMS; x, y float32[B, T, D] in layout ROWS.
    Returns: (new params in layouts PARAMS, the loss, the gradient's norm before clipping); loss and norm are for the
    whole batch.
    """
    # TODO: write this function
    raise NotImplementedError("train_step")


# Question block_step [short, long]
# In a block, matmuls wait for the collectives of rows, K and V, and these collectives wait for
# matmuls. K and V are gathered once. Only the all-reduce of the parameters' gradients overlaps
# the matmuls of the backward pass. How long does a block take on v5p, forward and backward pass
# together, with dp=4, sp=16, tp=4, b=1, D=8192? `short`: texts of T=2048. `long`: texts of
# T=40960.
#
# Answer with {"short": ..., "long": ...}. Give bare numbers (short in ms, long in ms), or numbers
# with units.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over
# two axes, and an all-reduce takes twice as long; matmuls run at the peak rate; scores of all
# positions count, masked or not; the all-reduce of gradients overlaps the backward matmuls, which
# are two thirds of all matmuls; nothing else overlaps.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
block_step = None  # TODO: your answer


# Question block_overlaps_from [token]
# On v5p, with T=16384 and D=2048: how many positions (b·T/sp) must a device have at least, so
# that the all-reduce of the parameters' gradients takes no longer than the matmuls of the
# backward pass?
#
# Answer in token (a bare number), or with a unit.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over
# two axes, and an all-reduce takes twice as long; matmuls run at the peak rate; scores of all
# positions count, masked or not.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
block_overlaps_from = None  # TODO: your answer


# ## Going further
#
# **Real sizes.** The grader's clock times `train_step` in bfloat16 with B=6, T=8192, D=6400, H=50, d=128, F=25600, and
# similar sizes. The program at these sizes must equal the program for small arrays in bfloat16, operation by operation,
# except for sizes.
#
# **In time.** The grader's clock computes the times of this picture for `train_step` with the sizes above on 2x2x2 v5p
# chips, with one mesh axis along each dimension of the slice. It uses the profile *ideal*: every collective can run
# beside the core. In the picture `D` is a matmul, `k` is other work of the core, `G` is an all-gather, `S` is a
# reduce-scatter and `R` is an all-reduce; times are in us.
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
# In v5p's own profile only permutes run beside the core, so the all-reduces, gathers and scatters above are fully
# exposed.
#
# **The leaderboard.** A class may have a leaderboard. The leaderboard ranks the solutions that pass all checks by their
# step time, which the grader's clock computes at the sizes above. To take part, set `leaderboard_name`. The page shows
# only this name. The name has at most 30 characters: letters, digits, blanks, `-` and `_`. Do not use a person's name.
#
# **Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training"; Pascanu et al., *On the
# difficulty of training recurrent neural networks* (clipping by the norm).
