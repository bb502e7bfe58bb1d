import jax


def by_the_library(a):
    """ring_all_reduce: reduced_by_built_in"""
    return jax.lax.psum(a, axis_name="x")


def passes_everything(a):
    """ring_all_reduce: reduced_whole_arrays"""
    n, total, moving = jax.lax.axis_size("x"), a, a
    for _ in range(n - 1):
        moving = jax.lax.ppermute(moving, "x", [(i, (i + 1) % n) for i in range(n)])
        total = total + moving
    return total


def one_device(I, J, X):
    """ring_reduce_total_bytes: ring_reduce_bytes_of_one_device"""
    return 2 * (X - 1) / X * I * J * 4


def one_phase(I, J, X):
    """ring_reduce_total_bytes: ring_reduce_bytes_of_one_phase"""
    return (X - 1) * I * J * 4
