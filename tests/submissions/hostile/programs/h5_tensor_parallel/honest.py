"""The reference solution."""

import jax


def init(seed, *, D, F):
    units = F // jax.lax.axis_size("tp")
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp")), 3)
    w1, w3 = (jax.random.normal(key, (D, units)) / D**0.5 for key in keys[:2])
    return {"w1": w1, "w3": w3, "w2": jax.random.normal(keys[2], (units, D)) / F**0.5}
