"""# I5 1F1B as a program

GPipe keeps the inputs of M micro-batches. I3's schedule keeps P at most, since each goes back as soon as it can. Here
it runs.

**Task.** Write the gradient of a pipeline as a body for `shard_map` (wrapped for you, with `check_vma=False`), in the
order of this grid. In each tick a device goes there with one micro-batch (F) or back with one (B), and hands on one
array:

```
 tick  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15     P = 4, M = 5
 pp=0 F0  . F1  . F2  . F3 B0 F4 B1  . B2  . B3  . B4
 pp=1  . F0  . F1  . F2 B0 F3 B1 F4 B2  . B3  . B4  .
 pp=2  .  . F0  . F1 B0 F2 B1 F3 B2 F4 B3  . B4  .  .
 pp=3  .  .  . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4  .  .  .
```

Device s has F of micro-batch i in tick s + 2i, and B of it in tick 2P − 1 − s + 2i: one of them in even ticks, the
other in odd ones. In the dots there is such an i as well, below 0 or above M − 1; what is computed then is junk.

`stage`, the loss and the devices' layers are those of I2. Return the loss and the gradient of the device's layers.

**Budget.** 2 (M + P − 1) ticks, as a loop: a program that writes out every tick is too long to be followed. Permutes
only, two in a tick at most, and one all-reduce of the loss. The stash does not grow with M: P inputs are enough. M is
63 where memory is checked, and a stash of M inputs fails. The arrays that are checked are so small that on P = 4 chips a tick takes the 1 us of its hop, by the course's
clock: it counts your ticks.

**Small case.** On P = 4, device 0 holds the inputs of micro-batches 0 to 3 in tick 6, and B0 lets go of the first
before F4 comes: slot `i % P` of the stash is free when it is needed. Device 3 never holds more than one.

**In time.** All devices run one program, and each waits for its neighbours: a tick is as long as the longer of F and
B. B computes the stage again, three times the arithmetic of F. So the step takes 2 (M + P − 1) · 3 units, GPipe's (M
+ P − 1) · 4: here memory is paid for with time. Devices with programs of their own need (M + P − 1) · 4 for 1F1B,
too.

**Beyond.** F and B in one tick, each of another micro-batch: M + 2P − 2 ticks of 4 units, and a stash of 2P − 1
inputs. That is allowed, and so is a copy of such a stash in each tick.

**In real systems** 1F1B is Megatron's and DeepSpeed's schedule, each device with a program of its own.

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
    """The layers of one device: each brings the rows of a[b, D] to length 1, multiplies by its w, and takes tanh."""
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


@exercise.body(
    out_specs=(P(), P("pp")),
    check_vma=False,
    hints=[
        "Write two functions, for a tick of each kind, that take and return the same things. A device chooses by the tick's parity.",
        "`jax.lax.cond(tick % 2 == me % 2, there, back, ...)`. Who goes there sends to s + 1, who goes back to s - 1: in a "
        "tick two neighbours swap, in the next each with the other one. So two ticks make a round of a loop.",
        "mine = (tick - me) // 2, stash.at[mine % n].set(a); and back: mine = (tick - (2 * n - 1 - me)) // 2, "
        "jax.vjp(stage, ws, stash[mine % n]), grads + jnp.where((mine >= 0) & (mine < m), dws, 0)",
    ],
)
def grad_1f1b(ws, x, y):
    """The loss and its gradient, one forward, one backward.

    Args: ws float32[L/P, D, D], the device's layers; x and y float32[M, b, D], all micro-batches.
    Returns: (loss, gradient of ws).
    """
    n, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]

    def there(tick, came, stash, loss, grads):
        mine = (tick - me) // 2
        a = jnp.where(me == 0, x[mine], came)  # beyond its end, JAX reads the last of x
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
    model="bfloat16; a stash holds the inputs of stages and nothing else; 1 MiB is 2^20 bytes",
)
def stash_saved(M, P, T, D):
    """{{ P }} stages, {{ M }} micro-batches of {{ T }} tokens, a stage's input is bfloat16[{{ T }}, {{ D }}]. How many MiB smaller than
    the stash of GPipe is that of your program, on each device?"""
    return (M - P) * 2 * T * D


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v4p", "v5p"], "M": [12, 20, 32], "P": [4, 8], "T": [2048, 4096], "D": [6144, 8192]},
    model="arithmetic at the peak rate and nothing else; a tick is as long as a B, which computes the stage again",
)
def lock_step_time(chip, M, P, T, D):
    """Your program on {{ P }} {{ chip }} chips: {{ M }} micro-batches of {{ T }} tokens, each stage two layers whose `w` is
    bfloat16[{{ D }}, {{ D }}]. How long does it take?"""
    return 2 * (M + P - 1) * 3 * matmul_time(2 * 2 * T * D**2, chip)
