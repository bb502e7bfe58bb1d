import jax

from grader.hardware import CHIPS


def keys_of(seed, index):
    return jax.random.split(jax.random.fold_in(jax.random.key(seed), index), 3)


def local_fan_in_other_order(seed, *, D, F):
    """init: scaled_by_own_rows"""
    units = F // jax.lax.axis_size("tp")
    k2, k1, k3 = keys_of(seed, jax.lax.axis_index("tp"))
    return {
        "w3": jax.random.normal(k3, (D, units)) * D**-0.5,
        "w2": jax.random.normal(k2, (units, D)) * units**-0.5,
        "w1": jax.random.normal(k1, (D, units)) * D**-0.5,
    }


def lecun(seed, *, D, F):
    """init: truncated_numbers, scaled_by_own_rows"""
    units = F // jax.lax.axis_size("tp")
    keys, draw = keys_of(seed, jax.lax.axis_index("tp")), jax.nn.initializers.lecun_normal()
    return {"w1": draw(keys[0], (D, units)), "w3": draw(keys[1], (D, units)), "w2": draw(keys[2], (units, D))}


def scaled_by_d_everywhere(seed, *, D, F):
    """init: scaled_by_the_other_dimension"""
    units = F // jax.lax.axis_size("tp")
    key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp"))
    a, key = jax.random.split(key)
    b, c = jax.random.split(key)
    w = {"w1": jax.random.normal(a, (D, units)), "w3": jax.random.normal(b, (D, units))}
    w["w2"] = jax.random.normal(c, (units, D))
    return {name: array / D**0.5 for name, array in w.items()}


def one_key_other_order(seed, *, D, F):
    """init: one_key_for_all_devices"""
    units = F // jax.lax.axis_size("tp")
    c, a, b = jax.random.split(jax.random.key(seed), 3)
    return {
        "w1": jax.random.normal(a, (D, units)) / D**0.5,
        "w3": jax.random.normal(b, (D, units)) / D**0.5,
        "w2": jax.random.normal(c, (units, D)) / F**0.5,
    }


def unscaled(seed, *, D, F):
    """init: none"""
    units = F // jax.lax.axis_size("tp")
    a, b, c = keys_of(seed, jax.lax.axis_index("tp"))
    return {
        "w1": jax.random.normal(a, (D, units)),
        "w3": jax.random.normal(b, (D, units)),
        "w2": jax.random.normal(c, (units, D)),
    }


def whole_units_everywhere(seed, *, D, F):
    """init: all_units_on_each_device"""
    c, b, a = keys_of(seed, jax.lax.axis_index("tp"))
    return {
        "w1": jax.random.normal(a, (D, F)) / D**0.5,
        "w3": jax.random.normal(b, (D, F)) / D**0.5,
        "w2": jax.random.normal(c, (F, D)) / F**0.5,
    }


def back(x, w1, w3, w2, dy):
    gate, up = x @ w1, x @ w3
    hidden, pull = jax.vjp(lambda g, u: jax.nn.silu(g) * u, gate, up)
    return hidden, pull(dy @ w2.T)


def bias_before_the_sum(x, w1, w3, w2, b, dy):
    """gated_mlp: bias_inside_the_sum"""
    hidden, (dgate, dup) = back(x, w1, w3, w2, dy)
    y = jax.lax.psum(hidden @ w2 + b[None], "tp")
    dx = jax.lax.psum(dgate @ w1.T + dup @ w3.T, "tp")
    return y, {"x": dx, "w1": x.T @ dgate, "w3": x.T @ dup, "w2": hidden.T @ dy, "b": dy.sum(0)}


def own_dx(x, w1, w3, w2, b, dy):
    """gated_mlp: dx_left_partial"""
    hidden, (dgate, dup) = back(x, w1, w3, w2, dy)
    y = jax.lax.psum(hidden @ w2, "tp") + b
    return y, {"x": dup @ w3.T + dgate @ w1.T, "w1": x.T @ dgate, "w3": x.T @ dup, "w2": hidden.T @ dy, "b": dy.sum(0)}


def two_sums_for_dx(x, w1, w3, w2, b, dy):
    """gated_mlp: dx_summed_in_two"""
    hidden, (dgate, dup) = back(x, w1, w3, w2, dy)
    dx = jax.lax.psum(dup @ w3.T, "tp") + jax.lax.psum(dgate @ w1.T, "tp")
    y = b + jax.lax.psum(hidden @ w2, "tp")
    return y, {"x": dx, "w1": x.T @ dgate, "w3": x.T @ dup, "w2": hidden.T @ dy, "b": dy.sum(0)}


def all_by_vjp_of_psum(x, w1, w3, w2, b, dy):
    """gated_mlp: copies_of_dy_summed"""

    def whole(x, w1, w3, w2, b):
        return jax.lax.psum((jax.nn.silu(x @ w1) * (x @ w3)) @ w2, "tp") + b

    y, pull = jax.vjp(whole, x, w1, w3, w2, b)
    dx, dw1, dw3, dw2, db = pull(dy)
    return y, {"x": jax.lax.psum(dx, "tp"), "w1": dw1, "w3": dw3, "w2": dw2, "b": db}


def _fwd(x, w1, w3, w2):
    a, c = x @ w1, x @ w3
    s = jax.nn.sigmoid(a)
    return a, c, s, a * s * c


def _bwd(x, w1, w3, w2, dy):
    a, c, s, h = _fwd(x, w1, w3, w2)
    dh = dy @ w2.T
    da = dh * c * (s + a * s * (1 - s))
    dc = dh * a * s
    return da, dc, {"w1": x.T @ da, "w3": x.T @ dc, "w2": h.T @ dy, "b": dy.sum(0)}


def bias_inside_the_sum(x, w1, w3, w2, b, dy):
    """gated_mlp: bias_inside_the_sum"""
    *_, h = _fwd(x, w1, w3, w2)
    da, dc, grads = _bwd(x, w1, w3, w2, dy)
    grads["x"] = jax.lax.psum(da @ w1.T + dc @ w3.T, "tp")
    return jax.lax.psum(h @ w2 + b, "tp"), grads


def a_sum_for_each_branch(x, w1, w3, w2, b, dy):
    """gated_mlp: dx_summed_in_two"""
    *_, h = _fwd(x, w1, w3, w2)
    da, dc, grads = _bwd(x, w1, w3, w2, dy)
    grads["x"] = jax.lax.psum(da @ w1.T, "tp") + jax.lax.psum(dc @ w3.T, "tp")
    return jax.lax.psum(h @ w2, "tp") + b, grads


def dx_of_the_own_units(x, w1, w3, w2, b, dy):
    """gated_mlp: dx_left_partial"""
    *_, h = _fwd(x, w1, w3, w2)
    da, dc, grads = _bwd(x, w1, w3, w2, dy)
    grads["x"] = da @ w1.T + dc @ w3.T
    return jax.lax.psum(h @ w2, "tp") + b, grads


def lets_jax_transpose_the_psum(x, w1, w3, w2, b, dy):
    """gated_mlp: copies_of_dy_summed"""

    def forward(p):
        h = jax.nn.silu(p["x"] @ p["w1"]) * (p["x"] @ p["w3"])
        return jax.lax.psum(h @ p["w2"], "tp") + p["b"]

    y, back = jax.vjp(forward, {"x": x, "w1": w1, "w3": w3, "w2": w2, "b": b})
    (grads,) = back(dy)
    grads["x"] = jax.lax.psum(grads["x"], "tp")
    return y, grads


def equal_keys_on_all_devices(seed, *, D, F):
    """init: one_key_for_all_devices"""
    n = jax.lax.axis_size("tp")
    k1, k3, k2 = jax.random.split(jax.random.key(seed), 3)
    return {
        "w1": jax.random.normal(k1, (D, F // n)) / D**0.5,
        "w3": jax.random.normal(k3, (D, F // n)) / D**0.5,
        "w2": jax.random.normal(k2, (F // n, D)) / F**0.5,
    }


def alternates_single_columns(F, N):
    """fused_columns: gate_and_up_by_turns"""
    if F % N:
        raise ValueError("N does not divide F")
    order = []
    for unit in range(F):
        order += [unit, F + unit]
    return order


def forward_all_reduce_only(chip, B, D, F, N):
    """gated_mlp_time: gated_mlp_time_reduced_once"""
    c = CHIPS[chip]
    return 18 * B * D * F / N / c.bf16 + 2 * (2 * B * D) / (2 * c.ici)


def backward_like_forward(chip, B, D, F, N):
    """gated_mlp_time: gated_mlp_time_without_gate"""
    c = CHIPS[chip]
    return 2 * (6 * B * D * F / N / c.bf16 + 2 * (2 * B * D) / (2 * c.ici))


def links_one_way(chip, B, D, F, N):
    """gated_mlp_time: gated_mlp_time_one_way"""
    c = CHIPS[chip]
    return 18 * B * D * F / N / c.bf16 + 2 * 2 * (2 * B * D) / c.ici


def up_drawn_first_with_one_key(seed, *, D, F):
    """init: one_key_for_gate_and_up"""
    units = F // jax.lax.axis_size("tp")
    key2, key = jax.random.split(jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp")))
    w3 = jax.random.normal(key, (D, units)) / D**0.5
    w1 = jax.random.normal(key, (D, units)) / D**0.5
    return {"w1": w1, "w3": w3, "w2": jax.random.normal(key2, (units, D)) / F**0.5}


def up_drawn_first_on_all_devices(seed, *, D, F):
    """init: one_key_for_all_devices"""
    units, key = F // jax.lax.axis_size("tp"), jax.random.key(seed)
    key, sub = jax.random.split(key)
    w3 = jax.random.normal(sub, (D, units)) / D**0.5
    key, sub = jax.random.split(key)
    w1 = jax.random.normal(sub, (D, units)) / D**0.5
    return {"w1": w1, "w3": w3, "w2": jax.random.normal(key, (units, D)) / F**0.5}


def up_drawn_first_by_adding(seed, *, D, F):
    """init: device_added_to_the_seed"""
    units = F // jax.lax.axis_size("tp")
    k3, k1, k2 = jax.random.split(jax.random.key(seed + jax.lax.axis_index("tp")), 3)
    w3, w1 = (jax.random.normal(key, (D, units)) / D**0.5 for key in (k3, k1))
    return {"w1": w1, "w3": w3, "w2": jax.random.normal(k2, (units, D)) / F**0.5}


def up_before_gate(F, N):
    """fused_columns: up_before_gate"""
    if F % N:
        raise ValueError("N does not divide F")
    order = []
    for device in range(N):
        own = range(device * F // N, (device + 1) * F // N)
        order += [F + i for i in own] + list(own)
    return order


def gate_from_w3(x, w1, w3, w2, b, dy):
    """gated_mlp: silu_of_the_other"""
    y, pull = jax.vjp(lambda x, w1, w3, w2: (jax.nn.silu(x @ w3) * (x @ w1)) @ w2, x, w1, w3, w2)
    dx, dw1, dw3, dw2 = pull(dy)
    grads = {"x": jax.lax.psum(dx, "tp"), "w1": dw1, "w3": dw3, "w2": dw2, "b": dy.sum(0)}
    return jax.lax.psum(y, "tp") + b, grads


def gate_from_w3_forward(x, w1, w3, w2, b, dy):
    """gated_mlp: silu_of_the_other_forward"""
    *_, h = _fwd(x, w3, w1, w2)
    da, dc, grads = _bwd(x, w1, w3, w2, dy)
    grads["x"] = jax.lax.psum(da @ w1.T + dc @ w3.T, "tp")
    return jax.lax.psum(h @ w2, "tp") + b, grads


def names_of_gate_and_up_exchanged(x, w1, w3, w2, b, dy):
    """gated_mlp: gate_and_up_exchanged"""
    *_, h = _fwd(x, w1, w3, w2)
    da, dc, grads = _bwd(x, w1, w3, w2, dy)
    grads |= {"w1": grads["w3"], "w3": grads["w1"], "x": jax.lax.psum(da @ w1.T + dc @ w3.T, "tp")}
    return jax.lax.psum(h @ w2, "tp") + b, grads


def weights_of_gate_and_up_exchanged(x, w1, w3, w2, b, dy):
    """gated_mlp: gate_and_up_exchanged_for_dx"""
    *_, h = _fwd(x, w1, w3, w2)
    da, dc, grads = _bwd(x, w1, w3, w2, dy)
    grads["x"] = jax.lax.psum(da @ w3.T + dc @ w1.T, "tp")
    return jax.lax.psum(h @ w2, "tp") + b, grads
