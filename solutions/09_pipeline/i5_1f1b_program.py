"""# I5 1F1B as a program

GPipe keeps the inputs of M micro-batches. The schedule of exercise I3 keeps at most P inputs. Here you write the
program: in each tick a device does one forward (F) or one backward (B), and sends one array.

```
 tick  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15     P = 4, M = 5
 pp=0 F0  . F1  . F2  . F3 B0 F4 B1  . B2  . B3  . B4
 pp=1  . F0  . F1  . F2 B0 F3 B1 F4 B2  . B3  . B4  .
 pp=2  .  . F0  . F1 B0 F2 B1 F3 B2 F4 B3  . B4  .  .
 pp=3  .  .  . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4  .  .  .
```

Device s has F of micro-batch i in tick s + 2i, and B of micro-batch i in tick 2P − 1 − s + 2i. A device has F in even
ticks and B in odd ticks, or the reverse. At a dot, i is below 0 or above M − 1, and the device computes junk.

**Write** the body `grad_1f1b(ws, x, y)` (`check_vma=False`). `stage` and the loss are those of exercise I2.

| | shape on one device | layout |
|---|---|---|
| `ws` | float32[L/P, D, D] | `P("pp")` |
| `x`, `y` | float32[M, b, D] | whole |
| returns: loss | float32[] | whole |
| gradient of `ws` | as `ws` | `P("pp")` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | loss and gradient are those of one device | |
| ticks | 2 (M + P − 1) ticks, each with at most two permutes; one all-reduce of the loss | 16 ticks |
| memory | on pp=4, M=63: a stash of about P inputs and one tick's arrays; a stash of 4P inputs fails; no more ticks than above, and no more FLOPs than they need | 4 inputs |

On pp=4 the grader's clock also counts ticks: with these small arrays a tick takes as long as its hop, 1 us. Write the
ticks as a loop, because the grader cannot follow unrolled ticks.

Allowed: F and B of two micro-batches in one tick, in M + 2P − 2 ticks with a stash of 2P − 1 inputs. Each tick may copy
the stash.

**Symbols.** P stages, s device, i micro-batch, M micro-batches of b rows, L layers, D width.

**Small case.** P=4, M=5: 2 · 8 = 16 ticks. In tick 6 device 0 holds inputs 0 to 3. B0 in tick 7 frees slot 0, and
F4 in tick 8 takes this slot: `i % P`. Device 3 never holds more than one input.

## Going further

**In time.** All devices run one program, and each waits for its neighbours. So a tick takes as long as the longer of F
and B. B computes the stage again, so it has three times the matmuls of F. Let a unit be the time of an F. The step
takes 2 (M + P − 1) · 3 units, and GPipe's step takes (M + P − 1) · 4 units. The program saves memory, but takes more
time than GPipe. If each device has its own program, 1F1B also takes (M + P − 1) · 4 units.

**Both in one tick.** A program with an F and a B in each tick has M + 2P − 2 ticks of 4 units.

**In real systems.** Megatron and DeepSpeed use 1F1B, with a separate program on each device.

**Read on.** *PipeDream: Generalized Pipeline Parallelism for DNN Training*; *Efficient Large-Scale Language Model
Training on GPU Clusters Using Megatron-LM*.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, axis, like, normal
from grader.hardware import matmul_time

exercise = Exercise(meshes=[{"pp": 4}, {"pp": 3, "dp": 2}], stars=3, extension=True)


@exercise.given
def stage(ws, a):
    """Apply the layers of one device: each scales the rows of a[b, D] to length 1, multiplies by its w, and applies
    tanh."""
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


@exercise.body(
    out_specs=(P(), P("pp")),
    check_vma=False,
    hints=[
        "Write two functions, one for each kind of tick, with the same arguments and results. How does a device choose one of them by the tick's parity?",
        "Use `jax.lax.cond(tick % 2 == me % 2, there, back, ...)`. After F, device s sends to s + 1. After B, it sends to s - 1. So every second "
        "pair of neighbours swaps arrays in one tick, and the other pairs swap arrays in the next tick. Put two ticks into each round of a loop.",
        "mine = (tick - me) // 2, stash.at[mine % n].set(a); and back: mine = (tick - (2 * n - 1 - me)) // 2, "
        "jax.vjp(stage, ws, stash[mine % n]), grads + jnp.where((mine >= 0) & (mine < m), dws, 0)",
    ],
)
def grad_1f1b(ws, x, y):
    """Return the loss and its gradient, in the order of one forward, one backward.

    Args: ws float32[L/P, D, D], the device's layers; x and y float32[M, b, D], all micro-batches.
    Returns: (loss, gradient of ws).
    """
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def there(tick, came, stash, loss, grads):
        mine = (tick - me) // 2
        a = jnp.where(me == 0, x[mine], came)  # for an index above M - 1, JAX reads the last entry of x
        return stage(ws, a), stash.at[mine % n].set(a), loss, grads

    def back(tick, came, stash, loss, grads):
        mine = (tick + me) // 2 + 1 - n
        useful = (mine >= 0) & (mine < m)
        out, pull = jax.vjp(stage, ws, stash[mine % n])
        error = out - y[mine]
        dws, da = pull(jnp.where(me == n - 1, 2 * error / y.size, came))
        loss += jnp.where(useful & (me == n - 1), jnp.sum(error**2) / y.size, 0)
        return da, stash, loss, grads + jnp.where(useful, dws, 0)

    def two_ticks(pair, carry):
        for odd in (0, 1):
            tick = 2 * pair + odd
            made, *kept = jax.lax.cond(tick % 2 == me % 2, there, back, tick, *carry)
            to = [(s, s + 1 if s % 2 == odd else s - 1) for s in range(n)]
            carry = jax.lax.ppermute(made, "pp", [(s, t) for s, t in to if 0 <= t < n]), *kept
        return carry

    begin = jnp.ones(x.shape[1:]), jnp.zeros((n, *x.shape[1:])), 0.0, jnp.zeros_like(ws)
    _, _, loss, grads = jax.lax.fori_loop(0, m + n - 1, two_ticks, begin)
    return jax.lax.psum(loss, "pp"), grads


call = exercise.call(
    grad_1f1b,
    ws=normal("L", "D", "D", spec=P("pp")),
    x=normal("M", "B", "D"),
    y=normal("M", "B", "D"),
    returns=("loss", like("ws")),
    dims={"L": 2 * axis("pp"), "M": 7, "B": 10, "D": 6},
    hidden_dims={"L": axis("pp"), "M": 11, "B": 14, "D": 5},
)


@exercise.number(
    points=0.5,
    unit="MiB",
    params={"M": [20, 28, 44], "P": [4, 8], "T": [2048, 3072], "D": [5120, 8192]},
    model="A stash holds only inputs of stages, in bfloat16. 1 MiB is 2^20 bytes",
    hints=[
        "How many inputs do GPipe and your program keep on each device?",
        "GPipe keeps M inputs. Your program has a stash of P inputs on each device.",
        "(M − P) · 2 bytes · T · D",
    ],
)
def stash_saved(M, P, T, D):
    """A pipeline has {{ P }} stages and {{ M }} micro-batches of {{ T }} tokens. A stage's input is bfloat16[{{ T }}, {{ D }}]. How many MiB
    smaller is your program's stash of P inputs than the stash of GPipe, on each device?"""
    return (M - P) * 2 * T * D


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "M": [16, 20, 32], "P": [4, 8], "T": [2048, 4096], "D": [6144, 8192]},
    model="Only arithmetic counts, at the peak rate. A tick takes as long as a B, which computes the stage again",
    hints=[
        "How many ticks does the program have, and how long does a tick take?",
        "The program has 2 · (M + P − 1) ticks. Each tick takes as long as a B, which computes the stage again and then two gradients: 3 times the forward FLOPs.",
        "2 · (M + P − 1) · 3 · (2 layers · 2 · T · D² FLOPs) / C",
    ],
)
def lock_step_time(chip, M, P, T, D):
    """Your program runs on {{ P }} {{ chip }} chips with {{ M }} micro-batches of {{ T }} tokens, in the order of the grid above. Each stage has
    two layers whose `w` is bfloat16[{{ D }}, {{ D }}]. How long does the program take?"""
    return 2 * (M + P - 1) * 3 * matmul_time(2 * 2 * T * D**2, chip)
