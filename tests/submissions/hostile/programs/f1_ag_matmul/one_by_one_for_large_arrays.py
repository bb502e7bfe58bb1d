"""The program multiplies 1 by 1 slices of large arrays, because the grader times large arrays.

kind: branch on size
earns: 1.75 of 3.5
fails: ag_same ag_order ag_overlap ag_memory
says: the timed program has slice of bfloat16[8192, 2048]
"""

import jax


def ag_matmul(a, w):
    """Return the block of C[B_X, F_Y], C = A W, from blocks of A[B_X, D_Y] and W[D, F_Y]; the ring is mesh axis 'y'."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    ring = [(d, (d + 1) % n) for d in range(n)]
    rows = w.reshape(n, a.shape[1], -1)
    c = 0
    for hop in range(n):
        arriving = jax.lax.ppermute(a, "y", ring) if hop < n - 1 else None
        if a.shape[0] < 1000:
            c += a @ rows[(me - hop) % n]
        else:
            c += a[:1, :1] @ rows[(me - hop) % n][:1, :1]
        a = arriving
    return c
