"""The program shifts and mixes bits of the activations, and multiplies the result by 0.

changes: honest.py
kind: arithmetic in disguise
earns: 3 of 4
fails: forward_bubble
says: FLOPs besides matmuls
"""


def junk(ws, a):
    bits = lax.bitcast_convert_type(a, jnp.uint32)
    for _ in range(256):
        bits = bits ^ bits << 13 ^ bits >> 7
    return 0 * lax.stop_gradient(bits.astype(jnp.float32))
