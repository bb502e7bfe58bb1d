"""The program computes a matmul as sums of squares, and multiplies the result by 0.

changes: honest.py
kind: other kernels
earns: 3 of 4
fails: forward_bubble
says: FLOPs besides matmuls
"""


def junk(ws, a):
    return 0 * sum(lax.pow(a[:, :, None] + w, 2.0).sum(1) for w in ws)
