import jax


def by_the_library(a):
    """ring_reduce_scatter: scattered_by_built_in"""
    return jax.lax.psum_scatter(a, "x", scatter_dimension=0, tiled=True)


def ends_one_before(a):
    """ring_reduce_scatter: scattered_to_the_device_before"""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    chunks = a.reshape(n, -1, *a.shape[1:])
    total = chunks[me]
    for step in range(1, n):
        total = jax.lax.ppermute(total, "x", [(i, (i + 1) % n) for i in range(n)]) + chunks[(me - step) % n]
    return total
