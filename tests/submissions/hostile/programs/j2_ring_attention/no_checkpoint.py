"""JAX differentiates all rounds, and keeps the scores of each round.

changes: honest.py
kind: no checkpoint
earns: 4.75 of 5
fails: ring_kept
says: the program holds
"""


def ring_attn(q, k, v, *, causal, striped):
    """Return the attention of a text. cp cuts its positions, in blocks or in stripes, and tp cuts its heads.

    Args: one device's q, k and v, blocks of float32[T, H, d] sharded P('cp', 'tp'). causal: a query sees positions up to its own.
        striped: device i has every N-th position, from i on.
    Returns: one device's block of float32[T, H, d] sharded P('cp', 'tp').
    """
    return attend(q, k, v, causal, striped)[0]
