"""# W6 A gather that hides behind the product

`A[I_X, J] @ B[J, K_X]`: every device needs all rows of A, and the product need not wait for them. Multiply the rows that are
here while the next ones travel.

**Task.** `ring_matmul(a, b)`: float32[I, K], sharded P(None, 'x'), in N - 1 hops of one shard.

**Budget.** As many bytes as an all-gather of A. On a slice of 16 v5e chips, with shards of 4096 rows, at least nine tenths of the
hops' time lie under products.
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
    """N - 1 hops, no other collective"""
    expect_collectives(seen, permute={"x": seen.mesh["x"] - 1})


@exercise.check(call, points=1, after=traffic)
def order(seen):
    """no hop waits for a product, and each has one beside it"""
    expect_not_waiting(seen, "permute", on="matmul")
    expect_beside(seen, "permute", of="matmul")


@exercise.check(narrow, points=1, public=True, after=value)
def ring(seen):
    """C is A @ B in bfloat16, on the ring that is timed"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(paper, points=1, public=True, after=traffic)
def hidden(seen):
    """overlap gains eight tenths of what it can"""
    flops = 2 * seen.dims["I"] * seen.dims["J"] * seen.dims["K"] / seen.mesh["x"]
    expect_overlap(seen, "permute", at_least=0.8, work=1.1 * flops / CHIPS["v5e"].bf16)


@exercise.check(paper, points=1, after=traffic)
def fast(seen):
    """the step takes hardly longer than the products"""
    flops = 2 * seen.dims["I"] * seen.dims["J"] * seen.dims["K"] / seen.mesh["x"]
    products = flops / CHIPS["v5e"].bf16
    hops = 7 * 2 * seen.dims["I"] / 8 * seen.dims["J"] / CHIPS["v5e"].ici
    expect_step_time(seen, at_most=between(1.1 * products, products + hops, at=1.3 * products))


@exercise.misconception(fails=[order, hidden, fast])
def permute_waits_for_the_dot(a, b, *, mesh):
    """Your hop waits for the product of the rows that it sends. Send first: they are here already."""

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
def product_waits_for_the_permute(a, b, *, mesh):
    """You multiply what a hop brings before the next sets out, so products and hops take turns. Multiply what is here meanwhile."""

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
    """You gathered all rows before the product, which then waits for every one of them. Multiply the rows that are here."""

    def local(a, b):
        return jax.lax.all_gather(a, "x", tiled=True) @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P(None, "x"))(a, b)
