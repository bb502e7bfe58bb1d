import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.hardware import CHIPS
from m2_train_step import LIMIT, PARAMS, RATE, ROWS, norm, on_device


def length_of(grads):
    cut = sum(jnp.sum(grads[name] ** 2) for name in ("qkv", "out", "up", "down"))
    whole = jnp.sum(grads["before"] ** 2) + jnp.sum(grads["between"] ** 2)
    return jnp.sqrt(jax.lax.psum(cut, "tp") + whole)


def clipped(p, g, length):
    return p - RATE * g * jnp.minimum(1, LIMIT / length)


def step(params, x, y, mesh, length=length_of, share=None, update=clipped):
    def local(params, x, y):
        def loss_of(params):
            every = share or mesh.shape["dp"] * mesh.shape["sp"]
            return jnp.mean((on_device(params, x) - y) ** 2) / every

        loss, grads = jax.value_and_grad(loss_of)(params)
        n = length(grads)
        return jax.tree.map(lambda p, g: update(p, g, n), params, grads), jax.lax.psum(loss, ("dp", "sp")), n

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, **specs)(params, x, y)


def norm_counts_copies(params, x, y, *, mesh):
    """train_step: norm_counts_copies
    Row: the norm counts copies: the squares of the whole scales are summed over tp, too."""

    def length(grads):
        own = {k: jax.lax.pcast(g, "tp", to="varying") if k in ("before", "between") else g for k, g in grads.items()}
        return jnp.sqrt(jax.lax.psum(sum(jnp.vdot(g, g) for g in own.values()), "tp"))

    return step(params, x, y, mesh, length)


def norms_added(params, x, y, *, mesh):
    """train_step: norms_of_devices_added, norms_of_all_parts_added, norms_of_parameters_added
    Row: norms, not squares, are added over tp."""

    def length(grads):
        whole = jnp.sum(grads["before"] ** 2) + jnp.sum(grads["between"] ** 2)
        cut = sum(jnp.sum(grads[name] ** 2) for name in ("qkv", "out", "up", "down"))
        return jax.lax.psum(jnp.sqrt(cut), "tp") + jnp.sqrt(whole)

    return step(params, x, y, mesh, length)


def own_means_added(params, x, y, *, mesh):
    """train_step: each_device_its_mean
    Row: denominators differ: each device's mean is added, not divided by the number of devices."""
    return step(params, x, y, mesh, share=1)


def divided_by_dp_only(params, x, y, *, mesh):
    """train_step: mean_over_the_batch_only
    Row: denominators differ: the mean counts dp, but not sp."""
    return step(params, x, y, mesh, share=mesh.shape["dp"])


def always_clipped(params, x, y, *, mesh):
    """train_step: always_of_one_length
    Row: the gradient always gets the length LIMIT."""
    return step(params, x, y, mesh, update=lambda p, g, n: p - RATE * g * LIMIT / n)


def never_clipped(params, x, y, *, mesh):
    """train_step: never_clipped
    Row: the gradient is not clipped."""
    return step(params, x, y, mesh, update=lambda p, g, n: p - RATE * g)


def each_array_clipped(params, x, y, *, mesh):
    """train_step: clipped_one_by_one
    Row: each parameter is clipped by the norm of its own gradient, on each device by that of its part."""

    def update(p, g, n):
        return p - RATE * g * jnp.minimum(1, LIMIT / jnp.maximum(jnp.linalg.norm(g.ravel()), 1e-9))

    return step(params, x, y, mesh, update=update)


def flat_step(params, x, y, mesh, divisor=1, after=lambda g: g, factor=None, vma=True):
    # a step on one flat list of gradients; `after` changes a gradient, `factor` depends on the norm
    every = mesh.shape["dp"] * mesh.shape["sp"] * divisor
    factor = factor or (lambda n: jnp.where(n > LIMIT, LIMIT / n, 1))

    def local(params, x, y):
        def loss_of(params):
            return jnp.sum(jnp.square(on_device(params, x) - y)) / (y.size * every)

        loss, grads = jax.value_and_grad(loss_of)(params)
        grads = {name: after(g) for name, g in grads.items()}
        n = length_of(grads)
        new = {name: params[name] - factor(n) * RATE * g for name, g in grads.items()}
        return new, jax.lax.psum(loss, ("dp", "sp")), n

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, check_vma=vma, **specs)(params, x, y)


def ratio_upside_down(params, x, y, *, mesh):
    """train_step: ratio_upside_down
    The factor is norm / LIMIT."""
    return step(params, x, y, mesh, update=lambda p, g, n: p - RATE * g * jnp.minimum(1, n / LIMIT))


def ratio_upside_down_flat(params, x, y, *, mesh):
    """train_step: ratio_upside_down
    The factor is norm / LIMIT."""
    return flat_step(params, x, y, mesh, factor=lambda n: jnp.where(n < LIMIT, n / LIMIT, 1))


def at_least_one(params, x, y, *, mesh):
    """train_step: always_of_one_length
    max in place of min: small gradients are enlarged, and large ones are not scaled."""
    return step(params, x, y, mesh, update=lambda p, g, n: p - RATE * g * jnp.maximum(1, LIMIT / n))


def without_rate(params, x, y, *, mesh):
    """train_step: without_rate"""
    return step(params, x, y, mesh, update=lambda p, g, n: p - g * jnp.minimum(1, LIMIT / n))


def without_rate_flat(params, x, y, *, mesh):
    """train_step: without_rate"""
    return flat_step(params, x, y, mesh, factor=lambda n: jnp.minimum(1, LIMIT / n) / RATE)


def each_number_clipped(params, x, y, *, mesh):
    """train_step: never_clipped
    Each number of the gradient is clipped at LIMIT, not the norm."""
    return step(params, x, y, mesh, update=lambda p, g, n: p - RATE * jnp.clip(g, -LIMIT, LIMIT))


def gradients_averaged_again(params, x, y, *, mesh):
    """train_step: gradients_divided_twice
    The loss is divided by all numbers, and the gradients are divided by the devices again."""
    return flat_step(params, x, y, mesh, after=lambda g: g / (mesh.shape["dp"] * mesh.shape["sp"]))


def gradients_divided_in_the_norm(params, x, y, *, mesh):
    """train_step: gradients_divided_twice
    As `gradients_averaged_again`, with the norm of the divided gradients."""
    n = mesh.shape["dp"] * mesh.shape["sp"]

    def update(p, g, length):
        return p - RATE * g / n * jnp.minimum(1, LIMIT / length)

    return step(params, x, y, mesh, length=lambda grads: length_of(grads) / n, update=update)


def types_off_summed(params, x, y, *, mesh):
    """train_step: types_off
    With check_vma=False, the gradients are summed over dp and sp, but the transpose of psum sums over tp again."""
    return flat_step(params, x, y, mesh, after=lambda g: jax.lax.psum(g, ("dp", "sp")), vma=False)


def rate_in_the_norm(params, x, y, *, mesh):
    """train_step: norm_of_the_step
    The norm is that of RATE * g."""

    def update(p, g, n):
        return p - RATE * g * jnp.minimum(1, LIMIT / n)

    return step(params, x, y, mesh, length=lambda grads: RATE * length_of(grads), update=update)


def half_of_the_mean(params, x, y, *, mesh):
    """train_step: divided_by_every_device
    The loss has a factor 1/2."""
    return flat_step(params, x, y, mesh, divisor=2)


def own_mean_differentiated(params, x, y, *, mesh):
    """train_step: summed_again
    Each device differentiates its own mean; only the loss is averaged over the devices."""

    def local(params, x, y):
        loss, grads = jax.value_and_grad(lambda params: jnp.mean((on_device(params, x) - y) ** 2))(params)
        n = length_of(grads)
        new = jax.tree.map(lambda p, g: clipped(p, g, n), params, grads)
        return new, jax.lax.pmean(loss, ("dp", "sp")), n

    specs = {"in_specs": (PARAMS, ROWS, ROWS), "out_specs": (PARAMS, P(), P())}
    return jax.shard_map(local, mesh=mesh, **specs)(params, x, y)


def _device(params, x):
    n = norm(x, params["before"])
    q, k, v = jnp.einsum("btd,dchk->cbthk", n, params["qkv"])
    k, v = (jax.lax.all_gather(a, "sp", axis=1, tiled=True) for a in (k, v))
    T = x.shape[1]
    here = jax.lax.axis_index("sp") * T + jnp.arange(T)
    s = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    s = jnp.where(here[:, None] >= jnp.arange(k.shape[1])[None], s, -1e30)
    o = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(s, -1), v)
    x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", o, params["out"]), "tp")
    n = norm(x, params["between"])
    return x + jax.lax.psum(jax.nn.silu(n @ params["up"]) @ params["down"], "tp")


def _squares(g):
    own = {n: jnp.sum(a * a) for n, a in g.items()}
    cut = sum(own[n] for n in own if n not in ("before", "between"))
    return own["before"] + own["between"] + jax.lax.psum(cut, "tp")


def _step(params, x, y, mesh, finish):
    count = y.size

    def local(params, x, y):
        def loss(params):
            return jax.lax.psum(jnp.sum((_device(params, x) - y) ** 2), ("dp", "sp")) / count

        value, g = jax.value_and_grad(loss)(params)
        return finish(params, value, g, lambda p: loss(p))

    specs = (PARAMS, ROWS, ROWS)
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(PARAMS, P(), P()))(params, x, y)


def norm_after_clipping(params, x, y, *, mesh):
    """train_step: norm_after_clipping"""

    def finish(p, value, g, loss):
        length = jnp.sqrt(_squares(g))
        g = {n: a * jnp.minimum(1, LIMIT / length) for n, a in g.items()}
        return {n: p[n] - RATE * g[n] for n in p}, value, jnp.sqrt(_squares(g))

    return _step(params, x, y, mesh, finish)


def square_of_the_norm(params, x, y, *, mesh):
    """train_step: norm_not_rooted"""

    def finish(p, value, g, loss):
        length = _squares(g)
        factor = jnp.minimum(1, LIMIT / length)
        return {n: p[n] - RATE * factor * g[n] for n in p}, value, length

    return _step(params, x, y, mesh, finish)


def loss_after_the_step(params, x, y, *, mesh):
    """train_step: loss_after_the_step"""

    def finish(p, value, g, loss):
        length = jnp.sqrt(_squares(g))
        new = {n: p[n] - RATE * jnp.minimum(1, LIMIT / length) * g[n] for n in p}
        return new, loss(new), length

    return _step(params, x, y, mesh, finish)


def _forward(p, x, offset=True):
    n = norm(x, p["before"])
    q, k, v = jnp.einsum("btd,dchk->cbthk", n, p["qkv"])
    k = jax.lax.all_gather(k, "sp", axis=1, tiled=True)
    v = jax.lax.all_gather(v, "sp", axis=1, tiled=True)
    own = jnp.arange(q.shape[1])
    if offset:
        own = own + jax.lax.axis_index("sp") * q.shape[1]
    scores = jnp.einsum("bthk,bshk->bhts", q, k) * q.shape[-1] ** -0.5
    scores = jnp.where(own[:, None] >= jnp.arange(k.shape[1]), scores, -jnp.inf)
    heads = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores, axis=-1), v)
    x = x + jax.lax.psum(jnp.einsum("bthk,hkd->btd", heads, p["out"]), "tp")
    n = norm(x, p["between"])
    return x + jax.lax.psum(jax.nn.silu(n @ p["up"]) @ p["down"], "tp")


def _again_step(mesh, body):
    return jax.shard_map(body, mesh=mesh, in_specs=(PARAMS, ROWS, ROWS), out_specs=(PARAMS, P(), P()))


def _whole_loss(p, x, y, **more):
    e = _forward(p, x, **more) - y
    return jax.lax.pmean(jnp.mean(e**2), ("dp", "sp"))


def _square_norm(g):
    cut = sum(jnp.sum(g[n] ** 2) for n in ("qkv", "out", "up", "down"))
    return jax.lax.psum(cut, "tp") + jnp.sum(g["before"] ** 2) + jnp.sum(g["between"] ** 2)


def _loss_and_grads(p, x, y):
    return jax.value_and_grad(_whole_loss)(p, x, y)


def _norm_of(g):
    return jnp.sqrt(_square_norm(g))


def _clipped_step(mesh, params, x, y, *, loss_and_grads=_loss_and_grads, norm_of=_norm_of):
    def body(p, x, y):
        loss, g = loss_and_grads(p, x, y)
        size = norm_of(g)
        scale = jnp.minimum(1, LIMIT / size)
        return jax.tree.map(lambda a, b: a - RATE * scale * b, p, g), loss, size

    return _again_step(mesh, body)(params, x, y)


def whole_parameters_counted_tp_times(params, x, y, *, mesh):
    """train_step: norm_counts_copies"""

    def norm_of(g):
        return jnp.sqrt(jax.lax.psum(sum(jnp.sum(v**2) for v in g.values()), "tp"))

    return _clipped_step(mesh, params, x, y, norm_of=norm_of)


def averages_the_norms(params, x, y, *, mesh):
    """train_step: norms_averaged"""

    def norm_of(g):
        return jax.lax.pmean(jnp.sqrt(sum(jnp.sum(v**2) for v in g.values())), "tp")

    return _clipped_step(mesh, params, x, y, norm_of=norm_of)


def gradient_of_the_device_mean(params, x, y, *, mesh):
    """train_step: summed_again"""

    def own_mean(p, x, y):
        loss, g = jax.value_and_grad(lambda p: jnp.mean((_forward(p, x) - y) ** 2))(p)
        return jax.lax.pmean(loss, ("dp", "sp")), g

    return _clipped_step(mesh, params, x, y, loss_and_grads=own_mean)


def clips_each_array(params, x, y, *, mesh):
    """train_step: clipped_one_by_one"""

    def body(p, x, y):
        loss, g = jax.value_and_grad(_whole_loss)(p, x, y)
        size = _norm_of(g)
        new = {}
        for name, grad in g.items():
            square = jnp.sum(grad**2)
            if "tp" in PARAMS[name]:
                square = jax.lax.psum(square, "tp")
            new[name] = p[name] - RATE * grad * jnp.minimum(1, LIMIT / jnp.sqrt(square))
        return new, loss, size

    return _again_step(mesh, body)(params, x, y)


def mask_counts_from_zero_everywhere(params, x, y, *, mesh):
    """train_step: mask_from_zero"""

    def masked_from_zero(p, x, y):
        return _whole_loss(p, x, y, offset=False)

    return _clipped_step(mesh, params, x, y, loss_and_grads=jax.value_and_grad(masked_from_zero))


def norm_after_the_clip(params, x, y, *, mesh):
    """train_step: norm_after_clipping"""

    def body(p, x, y):
        loss, g = jax.value_and_grad(_whole_loss)(p, x, y)
        size = _norm_of(g)
        g = jax.tree.map(lambda a: a * jnp.minimum(1, LIMIT / size), g)
        return jax.tree.map(lambda a, b: a - RATE * b, p, g), loss, _norm_of(g)

    return _again_step(mesh, body)(params, x, y)


def _times(chip, dp, sp, tp, T, D):
    c = CHIPS[chip]
    t = T // sp
    matmuls = 3 * (2 * 12 * D * D * t + 2 * 2 * t * T * D) / tp / c.bf16
    rows = 4 * 2 * (2 * t * D) / (2 * c.ici)
    keys = 2 * 2 * (2 * T * D / tp) / (2 * c.ici)
    grads = 2 * 12 * D * D * 2 / tp / (4 * c.ici)
    return matmuls, rows, keys, grads


def gradients_exposed(chip, dp, sp, tp, short, long, D):
    """block_step: step_all_in_turn"""
    return {name: sum(_times(chip, dp, sp, tp, T, D)) for name, T in (("short", short), ("long", long))}


def rows_only_in_the_forward_pass(chip, dp, sp, tp, short, long, D):
    """block_step: step_with_rows_forward_only"""
    found = {}
    for name, T in (("short", short), ("long", long)):
        matmuls, rows, keys, grads = _times(chip, dp, sp, tp, T, D)
        found[name] = matmuls / 3 + rows / 2 + keys + max(matmuls * 2 / 3, grads)
    return found


def scores_left_out(chip, T, D):
    """block_overlaps_from: overlaps_with_parameters"""
    c = CHIPS[chip]
    return (2 * 12 * D * D * 2 / (4 * c.ici)) * c.bf16 / (2 * 2 * 12 * D * D)


def _with(time, chip, dp, sp, tp, short, long, D):
    return {name: time(*_times(chip, dp, sp, tp, T, D)) for name, T in (("short", short), ("long", long))}


def all_communication_beside_matmuls(chip, dp, sp, tp, short, long, D):
    """block_step: step_all_overlapped"""
    return _with(lambda matmuls, rows, keys, grads: max(matmuls, rows + keys + grads), chip, dp, sp, tp, short, long, D)


def all_communication_beside_backward_matmuls(chip, dp, sp, tp, short, long, D):
    """block_step: step_with_gradients_always"""

    def time(matmuls, rows, keys, grads):
        return matmuls / 3 + max(matmuls * 2 / 3, rows + keys + grads)

    return _with(time, chip, dp, sp, tp, short, long, D)


def the_longest_time(chip, dp, sp, tp, short, long, D):
    """block_step: step_of_the_longest"""
    return _with(lambda *times: max(times), chip, dp, sp, tp, short, long, D)


def each_pass_overlaps_its_own(chip, dp, sp, tp, short, long, D):
    """block_step: step_all_overlapped"""

    def time(matmuls, rows, keys, grads):
        return max(matmuls / 3, (rows + keys) / 2) + max(matmuls * 2 / 3, (rows + keys) / 2 + grads)

    return _with(time, chip, dp, sp, tp, short, long, D)


def matmuls_alone(chip, dp, sp, tp, short, long, D):
    """block_step: step_matmuls_alone"""
    return _with(lambda matmuls, rows, keys, grads: matmuls, chip, dp, sp, tp, short, long, D)
