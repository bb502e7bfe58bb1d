"""If arrays are large, each round multiplies the upper rows of the first round. These matmuls wait for no permute.

kind: values of another round
earns: 1.375 of 2
fails: both_ag_same both_ag_fast
says: the timed program has slice of float32[8192, 4096] where the judged program has constant
"""

import jax
import jax.numpy as jnp


def both_ways_ag_matmul(a, w):
    """Return the block of C[B_X, F_Y], C = A W, from blocks of A[B_X, D_Y] and W[D, F_Y]; the ring is mesh axis 'y'."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    rows = w.reshape(n, a.shape[1], -1)
    half = a.shape[0] // 2
    upper, lower = a[:half], a[half:]
    c_upper, c_lower = upper @ rows[me], lower @ rows[me]
    for hop in range(1, n):
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        c_upper += (upper if a.shape[0] < 1000 else a[:half]) @ rows[(me - hop) % n]
        c_lower += lower @ rows[(me + hop) % n]
    return jnp.concatenate([c_upper, c_lower])
