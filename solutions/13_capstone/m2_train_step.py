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

## Going further

**Real sizes.** The grader's clock times `train_step` in bfloat16 with B=6, T=8192, D=6400, H=50, d=128, F=25600, and
similar sizes. The program at these sizes must equal the program for small arrays in bfloat16, operation by operation,
except for sizes.

**In time.** The grader's clock computes the times of this picture for `train_step` with the sizes above on 2x2x2 v5p
chips, with one mesh axis along each dimension of the slice. It uses the profile *ideal*: every collective can run
beside the core. In the picture `D` is a matmul, `k` is other work of the core, `G` is an all-gather, `S` is a
reduce-scatter and `R` is an all-reduce; times are in us.

```
the solution: 69,664.54 us, 12 all-reduces, 49% of their time overlapped
         │0                 │20,000            │40,000             │60,000
compute  k══kD═k─kD═D  k═══D═══  D═══D════ kD═D═k───k══D═══D════DD══D══D══kk
link dp+                                                                RRRR
link dp-                                                                RRRR
link tp+             R·        R·         R                              R·R
link tp-             R·        R·         R                              R·R
link sp+    G     G                                               SS    RRRR
link sp-    G     G                                               SS    RRRR
```

In v5p's own profile only permutes run beside the core, so the all-reduces, gathers and scatters above are fully
exposed.

**The leaderboard.** A class may have a leaderboard. The leaderboard ranks the solutions that pass all checks by their
step time, which the grader's clock computes at the sizes above. To take part, set `leaderboard_name`. The page shows
only this name. The name has at most 30 characters: letters, digits, blanks, `-` and `_`. Do not use a person's name.

**Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training"; Pascanu et al., *On the
difficulty of training recurrent neural networks* (clipping by the norm).
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import CHIPS, all_gather_time, all_reduce_time, matmul_time

exercise = Exercise(meshes=[{"dp": 2, "tp": 2, "sp": 2}, {"dp": 1, "tp": 4, "sp": 2}], stars=3)
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
RATE = exercise.given(0.1)
LIMIT = exercise.given(30.0)
leaderboard_name = exercise.given("")  # "": not on the leaderboard


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
        "Which devices have copies of a gradient, which have different parts of it, and which have different rows? With check_vma on, which sums does JAX add?",
        "Divide by the count of all numbers, not by the count of one device's numbers. For arrays that tp cuts, sum the squares over tp; count copies once.",
        "norm = sqrt(psum(squares of qkv, out, up and down, 'tp') + squares of before and between); psum(loss, ('dp', 'sp'))",
    ]
)
def train_step(params, x, y, *, mesh):
    """Make one step on the mean squared error, with its gradient clipped. Start from your block of M1.

    Args: params, float32 arrays in layouts PARAMS; x, y float32[B, T, D] in layout ROWS.
    Returns: (new params in layouts PARAMS, the loss, the gradient's norm before clipping); loss and norm are for the
    whole batch.
    """

    def local(params, x, y):
        def loss_of(params):
            return jnp.sum((on_device(params, x) - y) ** 2) / (y.size * mesh.shape["dp"] * mesh.shape["sp"])

        loss, grads = jax.value_and_grad(loss_of)(params)
        squares = {name: jnp.sum(g**2) for name, g in grads.items()}
        whole = squares.pop("before") + squares.pop("between")
        length = jnp.sqrt(jax.lax.psum(sum(squares.values()), "tp") + whole)
        new = jax.tree.map(lambda p, g: p - RATE * g * jnp.minimum(1, LIMIT / length), params, grads)
        return new, jax.lax.psum(loss, ("dp", "sp")), length

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, **specs)(params, x, y)


def times_of(chip, dp, sp, tp, b, T, D):
    """Return the seconds of each part of a block, forward and backward."""
    positions, parameters = b * T / sp, 12 * D**2
    return {
        "matmuls": matmul_time(3 * positions * (2 * parameters + 4 * T * D) / tp, chip),
        "rows": 4 * all_reduce_time(2 * positions * D, tp, chip),
        "keys": 4 * all_gather_time(2 * b * T * D / tp, sp, chip),
        "gradients": all_reduce_time(2 * parameters / tp, dp * sp, chip, axes=2),
    }


BOOK = "rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over two axes, and an all-reduce takes twice as long; matmuls run at the peak rate; scores of all positions count, masked or not"


def overlapped(matmuls, rows, keys, gradients):
    """Return the seconds of a block in which only the communication of gradients overlaps matmuls of the backward pass."""
    return matmuls / 3 + rows + keys + max(matmuls * 2 / 3, gradients)


def step_times(chip, dp, sp, tp, short, long, D, in_time=overlapped):
    """Return the seconds of a block with short and with long texts."""
    return {name: in_time(**times_of(chip, dp, sp, tp, 1, T, D)) for name, T in {"short": short, "long": long}.items()}


@exercise.table(
    points=0.5,
    params={
        "chip": ["v5p"],
        "dp": [4, 8],
        "sp": [8, 16],
        "tp": [4, 8],
        "short": [2048, 4096],
        "long": [32768, 40960],
        "D": [4096, 6144, 8192],
    },
    where=lambda sp, tp, **_: sp != 2 * tp,  # else rows and keys take equally long
    columns={"short": "ms", "long": "ms"},
    model=f"{BOOK}; the all-reduce of gradients overlaps the backward matmuls, which are two thirds of all matmuls; nothing else overlaps",
    hints=[
        "Which parts run one after the other, and which part overlaps another?",
        "Matmuls, rows and keys run one after the other. The all-reduce of gradients overlaps the backward matmuls, which are two thirds of all matmuls.",
        "add these times: matmuls / 3 + rows + keys + the longer of 2 / 3 · matmuls and gradients",
    ],
)
def block_step(chip, dp, sp, tp, short, long, D):
    """In a block, matmuls wait for the collectives of rows, K and V, and these collectives wait for matmuls. K and V are gathered once. Only
    the all-reduce of the parameters' gradients overlaps the matmuls of the backward pass. How long does a block take on
    {{ chip }}, forward and backward pass together, with dp={{ dp }}, sp={{ sp }}, tp={{ tp }}, b=1, D={{ D }}? `short`:
    texts of T={{ short }}. `long`: texts of T={{ long }}."""
    return step_times(chip, dp, sp, tp, short, long, D)


@exercise.number(
    points=0.5,
    unit="token",
    params={"chip": ["v5p"], "T": [4096, 16384, 32768, 40960], "D": [2048, 5120, 6144, 8192]},
    model=BOOK,
    hints=[
        "tp cuts both the gradients and the matmuls, so tp cancels. Which time grows with the positions: the time of the all-reduce, or the time of the matmuls?",
        "Compare the time of the all-reduce, 2 · 2 · 12·D² bytes / (2 W), with the time of the matmuls, two thirds of all FLOPs / C.",
        "24·D² / W = t · (48·D² + 8·T·D) / C",
    ],
)
def block_overlaps_from(chip, T, D):
    """On {{ chip }}, with T={{ T }} and D={{ D }}: how many positions (b·T/sp) must a device have at least, so that the
    all-reduce of the parameters' gradients takes no longer than the matmuls of the backward pass?"""
    return CHIPS[chip].bf16 / CHIPS[chip].ici_both * 3 * D / (6 * D + T)
