"""Misconceptions of C1."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from c1_no_communication import exercise, flops_per_device, local_flops, local_layout, local_traffic, local_value
from grader.exercise import Scenario


@exercise.misconception(
    fails=[local_traffic, local_flops], breaks=["no collective", "at most an equal share of the 2·I·J·K FLOPs"]
)
def gathered_without_need(a, b, *, mesh):
    """You gathered all columns of B and kept only your own columns of the result. Your columns of C need only your columns of B."""

    def local(a, b):
        c = a @ jax.lax.all_gather(b, "y", axis=1, tiled=True)
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("y") * b.shape[1], b.shape[1], axis=1)

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "y")), out_specs=P("x", "y"))(a, b)


@exercise.misconception(
    fails=[local_layout, local_traffic, local_flops],
    breaks=['C is sharded `P("x", "y")`', "not even one that the compiler adds"],
)
def wrong_in_specs(a, b, *, mesh):
    """Your in_specs say that B is whole, so JAX gathers B before your function starts. Name the axis that cuts B."""

    def local(a, b):
        return a @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, None)), out_specs=P("x", None))(a, b)


@exercise.misconception(
    fails=local_flops,
    breaks=[
        "inside `shard_map` each device computes only its own block of C",
        "The matmul must be in the body of `shard_map`",
    ],
)
def left_to_compiler(a, b, *, mesh):
    """You multiplied whole arrays and left the split of the work to the compiler. With jax.shard_map you choose the split: each device multiplies one block of A by one block of B."""
    return a @ b


@exercise.misconception(fails=local_value, breaks="C equals A @ B")
def cut_rows_of_b(a, b, *, mesh):
    """Your spec P('y') cuts the rows of B, its first dimension. y cuts the columns: P(None, 'y')."""

    def local(a, b):
        return a @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P("y")), out_specs=P("x", "y"))(a, b)


@exercise.misconception(fails=local_value, breaks="C equals A @ B")
def summed_without_need(a, b, *, mesh):
    """You added blocks of different devices. Each device has all of the contracting dimension J, so its block of C is complete: leave out the sum."""

    def local(a, b):
        return jax.lax.psum(a @ b, "x")

    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"), check_vma=False)(a, b)


@exercise.misconception(form_of=summed_without_need)
def summed_over_columns_without_need(a, b, *, mesh):
    """Like `summed_without_need`, but with a sum over y."""

    def local(a, b):
        return jax.lax.psum(a @ b, "y")

    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"), check_vma=False)(a, b)


@exercise.misconception(fails=local_value, breaks="C equals A @ B")
def multiplied_in_bfloat16(a, b, *, mesh):
    """You multiplied in bfloat16 and cast back. bfloat16 keeps 8 significant bits of each number, and a cast does not restore the other bits."""

    def local(a, b):
        return (a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16)).astype(jnp.float32)

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "y")), out_specs=P("x", "y"))(a, b)


@exercise.misconception(of=flops_per_device)
def flops_shared_by_z(I, J, K, X, Y, Z):
    """You divided by Z. z cuts nothing: all devices along z do the same work."""
    return 2 * I * J * K / (X * Y * Z)


@exercise.misconception(of=flops_per_device)
def flops_without_additions(I, J, K, X, Y, Z):
    """You left out the factor 2. Every term needs one multiplication and one addition."""
    return I * J * K / (X * Y)


@exercise.misconception(of=flops_per_device)
def flops_of_everyone(I, J, K, X, Y, Z):
    """You counted the whole matmul. x cuts the rows of the result and y its columns, so a device computes 1/XY of the result."""
    return 2 * I * J * K


@exercise.misconception(of=flops_per_device)
def flops_of_all_columns(I, J, K, X, Y, Z):
    """You divided by X only. The columns of C are cut too."""
    return 2 * I * J * K / X


exercise.scenario(
    flops_per_device,
    lambda I, J, K, X, Y, Z: Scenario(mesh={"x": X, "y": Y, "z": Z}, arrays=[((I, J), P("x")), ((J, K), P(None, "y"))]),
)
