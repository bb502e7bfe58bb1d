"""All devices, weights and seeds share one set of random numbers. Each adds a tiny number of its own.

kind: nearly equal random numbers
earns: 0.25 of 0.75
fails: init_independent
says: nearly equal, or equal but shifted, mirrored or transposed: their correlation is 1.00
"""

import jax


def part(seed, shape, weight):
    same = jax.random.normal(jax.random.key(0), (shape[0] * shape[1],)).reshape(shape)
    return same + 1.7e-4 * (jax.lax.axis_index("tp") + 4 * weight) + 1e-5 * (seed % 1009)


def init(seed, *, D, F):
    units = F // jax.lax.axis_size("tp")
    w1, w3 = (part(seed, (D, units), weight) / D**0.5 for weight in (0, 1))
    return {"w1": w1, "w3": w3, "w2": part(seed, (units, D), 2) / F**0.5}
