"""# W6 A gather that overlaps with the matmul

In `A[I_X, J] @ B[J, K_X]`, every device needs all rows of A, but the matmul can begin before all rows arrive. Multiply
the rows on the device while the next rows arrive.

**Task.** Write `ring_matmul(a, b)`. Return float32[I, K], sharded P(None, 'x'). Send one shard in each of N - 1
permutes.

**Budget.** As many bytes as an all-gather of A. On a slice of 8 v5e chips, overlap saves at least eight tenths of the
time that it can save.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import (
    between,
    expect_beside,
    expect_close,
    expect_collectives,
    expect_not_waiting,
    expect_overlap,
    expect_step_time,
)
from grader.hardware import CHIPS

exercise = Exercise(meshes=[{"x": 4}, {"x": 8}], stars=3)


@exercise.task(hints=["Which rows does the next device need, and since when are they here?"])
def ring_matmul(a, b, *, mesh):
    """a [I, J] sharded P('x'), b [J, K] sharded P(None, 'x') -> [I, K] sharded P(None, 'x')."""

    def local(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        ring = [(d, (d + 1) % n) for d in range(n)]
        out = jnp.zeros((n, a.shape[0], b.shape[1]), a.dtype)
        for hop in range(n):
            ahead = jax.lax.ppermute(a, "x", ring) if hop < n - 1 else a
            out = out.at[(me - hop) % n].set(a @ b)
            a = ahead
        return out.reshape(-1, b.shape[1])

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P(None, "x"))(a, b)


call = exercise.call(
    ring_matmul,
    a=normal("I", "J", spec=P("x")),
    b=normal("J", "K", spec=P(None, "x")),
    dims={"I": 16, "J": 10, "K": 24},
    hidden_dims={"I": 24, "J": 9, "K": 40},
)
narrow = exercise.call(
    ring_matmul,
    a=normal("I", "J", spec=P("x"), dtype="bfloat16"),
    b=normal("J", "K", spec=P(None, "x"), dtype="bfloat16"),
    dims={"I": 8 * 11, "J": 13, "K": 8 * 17},
    hidden_dims={"I": 8 * 13, "J": 11, "K": 8 * 19},
    meshes=[{"x": 8}],
)
paper = exercise.timing(
    narrow,
    dims={"I": 65536, "J": 8192, "K": 40960},
    hidden_dims={"I": 32768, "J": 8192, "K": 45056},
    on="v5e:2x4",
)


@exercise.check(call, points=1, public=True)
def value(seen):
    """C is A @ B"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(call, points=1, after=value)
def traffic(seen):
    """N - 1 permutes, no other collective"""
    expect_collectives(seen, permute={"x": seen.mesh["x"] - 1})


@exercise.check(call, points=1, after=traffic)
def order(seen):
    """no permute waits for a matmul, and a matmul can run beside each permute"""
    expect_not_waiting(seen, "permute", on="matmul")
    expect_beside(seen, "permute", of="matmul")


@exercise.check(narrow, points=1, public=True, after=value)
def ring(seen):
    """C is A @ B in bfloat16, on the ring that is timed"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(paper, points=1, public=True, after=traffic)
def hidden(seen):
    """overlap saves eight tenths of the time that it can save"""
    flops = 2 * seen.dims["I"] * seen.dims["J"] * seen.dims["K"] / seen.mesh["x"]
    expect_overlap(seen, "permute", at_least=0.8, work=1.1 * flops / CHIPS["v5e"].bf16)


@exercise.check(paper, points=1, after=traffic)
def fast(seen):
    """the step takes hardly longer than the matmuls"""
    flops = 2 * seen.dims["I"] * seen.dims["J"] * seen.dims["K"] / seen.mesh["x"]
    matmuls = flops / CHIPS["v5e"].bf16
    hops = 7 * 2 * seen.dims["I"] / 8 * seen.dims["J"] / CHIPS["v5e"].ici
    expect_step_time(seen, at_most=between(1.1 * matmuls, matmuls + hops, at=1.3 * matmuls))


@exercise.misconception(fails=[order, hidden, fast])
def permute_waits_for_the_dot(a, b, *, mesh):
    """Your permute waits for the matmul of the rows that it sends. Send these rows first."""

    def local(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        ring = [(d, (d + 1) % n) for d in range(n)]
        out = jnp.zeros((n, a.shape[0], b.shape[1]), a.dtype)
        for hop in range(n):
            part = a @ b
            out = out.at[(me - hop) % n].set(part)
            if hop < n - 1:
                a = jax.lax.ppermute(jax.lax.optimization_barrier((a, part))[0], "x", ring)
        return out.reshape(-1, b.shape[1])

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P(None, "x"))(a, b)


@exercise.misconception(fails=[order, hidden, fast])
def matmul_waits_for_the_permute(a, b, *, mesh):
    """You multiply the rows of one permute before the next one starts. Start it first, and multiply meanwhile."""

    def local(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        ring = [(d, (d + 1) % n) for d in range(n)]

        def one(hop, carry):
            a, out = carry
            out = out.at[(me - hop) % n].set(a @ b)
            a, out = jax.lax.optimization_barrier((a, out))
            return jax.lax.ppermute(a, "x", ring), out

        out = jax.lax.pcast(jnp.zeros((n, a.shape[0], b.shape[1]), a.dtype), "x", to="varying")
        a, out = jax.lax.fori_loop(0, n - 1, one, (a, out))
        return out.at[(me - (n - 1)) % n].set(a @ b).reshape(-1, b.shape[1])

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P(None, "x"))(a, b)


@exercise.misconception(fails=traffic)
def gathered_first(a, b, *, mesh):
    """Your matmul waits for a gather of all rows. Multiply the rows on the device while the next rows arrive."""

    def local(a, b):
        return jax.lax.all_gather(a, "x", tiled=True) @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P(None, "x"))(a, b)
