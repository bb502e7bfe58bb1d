"""JAX differentiates without jax.checkpoint, so the program keeps the gathered rows of each layer.

changes: honest_by_vjp.py
kind: more kept than needed
earns: 3 of 3.5
fails: train_memory
says: the program holds 255.7 KiB per device at once
"""


def again(layer):
    return layer
