"""# W1 A pipeline of micro-batches

P devices in a row hold one layer each. A batch has M micro-batches. In every tick, each device works on one micro-batch
and sends the result to the next device.

**Task.** Write the forward pass. Device s applies `tanh(a @ w[s])` to the micro-batch that arrives and sends the result
to device s + 1. Return float32[P, M, B, D], sharded over `pp`. The last device's part is the result, and all other
parts are zeros.

**Budget.** M + P - 1 ticks, and permutes only. A device does a matmul in every tick, also before useful data arrives: M
of its M + P - 1 matmuls are useful.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, axis, normal
from grader.expect import expect_bubble, expect_close, expect_only, needed

exercise = Exercise(meshes=[{"pp": 4}, {"pp": 2}], stars=3)


@exercise.task(
    hints=["In tick t device s has micro-batch t - s.", "A permute with pairs (s, s + 1): the first device gets zeros."]
)
def gpipe(w, x, *, mesh):
    """w float32[P, D, D] sharded P('pp'), x float32[M, B, D] -> float32[P, M, B, D] sharded P('pp')."""

    def local(w, x):
        stages, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
        onward = [(s, s + 1) for s in range(stages - 1)]
        held, out = jnp.zeros_like(x[0]), jnp.zeros_like(x)
        for tick in range(m + stages - 1):
            made = jnp.tanh(jnp.where(me == 0, x[min(tick, m - 1)], held) @ w[0])
            if tick >= stages - 1:
                out = out.at[tick - stages + 1].set(jnp.where(me == stages - 1, made, 0))
            held = jax.lax.ppermute(made, "pp", onward)
        return out[None]

    return jax.shard_map(local, mesh=mesh, in_specs=(P("pp"), P()), out_specs=P("pp"), check_vma=False)(w, x)


call = exercise.call(
    gpipe,
    w=normal("P", "D", "D", spec=P("pp")),
    x=normal("M", "B", "D"),
    dims={"P": axis("pp"), "D": 6, "M": 5, "B": 3},
    hidden_dims={"P": axis("pp"), "D": 7, "M": 6, "B": 2},
)


@exercise.helper
def layers(w, x):
    """Return x after all layers, float64[M, B, D]."""
    for one in w:
        x = np.tanh(x @ one)
    return x


@exercise.check(call, points=2, public=True)
def value(seen):
    """the last device's part is the result of all layers, the others are zeros"""
    result = layers(seen.w, seen.x)
    expect_close(seen.out, np.stack([*[np.zeros_like(result)] * (len(seen.w) - 1), result]))


@exercise.check(call, points=1, after=value)
def permutes(seen):
    """devices send their results with permutes, and use no other collective"""
    expect_only(seen, "permute")


@exercise.check(call, points=2, after=value)
def bubble(seen):
    """M of the M + P - 1 matmuls of a device are useful"""
    stages, micro = seen.dims["P"], seen.dims["M"]
    useful = 2 * micro * seen.dims["B"] * seen.dims["D"] ** 2 * stages
    right, wrong = (stages - 1) / (micro + stages - 1), stages / (micro + stages)
    expect_bubble(seen, useful=useful, at_most=needed(right, wrong, near="a tick too many is wrong"))


def _pipeline(w, x, mesh, ticks, collected):
    def local(w, x):
        stages, me, m = jax.lax.axis_size("pp"), jax.lax.axis_index("pp"), x.shape[0]
        onward = [(s, s + 1) for s in range(stages - 1)]
        held, out = jnp.zeros_like(x[0]), jnp.zeros_like(x)
        for tick in range(ticks(m, stages)):
            made = jnp.tanh(jnp.where(me == 0, x[min(tick, m - 1)], held) @ w[0])
            slot = tick - stages + 1
            if 0 <= slot < m:
                out = out.at[slot].set(jnp.where(me == stages - 1, made, 0))
            held = jax.lax.ppermute(made, "pp", onward)
        return collected(out[None])

    return jax.shard_map(local, mesh=mesh, in_specs=(P("pp"), P()), out_specs=P("pp"), check_vma=False)(w, x)


@exercise.misconception(fails=bubble)
def a_bubble_too_many(w, x, *, mesh):
    """Your pipeline runs one tick too many. The last micro-batch leaves the last device in tick M + P - 1."""
    return _pipeline(w, x, mesh, lambda m, stages: m + stages, lambda out: out)


@exercise.misconception(fails=value)
def last_micro_batches_lost(w, x, *, mesh):
    """You stop after M ticks, when the first device is done. The last micro-batch is still on its way then."""
    return _pipeline(w, x, mesh, lambda m, stages: m, lambda out: out)


@exercise.misconception(fails=permutes)
def summed_over_the_stages(w, x, *, mesh):
    """You summed the results over the stages and kept one part. Every device then sends mostly zeros."""

    def own_part(out):
        whole = jax.lax.psum(out, "pp")
        return jnp.where(jax.lax.axis_index("pp") == jax.lax.axis_size("pp") - 1, whole, 0)

    return _pipeline(w, x, mesh, lambda m, stages: m + stages - 1, own_part)
