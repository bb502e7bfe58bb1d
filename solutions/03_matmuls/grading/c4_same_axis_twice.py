"""Misconceptions of C4."""

import jax
from jax.sharding import PartitionSpec as P

from c4_same_axis_twice import (
    cheaper_gather_time,
    exercise,
    keep_columns_budget,
    keep_columns_layout,
    keep_columns_value,
    keep_rows_budget,
    keep_rows_layout,
    keep_rows_value,
    matmul_keep_columns,
    matmul_keep_rows,
)
from grader.exercise import Scenario, larger
from grader.hardware import all_gather_time, latency


@exercise.misconception(of=matmul_keep_rows, fails=keep_rows_value, breaks="C equals A @ B")
def diagonal_blocks_summed(a, b, *, mesh):
    """You added the products of different devices. Each product is another block of C, on its diagonal: gather B, and add nothing."""

    def local(a, b):
        return jax.lax.psum(jax.numpy.tile(a @ b, (1, jax.lax.axis_size("x"))), "x")

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma=False)(a, b)


@exercise.misconception(
    of=matmul_keep_rows, fails=keep_rows_value, breaks=["C equals A @ B", "devices must gather one operand"]
)
def diagonal_blocks(a, b, *, mesh):
    """You multiplied the local blocks. Device x then has only block (x, x) of C and no block off the diagonal. Gather B first."""

    def local(a, b):
        return a @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


@exercise.misconception(of=matmul_keep_rows, fails=keep_rows_value, breaks="C equals A @ B")
def diagonal_blocks_gathered(a, b, *, mesh):
    """You gathered products of local blocks. Each of these products is a block of C's diagonal, in other rows: gather B before you multiply."""

    def local(a, b):
        return jax.lax.all_gather(a @ b, "x", axis=1, tiled=True)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


@exercise.misconception(of=matmul_keep_rows, fails=keep_rows_value, breaks="C equals A @ B")
def blocks_out_of_order(a, b, *, mesh):
    """The blocks of B or C are joined in the wrong order. Without tiled=True, all_gather adds a first dimension for the devices, and a reshape then mixes rows and columns. Gather B with axis=1, tiled=True."""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "x").reshape(b.shape[0], -1)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


@exercise.misconception(form_of=blocks_out_of_order)
def products_out_of_order(a, b, *, mesh):
    """Like `blocks_out_of_order`, but the products are reshaped."""

    def local(a, b):
        return (a @ jax.lax.all_gather(b, "x")).reshape(a.shape[0], -1)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


@exercise.misconception(of=matmul_keep_rows, fails=keep_rows_value, breaks="C equals A @ B")
def gathered_untiled(a, b, *, mesh):
    """You gathered B without tiled=True. all_gather then adds a dimension for the devices, and so your result has three dimensions. Gather B with axis=1, tiled=True."""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "x")

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


@exercise.misconception(of=matmul_keep_rows, fails=keep_rows_value, breaks="C equals A @ B")
def gathered_along_the_contraction(a, b, *, mesh):
    """After your collective, B does not have J rows, so a device cannot multiply its rows of A by B. Join the blocks of B along their columns, in one array of two dimensions: all_gather with axis=1, tiled=True."""

    def local(a, b):
        return a @ jax.lax.all_gather(b, "x", tiled=True)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


@exercise.misconception(form_of=gathered_along_the_contraction)
def exchanged_for_the_gather(a, b, *, mesh):
    """Like `gathered_along_the_contraction`, with an all-to-all, which cuts the rows of B."""

    def local(a, b):
        return a @ jax.lax.all_to_all(b, "x", split_axis=0, concat_axis=1, tiled=True)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


@exercise.misconception(of=matmul_keep_rows, fails=keep_rows_layout, breaks='C is sharded `P("x", None)`')
def gathered_rows_for_rows(a, b, *, mesh):
    """You gathered A, so C came out cut by columns. To keep the rows of A, gather B."""

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


@exercise.misconception(of=matmul_keep_columns, fails=keep_columns_value, breaks="C equals A @ B")
def diagonal_blocks_of_columns(a, b, *, mesh):
    """You multiplied the local blocks. Device x then has only block (x, x) of C and no block off the diagonal. Gather A first."""

    def local(a, b):
        return a @ b

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


@exercise.misconception(of=matmul_keep_columns, fails=keep_columns_value, breaks="C equals A @ B")
def diagonal_blocks_of_columns_gathered(a, b, *, mesh):
    """You gathered products of local blocks. Each of these products is a block of C's diagonal, in other columns: gather A before you multiply."""

    def local(a, b):
        return jax.lax.all_gather(a @ b, "x", axis=0, tiled=True)

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(None, "x"))(a, b)


@exercise.misconception(of=matmul_keep_columns, fails=keep_columns_value, breaks="C equals A @ B")
def rows_out_of_order(a, b, *, mesh):
    """The rows of A are joined in the wrong order. Without tiled=True, all_gather adds a dimension for the devices, and a reshape joins them in order only if this dimension is the first. Gather A with axis=0, tiled=True."""

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=1).reshape(-1, a.shape[1]) @ b

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(None, "x"))(a, b)


@exercise.misconception(of=matmul_keep_columns, fails=keep_columns_value, breaks="C equals A @ B")
def rows_gathered_along_the_contraction(a, b, *, mesh):
    """After your collective, A does not have J columns, so a device cannot multiply A by its columns of B. Join the blocks of A along their rows, in one array of two dimensions: all_gather with axis=0, tiled=True."""

    def local(a, b):
        return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b

    specs = (P("x", None), P(None, "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(None, "x"))(a, b)


@exercise.misconception(of=matmul_keep_columns, fails=keep_columns_layout, breaks='or `P(None, "x")`')
def gathered_columns_for_columns(a, b, *, mesh):
    """You gathered B, so C came out cut by rows. To keep the columns of B, gather A."""
    return matmul_keep_rows(a, b, mesh=mesh)


@exercise.misconception(
    of=matmul_keep_columns,
    fails=keep_columns_budget,
    breaks=["in `shard_map`, one all-gather over x, no other collective", "1/X of the FLOPs"],
)
def gathered_both(a, b, *, mesh):
    """You gathered both operands, and every device computed all of C. One all-gather is enough: your columns of C need only your columns of B."""

    def local(a, b):
        c = jax.lax.all_gather(a, "x", axis=0, tiled=True) @ jax.lax.all_gather(b, "x", axis=1, tiled=True)
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * b.shape[1], b.shape[1], axis=1)

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


@exercise.misconception(
    of=matmul_keep_rows,
    fails=keep_rows_budget,
    breaks=["one all-gather over x, no other collective", "1/X of the FLOPs"],
)
def gathered_both_for_rows(a, b, *, mesh):
    """You gathered both operands, and every device computed all of C. One all-gather is enough: your rows of C need only your rows of A."""

    def local(a, b):
        c = jax.lax.all_gather(a, "x", axis=0, tiled=True) @ jax.lax.all_gather(b, "x", axis=1, tiled=True)
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * a.shape[0], a.shape[0])

    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


@exercise.misconception(of=matmul_keep_rows, fails=keep_rows_budget, breaks="in `shard_map`")
def rows_by_compiler(a, b, *, mesh):
    """You asked the compiler for the layout. With jax.shard_map you gather and multiply yourself."""
    return jax.lax.with_sharding_constraint(a @ b, jax.NamedSharding(mesh, P("x", None)))


@exercise.misconception(of=matmul_keep_columns, fails=keep_columns_budget, breaks="in `shard_map`")
def columns_by_compiler(a, b, *, mesh):
    """You asked the compiler for the layout. With jax.shard_map you gather and multiply yourself."""
    return jax.lax.with_sharding_constraint(a @ b, jax.NamedSharding(mesh, P(None, "x")))


@exercise.misconception(of=cheaper_gather_time)
def dearer_gather(chip, I, J, K, X):
    """You gathered the larger operand. Gather the smaller operand. C is then cut in the same dimension as the larger operand, which the question allows."""
    return all_gather_time(2 * max(I, K) * J, X, chip)


@exercise.misconception(of=cheaper_gather_time)
def gather_one_way(chip, I, J, K, X):
    """You used one direction of the link. On a ring data flows both ways."""
    return 2 * all_gather_time(2 * min(I, K) * J, X, chip)


@exercise.misconception(of=cheaper_gather_time)
def gather_of_both(chip, I, J, K, X):
    """You gathered both operands. Gather one operand: the other operand may stay cut."""
    return all_gather_time(2 * (I + K) * J, X, chip)


@exercise.misconception(of=cheaper_gather_time)
def gather_of_a_shard(chip, I, J, K, X):
    """You counted one shard. V is the bytes of the gathered array."""
    return all_gather_time(2 * min(I, K) * J / X, X, chip)


@exercise.misconception(of=cheaper_gather_time)
def gather_elements(chip, I, J, K, X):
    """You counted numbers, not bytes. A bfloat16 takes 2 bytes."""
    return all_gather_time(min(I, K) * J, X, chip)


exercise.scenario(
    cheaper_gather_time,
    lambda chip, I, J, K, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((I, J), P("x")), ((J, K), P(None, "x"))], least=latency(X),
        branches=(larger(gather_b=I, gather_a=K),),
    ),
)  # fmt: skip
