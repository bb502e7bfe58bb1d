"""JAX differentiates all rounds, and keeps the scores of each.

changes: honest.py
kind: no checkpoint
earns: 4.75 of 5
fails: ring_kept
says: the program holds
"""


def ring_attn(q, k, v, *, causal, striped):
    """Attention of a text whose positions are cut over cp, in blocks or in stripes, and its heads over tp.

    Args: blocks of q, k and v float32[T, H, d] (cp, tp, -). causal: a query sees positions up to its own.
    Returns: a block of float32[T, H, d] (cp, tp, -).
    """
    return attend(q, k, v, causal, striped)[0]
