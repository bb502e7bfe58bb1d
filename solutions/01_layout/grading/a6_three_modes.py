"""Checks and misconceptions of A6."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from a6_three_modes import (
    exercise,
    flops_of_one_constraint,
    gather_of_c_bytes,
    matmul_auto,
    matmul_explicit,
    matmul_manual,
)
from grader.exercise import Scenario, normal
from grader.expect import (
    Failure,
    expect_close,
    expect_collectives,
    expect_flops,
    expect_shard_map,
    expect_spec,
    expect_traffic,
    needed,
)

arrays = {"a": normal("I", "J", spec=P("x", None)), "b": normal("J", "K", spec=P(None, "y"))}
DIMS = {"I": 24, "J": 32, "K": 40}
HIDDEN = {"I": 12, "J": 27, "K": 20}
auto = exercise.call(matmul_auto, **arrays, dims=DIMS, hidden_dims=HIDDEN)
typed = exercise.call(matmul_explicit, **arrays, dims=DIMS, hidden_dims=HIDDEN)
manual = exercise.call(matmul_manual, **arrays, dims=DIMS, hidden_dims=HIDDEN)


def gathered_b(seen):
    """Return the bytes that each device sends if the devices gather B over y."""
    return 4 * seen.b.size * (seen.mesh["y"] - 1) / seen.mesh["y"]


def expect_one_gather_of_c(seen, wrong):
    """Require one all-gather of C over y, the layout C[I_X, K], and no repeated matmul."""
    expect_spec(seen.out, P("x", None))
    expect_collectives(seen, all_gather={"y": 1})
    shard = seen.out.value.nbytes / (seen.mesh["x"] * seen.mesh["y"])
    expect_traffic(seen, at_most=needed(shard * (seen.mesh["y"] - 1), wrong))
    rows = 2 * seen.a.size * seen.b.shape[1] / seen.mesh["x"]
    # a wrong program computes every row of C on all devices along y
    expect_flops(seen, at_most=needed(rows / seen.mesh["y"], rows))


def expect_collectives_of(seen, *, compiler):
    """If ``compiler``, require that the compiler inserted every collective. Otherwise require that the learner wrote it."""
    c = next((c for c in seen.collectives if c.by_compiler != compiler), None)
    if c:
        who = f"you wrote it in line {c.line}" if c.line else "the compiler inserted it"
        raise Failure(f"in this mode {'the compiler inserts' if compiler else 'you write'} the {c.kind}, but {who}")


@exercise.check(auto, points=0.25, public=True)
def auto_value(seen):
    """matmul_auto: C equals A @ B"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(auto, points=0.25, after=auto_value)
def auto_budget(seen):
    """matmul_auto: one all-gather of C over y gives C[I_X, K], with 1/XY of the FLOPs"""
    expect_one_gather_of_c(seen, gathered_b(seen))


@exercise.check(auto, points=0.25, after=auto_budget)
def auto_mode(seen):
    """matmul_auto: the compiler inserts the all-gather, you write none"""
    expect_collectives_of(seen, compiler=True)


@exercise.check(typed, points=0.25, public=True)
def explicit_value(seen):
    """matmul_explicit: C equals A @ B"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(typed, points=0.25, after=explicit_value)
def explicit_budget(seen):
    """matmul_explicit: one all-gather of C over y gives C[I_X, K], with 1/XY of the FLOPs"""
    expect_one_gather_of_c(seen, gathered_b(seen))


@exercise.check(typed, points=0.25, after=explicit_budget)
def explicit_mode(seen):
    """matmul_explicit: the compiler inserts the all-gather, you write none"""
    expect_collectives_of(seen, compiler=True)


@exercise.check(manual, points=0.25, public=True)
def manual_value(seen):
    """matmul_manual: C equals A @ B"""
    expect_close(seen.out, seen.a @ seen.b)


@exercise.check(manual, points=0.25, after=manual_value)
def manual_budget(seen):
    """matmul_manual: one all-gather of C over y gives C[I_X, K], with 1/XY of the FLOPs"""
    gather = 4 * seen.dims["I"] * seen.dims["K"] / seen.mesh["x"] * (seen.mesh["y"] - 1) / seen.mesh["y"]
    expect_one_gather_of_c(seen, 2 * gather)  # a wrong program sums in place of the gather


@exercise.check(manual, points=0.25, after=manual_budget)
def manual_mode(seen):
    """matmul_manual: you write the all-gather in shard_map, the compiler adds nothing"""
    expect_shard_map(seen)
    expect_collectives_of(seen, compiler=False)


@exercise.misconception(
    of=matmul_auto, fails=auto_mode, breaks="Auto, Explicit: the compiler inserts the all-gather, you write none"
)
def auto_by_hand(a, b, *, mesh):
    """You wrote the program in Manual mode. In Auto mode there is no shard_map: multiply whole arrays and constrain the result."""
    return matmul_manual(a, b, mesh=mesh)


@exercise.misconception(of=matmul_auto, fails=auto_budget, breaks=["at most (Y − 1) blocks", "1/XY of the FLOPs"])
def auto_one_constraint(a, b, *, mesh):
    """B was gathered, so every device along y computes the same rows. Either you constrained only the result to C[I_X, K], or you asked for the whole B. Constrain a @ b to C[I_X, K_Y] first."""
    return jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", None)))


@exercise.misconception(of=matmul_auto, fails=auto_budget, breaks="one all-gather of C over y gives C[I_X, K]")
def auto_unconstrained(a, b, *, mesh):
    """You left the layout to the compiler. The compiler kept the computed layout, C[I_X, K_Y]. Constrain the result."""
    return a @ b


@exercise.misconception(of=matmul_auto, fails=auto_budget, breaks="no other collective")
def auto_gathered_b_too(a, b, *, mesh):
    """You made the compiler gather B too. Each device's columns of C need only its columns of B: gather only C."""
    b = jax.lax.with_sharding_constraint(b, NamedSharding(mesh, P(None, None)))
    return matmul_auto(a, b, mesh=mesh)


@exercise.misconception(of=matmul_auto, fails=auto_value, breaks="C equals A @ B")
def auto_in_bfloat16(a, b, *, mesh):
    """You multiplied in bfloat16 and cast back. bfloat16 keeps 8 significant bits of each number, and a cast does not restore the other bits."""
    return matmul_auto(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), mesh=mesh).astype(jnp.float32)


@exercise.misconception(
    of=matmul_explicit, fails=explicit_mode, breaks="the compiler inserts the all-gather, you write none"
)
def explicit_by_hand(a, b, *, mesh):
    """You wrote the program in Manual mode. In Explicit mode you work on whole arrays whose types carry shardings. Use reshard to move them."""
    return matmul_manual(a, b, mesh=mesh)


@exercise.misconception(of=matmul_explicit, fails=explicit_budget, breaks="1/XY of the FLOPs")
def explicit_in_one_step(a, b, *, mesh):
    """You asked for [I@x, K] as the matmul's result. JAX gathered B, and every device along y computes the same rows. Multiply to [I@x, K@y], then reshard."""
    return a @ jax.sharding.reshard(b, P(None, None))


@exercise.misconception(of=matmul_explicit, fails=explicit_budget)
def explicit_gathered_b_too(a, b, *, mesh):
    """You gathered B too. Each device's columns of C need only its columns of B: gather only C."""
    b = jax.sharding.reshard(jax.sharding.reshard(b, P(None, None)), P(None, "y"))
    return matmul_explicit(a, b, mesh=mesh)


@exercise.misconception(of=matmul_explicit, fails=explicit_value, breaks="use `reshard` to move a value")
def explicit_by_constraint(a, b, *, mesh):
    """You used with_sharding_constraint. In Explicit mode it only compares the layout in the type with the given one. Use jax.sharding.reshard to move a value."""
    return jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", None)))


@exercise.misconception(of=matmul_explicit, fails=explicit_value, breaks="C equals A @ B")
def explicit_in_bfloat16(a, b, *, mesh):
    """You multiplied in bfloat16 and cast back. bfloat16 keeps 8 significant bits of each number, and a cast does not restore the other bits."""
    return matmul_explicit(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), mesh=mesh).astype(jnp.float32)


@exercise.misconception(of=matmul_manual, fails=manual_budget, breaks="1/XY of the FLOPs")
def manual_gathered_b(a, b, *, mesh):
    """You gathered B, and every device along y computes the same rows of C. Multiply first, then gather C."""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "y", axis=1, tiled=True)

    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma=False)(a, b)


@exercise.misconception(of=matmul_manual, fails=manual_budget, breaks="one all-gather of C over y gives C[I_X, K]")
def manual_by_summing(a, b, *, mesh):
    """You placed each block in an array of zeros and added the arrays. An all-reduce sends twice the bytes of an all-gather."""

    def local(a, b):
        width = b.shape[1]
        rows = jnp.zeros((a.shape[0], jax.lax.axis_size("y") * width), a.dtype)
        return jax.lax.psum(
            jax.lax.dynamic_update_slice_in_dim(rows, a @ b, jax.lax.axis_index("y") * width, axis=1), "y"
        )

    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


@exercise.misconception(of=matmul_manual, fails=manual_value, breaks="C equals A @ B")
def manual_without_gather(a, b, *, mesh):
    """You returned your own columns of C. A device returns whole rows: gather the columns of the other devices along y."""

    def local(a, b):
        return a @ b

    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma=False)(a, b)


@exercise.misconception(of=matmul_manual, fails=manual_budget, breaks="one all-gather of C over y gives C[I_X, K]")
def manual_left_cut(a, b, *, mesh):
    """You left the columns of C cut over y. The result is C[I_X, K]: gather the columns over y, and leave y out of out_specs."""

    def local(a, b):
        return a @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "y")), out_specs=P("x", "y"))(a, b)


@exercise.misconception(
    of=matmul_manual,
    fails=manual_mode,
    breaks="Manual: you write the all-gather in `shard_map`, the compiler adds nothing",
)
def manual_by_compiler(a, b, *, mesh):
    """You left the all-gather to the compiler. In Manual mode you write every collective, inside shard_map."""
    return matmul_auto(a, b, mesh=mesh)


@exercise.misconception(of=gather_of_c_bytes)
def gather_of_all_rows(I, J, K, X, Y):
    """You forgot that x cuts the rows. Devices along y gather their own rows of C only."""
    return 4 * I * K / Y * (Y - 1)


@exercise.misconception(of=gather_of_c_bytes)
def gather_of_b_instead(I, J, K, X, Y):
    """You counted the all-gather of B. The question asks for the all-gather of C."""
    return 4 * J * K / Y * (Y - 1)


@exercise.misconception(of=gather_of_c_bytes)
def gather_of_c_one_block(I, J, K, X, Y):
    """You counted one step. A ring of Y devices needs Y - 1 steps, and a device sends a block in each step."""
    return 4 * I * K / (X * Y)


@exercise.misconception(of=gather_of_c_bytes)
def gather_of_c_one_step_more(I, J, K, X, Y):
    """You counted Y steps. A ring of Y devices needs Y - 1 steps."""
    return 4 * I * K / X


@exercise.misconception(of=flops_of_one_constraint)
def flops_still_shared(I, J, K, X, Y):
    """You divided by Y too. With all of B on every device, the devices along y compute the same rows."""
    return 2 * I * J * K / (X * Y)


@exercise.misconception(of=flops_of_one_constraint)
def flops_of_the_whole(I, J, K, X, Y):
    """You counted the whole matmul. x cuts the rows of the result, so a device computes 1/X of them."""
    return 2 * I * J * K


@exercise.misconception(of=flops_of_one_constraint)
def flops_without_two(I, J, K, X, Y):
    """You counted one FLOP per term. Each term needs a multiplication and an addition."""
    return I * J * K / X


for asked in (gather_of_c_bytes, flops_of_one_constraint):
    exercise.scenario(
        asked,
        lambda I, J, K, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((I, J), P("x")), ((J, K), P(None, "y"))]),
    )
