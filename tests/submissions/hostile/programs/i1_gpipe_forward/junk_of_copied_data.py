"""A second product of weights that were copied bit by bit is multiplied by 0.

changes: honest.py
kind: comparisons as data
earns: 3 of 4
fails: forward_bubble
says: FLOPs besides matmuls
"""


def junk(ws, a):
    return 0 * sum((a[:, :, None] * copied(w)).sum(1) for w in ws)
