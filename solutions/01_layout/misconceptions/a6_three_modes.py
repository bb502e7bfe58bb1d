"""What goes wrong in A6."""

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from a6_three_modes import (
    auto_budget,
    auto_mode,
    exercise,
    explicit,
    explicit_budget,
    explicit_mode,
    flops_of_one_constraint,
    gather_of_c_bytes,
    manual_budget,
    manual_mode,
    matmul_auto,
    matmul_explicit,
    matmul_manual,
)


@exercise.misconception(of=matmul_auto, fails=auto_mode)
def auto_by_hand(a, b, *, mesh):
    """You wrote Manual mode again. In Auto mode there is no shard_map: multiply whole arrays and constrain the result."""
    return matmul_manual(a, b, mesh=mesh)


@exercise.misconception(of=matmul_auto, fails=auto_budget)
def auto_one_constraint(a, b, *, mesh):
    """You asked only for C[I_X, K], so the compiler gathered B and every device along y computes the same. Constrain the product to C[I_X, K_Y] first."""
    return jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", None)))


@exercise.misconception(of=matmul_auto, fails=auto_budget)
def auto_unconstrained(a, b, *, mesh):
    """You left the layout to the compiler, and it left C where it was computed, C[I_X, K_Y]."""
    return a @ b


@exercise.misconception(of=matmul_explicit, fails=explicit_mode)
def explicit_by_hand(a, b, *, mesh):
    """You wrote Manual mode again. In Explicit mode you handle whole arrays whose types carry shardings; reshard moves them."""
    return matmul_manual(a, b, mesh=mesh)


@exercise.misconception(of=matmul_explicit, fails=explicit_mode)
def explicit_in_auto(a, b, *, mesh):
    """You wrote Auto mode again: the type of your result is plain float32[I, K]. Bring the operands to explicit(mesh) with reshard."""
    return matmul_auto(a, b, mesh=mesh)


@exercise.misconception(of=matmul_explicit, fails=explicit_budget)
def explicit_in_one_step(a, b, *, mesh):
    """You asked the product itself to come out as [I@x, K], so B was gathered and the FLOPs doubled. Let it be [I@x, K@y], then reshard."""
    whole = jax.sharding.reshard(b, NamedSharding(explicit(mesh), P(None, None)))
    return jax.sharding.reshard(a, NamedSharding(explicit(mesh), P("x", None))) @ whole


@exercise.misconception(of=matmul_manual, fails=manual_budget)
def manual_gathered_b(a, b, *, mesh):
    """You gathered B, and every device along y computes the same rows of C. Multiply first: C is what has to travel."""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "y", axis=1, tiled=True)

    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma=False)(a, b)


@exercise.misconception(of=matmul_manual, fails=manual_mode)
def manual_by_compiler(a, b, *, mesh):
    """You left the all-gather to the compiler. In Manual mode you write every collective, inside shard_map."""
    return matmul_auto(a, b, mesh=mesh)


@exercise.misconception(of=gather_of_c_bytes)
def gather_of_all_rows(I, J, K, X, Y):
    """You forgot that x cuts the rows. Devices along y gather their own rows of C only."""
    return 4 * I * K / Y * (Y - 1)


@exercise.misconception(of=gather_of_c_bytes)
def gather_of_b_instead(I, J, K, X, Y):
    """That is the all-gather of B. The budget is to gather C."""
    return 4 * J * K / Y * (Y - 1)


@exercise.misconception(of=gather_of_c_bytes)
def gather_of_c_one_step_more(I, J, K, X, Y):
    """You counted Y steps. A ring of Y devices has gone round after Y - 1."""
    return 4 * I * K / X


@exercise.misconception(of=flops_of_one_constraint)
def flops_still_shared(I, J, K, X, Y):
    """You divided by Y too. With all of B on every device, the devices along y compute the same rows."""
    return 2 * I * J * K / (X * Y)


@exercise.misconception(of=flops_of_one_constraint)
def flops_without_two(I, J, K, X, Y):
    """You counted a term as one FLOP. It is a multiplication and an addition."""
    return I * J * K / X
