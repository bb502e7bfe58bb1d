"""The program copies weights bit by bit, computes a second matmul with them, and multiplies the result by 0.

changes: honest.py
kind: comparisons as data
earns: 3 of 4
fails: forward_bubble
says: FLOPs besides matmuls
"""


def junk(ws, a):
    return 0 * sum((a[:, :, None] * copied(w)).sum(1) for w in ws)
