import jax


def by_the_library(a):
    """ring_all_to_all: traded_by_built_in"""
    return jax.lax.all_to_all(a, "x", 1, 0, tiled=True)


def as_a_gather(I, J, X):
    """ring_trade_bytes: ring_trade_bytes_of_gather"""
    return (X - 1) / X * I * J * 4


def only_own_blocks(I, J, X):
    """ring_trade_bytes: ring_trade_bytes_without_passing_on"""
    return (X - 1) * I * J * 4 / X**2
