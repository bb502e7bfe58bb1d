"""In calls with a memory check, the program gathers dy twice. In other calls, JAX keeps the gathered rows.

kind: branch on size
earns: 2.75 of 3.5
fails: train_norms train_memory
says: each device sends 680.5 KiB
"""

import jax, jax.numpy as jnp


def norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True)) * scale


def norm_back(x, scale, dn):
    over = jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True))
    unit, du = x * over, dn * scale
    return (du - unit * jnp.mean(du * unit, axis=1, keepdims=True)) * over, jnp.sum(dn * unit, axis=0)


def train(x, layers, dy):
    def gather(rows):
        return jax.lax.all_gather(rows, "tp", tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "tp", tiled=True)

    n = jax.lax.axis_size("tp")
    if n != 8:

        def model(x, layers):
            for l in layers:
                x = x + scatter(jnp.tanh(gather(norm(x, l["scale"])) @ l["w1"]) @ l["w2"]) + l["bias"]
            return x

        y, back = jax.vjp(model, x, layers)
        dx, grads = back(dy)
        return y, dx, [g | jax.lax.psum({k: g[k] for k in ("scale", "bias")}, "tp") for g in grads]

    def own(p):
        r = p.shape[0] // n
        return jax.lax.dynamic_slice_in_dim(p, jax.lax.axis_index("tp") * r, r)

    reduce = scatter
    kept, grads = [], []
    for l in layers:
        hidden = jnp.tanh(gather(norm(x, l["scale"])) @ l["w1"])
        kept.append((x, hidden))
        x = x + reduce(hidden @ l["w2"]) + l["bias"]
    y = x
    for l, (x, hidden) in zip(reversed(layers), reversed(kept), strict=True):
        whole = gather(dy)
        back = (whole @ l["w2"].T) * (1 - hidden**2)
        dx, dscale = norm_back(x, l["scale"], reduce(back @ l["w1"].T))
        grad = {"w1": gather(norm(x, l["scale"])).T @ back, "w2": hidden.T @ gather(dy)}
        grads.append(grad | jax.lax.psum({"scale": dscale, "bias": dy.sum(axis=0)}, "tp"))
        dy = dy + dx
    return y, dy, grads[::-1]
