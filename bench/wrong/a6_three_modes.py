import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


def y_steps(I, J, K, X, Y):
    """gather_of_c_bytes: gather_of_c_one_step_more"""
    return 4 * I / X * K / Y * Y


def one_step(I, J, K, X, Y):
    """gather_of_c_bytes: gather_of_c_one_block"""
    return 4 * I * K / X / Y


def gathers_b(I, J, K, X, Y):
    """gather_of_c_bytes: gather_of_b_instead"""
    return 4 * J * K * (Y - 1) / Y


def shared_by_all(I, J, K, X, Y):
    """flops_of_one_constraint: flops_still_shared"""
    return 2 * I * J * K / X / Y


def of_the_whole(I, J, K, X, Y):
    """flops_of_one_constraint: flops_of_the_whole"""
    return 2 * I * J * K


def no_constraint(a, b, *, mesh):
    """matmul_auto: auto_unconstrained"""
    return jnp.einsum("ij,jk->ik", a, b)


def only_the_result(a, b, *, mesh):
    """matmul_auto: auto_one_constraint"""
    c = jnp.matmul(a, b)
    return jax.lax.with_sharding_constraint(c, NamedSharding(mesh, P("x")))


def reshards_b(a, b, *, mesh):
    """matmul_explicit: explicit_in_one_step"""
    whole = jax.sharding.reshard(b, P())
    return jnp.matmul(a, whole)


def gathers_b_by_hand(a, b, *, mesh):
    """matmul_manual: manual_gathered_b"""

    def body(a, b):
        b = jax.lax.all_gather(b, "y", axis=1, tiled=True)
        return jnp.dot(a, b)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P(None, "y")), out_specs=P("x"), check_vma=False)(a, b)
