"""Data that cross process boundaries: frames, plain values, arrays, error texts, limits.

Both sides of every boundary use this folder. Nothing in it is secret, and it imports no other folder of ``grader``.
"""
