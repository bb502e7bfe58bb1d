"""The matmuls wait for all hops. The program repeats them beside the hops, for a mask that is never true.

kind: a mask that is never true
earns: 1.75 of 3.5
fails: ag_same ag_order ag_overlap ag_memory
says: FLOPs on matmuls
"""

import jax


def ag_matmul(a, w):
    """Return the block of C[B_X, F_Y], C = A W, from blocks of A[B_X, D_Y] and W[D, F_Y]; the ring is mesh axis 'y'."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    ring = [(d, (d + 1) % n) for d in range(n)]
    rows = w.reshape(n, a.shape[1], -1)
    idle, shards = 0, [a]
    for hop in range(n):
        idle += shards[-1] @ rows[(me - hop) % n]
        if hop < n - 1:
            shards.append(jax.lax.ppermute(shards[-1], "y", ring))
    shards = jax.lax.optimization_barrier(shards)
    c = sum(shard @ rows[(me - hop) % n] for hop, shard in enumerate(shards))
    return jax.numpy.where(idle == jax.numpy.inf, idle, c)
