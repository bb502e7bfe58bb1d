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

Check your work: shardlings check m1_block
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


# Question block_times [matmuls, rows, keys, gradients]
# A block has four parts. `matmuls`: a chip's matmuls. `rows`: the all-reduces over tp. `keys`: K
# and V, each gathered once over sp, and the reduce-scatters of their gradients. `gradients`: the
# all-reduce of the parameters' gradients over dp and sp. How long does each part take on v5p with
# dp=8, sp=4, tp=4, b=1, T=65536, D=8192, in the forward and backward pass together?
#
# Answer with {"matmuls": ..., "rows": ..., "keys": ..., "gradients": ...}. Give bare numbers
# (matmuls in ms, rows in ms, keys in ms, gradients in ms), or numbers with units.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over
# two axes, and an all-reduce takes twice as long; matmuls run at the peak rate; scores of all
# positions count, masked or not.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
block_times = None  # TODO: your answer


# Question block_bottleneck [one of A, B, C, D]
# All four parts of a block overlap completely, on v5p with dp=4, sp=4, tp=8, b=1, T=40960,
# D=8192. Which part is the bottleneck?
#
# - A: the matmuls
# - B: K and V and their gradients over sp
# - C: the parameters' gradients over dp and sp
# - D: the rows over tp
# Answer with the letter or the text of one option.
# Model: rings: a gather or reduce-scatter of V bytes takes V / W over one axis and V / 2W over
# two axes, and an all-reduce takes twice as long; matmuls run at the peak rate; scores of all
# positions count, masked or not.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; bf16 4.59e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
block_bottleneck = None  # TODO: your answer


# ## Going further
#
# **In real systems.** Large training runs use such a mesh, often with more axes for pipelines or experts.
#
# **Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training"; Korthikanti et al.,
# *Reducing Activation Recomputation*.
