"""Misconceptions of C3."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from c3_contracting import (
    all_reduce_bytes,
    exercise,
    matmul_all_reduce,
    matmul_reduce_scatter,
    reduced_traffic,
    reduced_value,
    scatter_time,
    scattered_layout,
    scattered_traffic,
    scattered_value,
)
from grader.exercise import Scenario
from grader.hardware import latency, reduce_scatter_time


@exercise.misconception(
    of=matmul_all_reduce,
    fails=reduced_value,
    breaks=["`matmul_all_reduce` | C equals A @ B on every device", "A collective must finish the sum"],
)
def forgot_psum(a, b, *, mesh):
    """Each device returned its own partial sum. Your program never adds the partial sums. With check_vma=False JAX does not warn you."""

    def local(a, b):
        return a @ b

    specs = (P(None, "x"), P("x", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)


@exercise.misconception(of=matmul_all_reduce, fails=reduced_value, breaks="C equals A @ B on every device")
def summed_twice(a, b, *, mesh):
    """You summed twice. After the first psum every device holds all of C. The second psum adds X copies of C."""

    def local(a, b):
        return jax.lax.psum(jax.lax.psum(a @ b, "x"), "x")

    specs = (P(None, "x"), P("x", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)


@exercise.misconception(of=matmul_all_reduce, fails=reduced_traffic, breaks="`matmul_all_reduce` | in `shard_map`")
def summed_by_compiler(a, b, *, mesh):
    """You left the sum to the compiler. With jax.shard_map you multiply blocks and write the collective yourself."""
    return a @ b


@exercise.misconception(of=matmul_all_reduce, fails=reduced_value, breaks="Keep all arrays in float32")
def summed_in_bfloat16(a, b, *, mesh):
    """You added the partial sums in bfloat16. That sends half the bytes but keeps only 8 significant bits of each number. Add in float32, the dtype of C."""

    def local(a, b):
        return jax.lax.psum((a @ b).astype(jnp.bfloat16), "x").astype(jnp.float32)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


@exercise.misconception(
    of=matmul_all_reduce, fails=reduced_traffic, breaks="one all-reduce over x and no other collective"
)
def summed_in_two_steps(a, b, *, mesh):
    """You wrote a reduce-scatter and an all-gather. Together they are an all-reduce: write one psum."""

    def local(a, b):
        mine = jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)
        return jax.lax.all_gather(mine, "x", axis=1, tiled=True)

    specs = (P(None, "x"), P("x", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)


@exercise.misconception(
    of=matmul_all_reduce, fails=reduced_traffic, breaks="one all-reduce over x and no other collective"
)
def gathered_both_operands(a, b, *, mesh):
    """You gathered both operands, so every device computes all of C. Each device has matching columns of A and rows of B: multiply them, then add the partial sums."""

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ jax.lax.all_gather(b, "x", tiled=True)

    specs = (P(None, "x"), P("x", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)


@exercise.misconception(of=matmul_all_reduce, fails=reduced_value, breaks="C equals A @ B on every device")
def averaged_the_parts(a, b, *, mesh):
    """You took the mean of the partial sums. C is their sum: use psum."""

    def local(a, b):
        return jax.lax.pmean(a @ b, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


@exercise.misconception(of=matmul_all_reduce, fails=reduced_traffic, breaks="C is whole on every device")
def reduced_and_cut(a, b, *, mesh):
    """You reduce-scattered, so each device has only its own columns of C. Every device needs the whole C: all-reduce."""
    return matmul_reduce_scatter(a, b, mesh=mesh)


@exercise.misconception(
    of=matmul_reduce_scatter, fails=scattered_value, breaks="`matmul_reduce_scatter` | C equals A @ B"
)
def scattered_untiled(a, b, *, mesh):
    """You left out tiled=True. psum_scatter then expects a dimension of size X, with one chunk per device."""

    def local(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


@exercise.misconception(
    of=matmul_reduce_scatter, fails=scattered_traffic, breaks="`matmul_reduce_scatter` | in `shard_map`"
)
def scattered_by_compiler(a, b, *, mesh):
    """You asked the compiler for the layout. With jax.shard_map you multiply blocks and write the collective yourself."""
    return jax.lax.with_sharding_constraint(a @ b, jax.NamedSharding(mesh, P(None, "x")))


@exercise.misconception(
    of=matmul_reduce_scatter, fails=scattered_traffic, breaks="one reduce-scatter over x and no other collective"
)
def psum_then_slice(a, b, *, mesh):
    """You all-reduced and discarded most of the result. A reduce-scatter sends half the bytes."""

    def local(a, b):
        c = jax.lax.psum(a @ b, "x")
        width = c.shape[1] // jax.lax.axis_size("x")
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


@exercise.misconception(
    of=matmul_reduce_scatter, fails=scattered_layout, breaks='`matmul_reduce_scatter` | C is sharded `P(None, "x")`'
)
def scattered_over_rows(a, b, *, mesh):
    """You cut the rows of C. By default psum_scatter cuts dimension 0: set scatter_dimension=1."""

    def local(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


@exercise.misconception(of=scatter_time)
def scatter_one_way(chip, I, K, X):
    """You used one direction of the link. On a ring data flows both ways."""
    return 2 * reduce_scatter_time(2 * I * K, X, chip)


@exercise.misconception(of=scatter_time)
def scatter_of_shard(chip, I, K, X):
    """You counted the result, C[I, K_X]. V is the whole array: every device holds a partial sum of the whole array."""
    return reduce_scatter_time(2 * I * K / X, X, chip)


@exercise.misconception(of=scatter_time)
def scatter_half_a_gather(chip, I, K, X):
    """You made the reduce-scatter cheaper than an all-gather. A reduce-scatter is an all-gather in reverse: the sums that travel are as large as an all-gather's shards."""
    return reduce_scatter_time(2 * I * K, X, chip) / 2


@exercise.misconception(of=all_reduce_bytes)
def sent_every_chunk(I, K, X):
    """You counted X steps. A ring of X devices needs X - 1 steps."""
    return 2 * 4 * I * K


@exercise.misconception(of=all_reduce_bytes)
def sent_in_one_phase(I, K, X):
    """You counted half of the bytes. If you counted the reduce-scatter alone, add the all-gather of the summed chunks. If you counted 2 bytes a number, count 4: the array is float32."""
    return 4 * I * K * (X - 1) / X


@exercise.misconception(of=all_reduce_bytes)
def sent_whole_array_round(I, K, X):
    """You sent the whole array in every step. A ring sends one chunk of 1/X at a time."""
    return 4 * I * K * (X - 1)


exercise.scenario(
    scatter_time,
    lambda chip, I, K, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, K), P(None, "x"))], least=latency(X)
    ),
)
exercise.scenario(all_reduce_bytes, lambda I, K, X: Scenario(mesh={"x": X}, arrays=[((I, K), P(None, "x"))]))
