import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

BOTH_WAYS = {"v4p": 9e10, "v5e": 9e10, "v5p": 1.8e11, "v6e": 1.8e11}


def larger_operand(chip, I, J, K, X):
    """cheaper_gather_time: dearer_gather"""
    return 2 * max(I, K) * J / BOTH_WAYS[chip]


def one_direction(chip, I, J, K, X):
    """cheaper_gather_time: gather_one_way"""
    return 2 * min(I, K) * J / (BOTH_WAYS[chip] / 2)


def both(chip, I, J, K, X):
    """cheaper_gather_time: gather_of_both"""
    return 2 * (I + K) * J / BOTH_WAYS[chip]


def one_shard(chip, I, J, K, X):
    """cheaper_gather_time: gather_of_a_shard"""
    return 2 * min(I, K) * J / X / BOTH_WAYS[chip]


def constrained(a, b, *, mesh):
    """matmul_keep_rows: rows_by_compiler"""
    return jax.lax.with_sharding_constraint(jnp.matmul(a, b), NamedSharding(mesh, P("x")))


def constrained_columns(a, b, *, mesh):
    """matmul_keep_columns: columns_by_compiler"""
    return jax.lax.with_sharding_constraint(jnp.matmul(a, b), NamedSharding(mesh, P(None, "x")))
