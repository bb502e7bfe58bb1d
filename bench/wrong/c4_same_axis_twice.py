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


def _mapped(local, mesh, out):
    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=out, check_vma=False)


def untiled_then_reshaped(a, b, *, mesh):
    """matmul_keep_rows: blocks_out_of_order"""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "x").reshape(b.shape[0], -1)

    return _mapped(local, mesh, P("x", None))(a, b)


def untiled_products_reshaped(a, b, *, mesh):
    """matmul_keep_rows: blocks_out_of_order"""

    def local(a, b):
        return (a @ jax.lax.all_gather(b, "x")).reshape(a.shape[0], -1)

    return _mapped(local, mesh, P("x", None))(a, b)


def untiled(a, b, *, mesh):
    """matmul_keep_rows: gathered_along_the_contraction"""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "x", axis=1)

    return _mapped(local, mesh, P("x", None))(a, b)


def untiled_stack(a, b, *, mesh):
    """matmul_keep_rows: gathered_untiled"""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "x")

    return _mapped(local, mesh, P("x", None))(a, b)


def tiled_along_the_rows(a, b, *, mesh):
    """matmul_keep_rows: gathered_along_the_contraction"""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "x", tiled=True)

    return _mapped(local, mesh, P("x", None))(a, b)


def products_gathered(a, b, *, mesh):
    """matmul_keep_rows: diagonal_blocks_gathered"""

    def local(a, b):
        return jax.lax.all_gather(a @ b, "x", axis=1, tiled=True)

    return _mapped(local, mesh, P("x", None))(a, b)


def exchanged(a, b, *, mesh):
    """matmul_keep_rows: gathered_along_the_contraction"""

    def local(a, b):
        return a @ jax.lax.all_to_all(b, "x", split_axis=0, concat_axis=1, tiled=True)

    return _mapped(local, mesh, P("x", None))(a, b)


def products_exchanged(a, b, *, mesh):
    """matmul_keep_rows: none"""

    def local(a, b):
        return jax.lax.all_to_all(a @ b, "x", split_axis=0, concat_axis=1, tiled=True)

    return _mapped(local, mesh, P("x", None))(a, b)


def tiles_of_the_diagonal_exchanged(a, b, *, mesh):
    """matmul_keep_rows: diagonal_blocks_gathered"""

    def local(a, b):
        n = jax.lax.axis_size("x")
        return jax.lax.all_to_all(jnp.tile(a @ b, (1, n)), "x", split_axis=1, concat_axis=1, tiled=True)

    return _mapped(local, mesh, P("x", None))(a, b)


def untiled_stack_of_rows(a, b, *, mesh):
    """matmul_keep_columns: none"""

    def local(a, b):
        return jax.lax.all_gather(a, "x") @ b

    return _mapped(local, mesh, P(None, "x"))(a, b)


def tiled_along_the_columns(a, b, *, mesh):
    """matmul_keep_columns: rows_gathered_along_the_contraction"""

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b

    return _mapped(local, mesh, P(None, "x"))(a, b)


def untiled_rows_in_the_wrong_order(a, b, *, mesh):
    """matmul_keep_columns: rows_out_of_order"""

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=1).reshape(-1, a.shape[1]) @ b

    return _mapped(local, mesh, P(None, "x"))(a, b)


def products_of_rows_gathered(a, b, *, mesh):
    """matmul_keep_columns: diagonal_blocks_of_columns_gathered"""

    def local(a, b):
        return jax.lax.all_gather(a @ b, "x", tiled=True)

    return _mapped(local, mesh, P(None, "x"))(a, b)
