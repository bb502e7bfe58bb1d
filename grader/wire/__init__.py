"""Data that cross process boundaries: frames, plain values, arrays, error texts, limits.

Both sides of every boundary use this folder. Nothing here is secret, and nothing else of this package is imported.
"""
