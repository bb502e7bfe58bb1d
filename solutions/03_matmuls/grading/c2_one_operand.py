"""Misconceptions of C2."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from c2_one_operand import (
    exercise,
    gather_first_time,
    gather_first_traffic,
    gather_first_value,
    matmul_gather_first,
    matmul_slice_first,
    slice_first_time,
    slice_first_traffic,
    slice_first_value,
)
from grader.exercise import Scenario
from grader.hardware import all_gather_time, all_reduce_time, latency


@exercise.misconception(
    of=matmul_gather_first,
    fails=gather_first_traffic,
    breaks=["one all-gather of A over x and no other collective", "at most 4·I·J·(1 − 1/X) bytes"],
)
def gathered_b_too(a, b, *, mesh):
    """You cut B and gathered it again. Every device already holds all of B: gather only A."""

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ jax.lax.all_gather(b, "x", tiled=True)

    specs = (P(None, "x"), P("x", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)


@exercise.misconception(of=matmul_gather_first, fails=gather_first_value, breaks="C equals A @ B on every device")
def gathered_and_reshaped(a, b, *, mesh):
    """You stacked the shards and reshaped the stack. This puts numbers into wrong columns. Join the shards along the columns: axis=1, tiled=True."""

    def local(a, b):
        return jax.lax.all_gather(a, "x").reshape(a.shape[0], -1) @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(), check_vma=False)(a, b)


@exercise.misconception(form_of=gathered_and_reshaped)
def gathered_and_interleaved(a, b, *, mesh):
    """Like `gathered_and_reshaped`, but this program interleaves the columns of the shards."""

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=2).reshape(a.shape[0], -1) @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(), check_vma=False)(a, b)


@exercise.misconception(of=matmul_gather_first, fails=gather_first_traffic, breaks="one all-gather of A over x")
def reduced_after_all(a, b, *, mesh):
    """You multiplied slices and all-reduced. That is `matmul_slice_first`. Gather A, and multiply it by all of B."""
    return matmul_slice_first(a, b, mesh=mesh)


@exercise.misconception(of=matmul_gather_first, fails=gather_first_traffic, breaks="one all-gather of A over x")
def matmuls_gathered(a, b, *, mesh):
    """You gathered the partial sums and added them. Gather A, which is smaller than the partial sums of all devices, before you multiply."""

    def local(a, b):
        return jnp.sum(jax.lax.all_gather(a @ b, "x"), axis=0)

    specs = (P(None, "x"), P("x", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)


def finished(a, b, mesh, finish):
    """Multiply the matching parts of A and B; ``finish`` turns partial sums into the result."""
    specs = (P(None, "x"), P("x", None))
    local = lambda a, b: finish(a @ b)  # noqa: E731
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)


@exercise.misconception(of=matmul_slice_first, fails=slice_first_value, breaks="both | C equals A @ B on every device")
def partial_sums_averaged(a, b, *, mesh):
    """You averaged the partial sums. C is their sum: use psum."""
    return finished(a, b, mesh, lambda part: jax.lax.pmean(part, "x"))


@exercise.misconception(of=matmul_slice_first, fails=slice_first_value, breaks="both | C equals A @ B on every device")
def partial_sums_returned(a, b, *, mesh):
    """You returned each device's partial sum. With check_vma=False JAX does not report this. Add the partial sums over x."""
    return finished(a, b, mesh, lambda part: part)


@exercise.misconception(
    of=matmul_slice_first,
    fails=slice_first_traffic,
    breaks="slice first | one all-reduce over x and no other collective",
)
def scattered_and_gathered(a, b, *, mesh):
    """You used a reduce-scatter and an all-gather. One all-reduce, jax.lax.psum, does both."""

    def finish(part):
        own = jax.lax.psum_scatter(part, "x", scatter_dimension=1, tiled=True)
        return jax.lax.all_gather(own, "x", axis=1, tiled=True)

    return finished(a, b, mesh, finish)


@exercise.misconception(of=matmul_slice_first, fails=slice_first_value, breaks="both | C equals A @ B on every device")
def first_rows_on_every_device(a, b, *, mesh):
    """Every device used the first rows of B. Device x holds the columns of A that match block x of B's rows: use axis_index."""

    def local(a, b):
        return jax.lax.psum(a @ b[: a.shape[1]], "x")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


@exercise.misconception(of=matmul_slice_first, fails=slice_first_value, breaks="both | C equals A @ B on every device")
def scattered_the_sum(a, b, *, mesh):
    """You reduce-scattered the partial sums, so each device keeps a part of C. Every device needs the whole C: use psum."""

    def local(a, b):
        size = a.shape[1]
        part = a @ jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * size, size)
        return jax.lax.psum_scatter(part, "x", tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P("x"))(a, b)


@exercise.misconception(of=matmul_gather_first, fails=gather_first_traffic, breaks="both | in `shard_map`")
def gathered_by_compiler(a, b, *, mesh):
    """You left the gather to the compiler. With jax.shard_map you write every collective yourself."""
    return jax.lax.with_sharding_constraint(a, jax.NamedSharding(mesh, P())) @ b


@exercise.misconception(of=matmul_slice_first, fails=slice_first_traffic, breaks="both | in `shard_map`")
def reduced_by_compiler(a, b, *, mesh):
    """You left the sum to the compiler. With jax.shard_map you write every collective yourself."""
    return jax.lax.with_sharding_constraint(a @ b, jax.NamedSharding(mesh, P()))


@exercise.misconception(
    of=matmul_slice_first,
    fails=slice_first_traffic,
    breaks="slice first | one all-reduce over x and no other collective",
)
def gathered_after_all(a, b, *, mesh):
    """You gathered A, so every device computes the whole matmul. Multiply the device's columns of A by the matching rows of B, then sum."""
    return matmul_gather_first(a, b, mesh=mesh)


@exercise.misconception(
    of=matmul_slice_first,
    fails=slice_first_traffic,
    breaks=["C is whole on every device", "`C` must be whole too"],
)
def sliced_and_scattered(a, b, *, mesh):
    """You reduce-scattered, so each device has only its own columns of C. Every device needs the whole C: all-reduce."""

    def local(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


@exercise.misconception(of=matmul_slice_first, fails=slice_first_traffic, breaks="slice first | 1/X of the FLOPs")
def padded_with_zeros(a, b, *, mesh):
    """You put your columns of A into an array of zeros and multiplied this array by all of B. This takes X times the FLOPs, most of them with zeros. Multiply your columns by the matching rows of B."""

    def local(a, b):
        here = jax.lax.axis_index("x") * a.shape[1]
        padded = jax.lax.dynamic_update_slice_in_dim(jnp.zeros((a.shape[0], b.shape[0])), a, here, axis=1)
        return jax.lax.psum(padded @ b, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


@exercise.misconception(of=gather_first_time)
def gather_time_of_b(chip, I, J, K, X):
    """You gathered B. Every device holds all of B. x cuts A: gather A."""
    return all_gather_time(2 * J * K, X, chip)


@exercise.misconception(of=gather_first_time)
def gather_time_of_shard(chip, I, J, K, X):
    """You counted one shard. V is the whole array that the group gathers."""
    return all_gather_time(2 * I * J / X, X, chip)


@exercise.misconception(of=slice_first_time)
def reduce_time_once(chip, I, J, K, X):
    """You counted the all-reduce as one pass. An all-reduce is a reduce-scatter and an all-gather: twice V / W."""
    return all_reduce_time(2 * I * K, X, chip) / 2


@exercise.misconception(of=slice_first_time)
def reduce_time_of_a(chip, I, J, K, X):
    """You reduced A. Devices hold partial sums of the result, C[I, K]."""
    return all_reduce_time(2 * I * J, X, chip)


@exercise.misconception(of=gather_first_time)
def gather_time_one_way(chip, I, J, K, X):
    """You used one direction of the link. On a ring data flows both ways."""
    return 2 * all_gather_time(2 * I * J, X, chip)


@exercise.misconception(of=slice_first_time)
def reduce_time_one_way(chip, I, J, K, X):
    """You used one direction of the link. On a ring data flows both ways."""
    return 2 * all_reduce_time(2 * I * K, X, chip)


@exercise.misconception(of=gather_first_time)
def gather_time_of_c(chip, I, J, K, X):
    """You gathered C. In `matmul_gather_first` every device computes all of C: only A is gathered."""
    return all_gather_time(2 * I * K, X, chip)


for asked in (gather_first_time, slice_first_time):
    exercise.scenario(
        asked,
        lambda chip, I, J, K, X: Scenario(
            chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P(None, "x")), ((J, K), P("x")), ((I, K), P("x"))],
            least=2 * latency(X),
        ),
    )  # fmt: skip
