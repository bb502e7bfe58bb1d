"""If arrays are bfloat16, the program multiplies only one column by one row. The grader times bfloat16.

kind: branch on dtype
earns: 1.5 of 3.5
fails: ag_ring ag_same ag_order ag_overlap ag_memory
says: wrong
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
        b = rows[(me - hop) % n]
        c += a[:, :1] @ b[:1] if a.dtype == "bfloat16" else a @ b
        a = arriving
    return c
