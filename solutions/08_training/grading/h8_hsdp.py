"""H8: checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, axis, normal
from grader.expect import between, expect_close, expect_spec, expect_traffic
from grader.hardware import GPUS
from h8_hsdp import ROWS, exercise, hsdp_grads, hsdp_time

call = exercise.call(
    hsdp_grads,
    w=normal("D", "K", spec=P("shard")),
    x=normal("M", "B", "D", spec=ROWS),
    y=normal("M", "B", "K", spec=ROWS),
    returns=("grads", "norm"),
    dims={"D": 12, "K": 5, "M": 3, "B": 3 * axis("rep") * axis("shard")},
    hidden_dims={"D": 20, "K": 7, "M": 4, "B": 5 * axis("rep") * axis("shard")},
)


@exercise.check(call, points=0.75, public=True)
def hsdp_value(seen):
    """hsdp_grads: the gradient of all rows and its norm"""
    due = 2 * np.einsum("mbd,mbk->dk", seen.x, seen.x @ seen.w - seen.y) / seen.y.size
    expect_close(seen.out, (due, np.sqrt(np.sum(due**2))))


@exercise.check(call, points=0.25, public=True, after=hsdp_value)
def hsdp_layout(seen):
    """hsdp_grads: a device holds its rows of the gradient, and the norm"""
    expect_spec(seen.out, (P("shard"), P()))


@exercise.check(call, points=0.5, public=True, after=hsdp_value)
def hsdp_far(seen):
    """hsdp_grads: over rep, devices sum only the result of the reduce-scatter"""
    size, R, S = 4 * seen.w.size, seen.mesh["rep"], seen.mesh["shard"]
    number = 2 * (R - 1) / R * 4
    right = 2 * (R - 1) / R * size / S
    wrong = min(seen.dims["M"], S) * right  # each micro-batch, or the whole gradient
    expect_traffic(seen, axis="rep", at_most=between(right, wrong, at=right + 32, unit=number))


@exercise.check(call, points=0.5, after=hsdp_value)
def hsdp_near(seen):
    """hsdp_grads: over shard the weights are gathered once and the gradient is scattered once"""
    S = seen.mesh["shard"]
    once, number = (S - 1) / S * 4 * seen.w.size, 2 * (S - 1) / S * 4
    # Each kind has a budget, because an all-reduce instead of the scatter adds less than half to the sum of all bytes.
    reduced = between(number, 2 * once, at=32, unit=number)  # wrong: the gradient is all-reduced
    expect_traffic(seen.only(kind="all_reduce"), axis="shard", at_most=reduced)
    gathered = between(once, seen.dims["M"] * once, at=once + 32, unit=number)  # wrong: one gather per micro-batch
    expect_traffic(seen.only(kind="all_gather"), axis="shard", at_most=gathered)
    every = between(2 * once + number, (1 + seen.dims["M"]) * once, at=2 * once + 32, unit=number)
    expect_traffic(seen, axis="shard", at_most=every)  # wrong: each micro-batch's gradient is scattered


# -- right in other ways -----------------------------------------------------------------------


def mapped(local, mesh, vma=False):
    specs = {"in_specs": (P("shard"), ROWS, ROWS), "out_specs": (P("shard"), P())}
    return jax.shard_map(local, mesh=mesh, **specs, check_vma=vma)


def normed(g):
    return g, jnp.sqrt(jax.lax.psum(jnp.sum(g**2), "shard"))


def own_sum(w, x, y):
    """Return the gradient of this device's sum of squares over all its micro-batches."""
    whole = jax.lax.all_gather(w, "shard", tiled=True)
    return 2 * jnp.einsum("mbd,mbk->dk", x, x @ whole - y)


def scattered(g):
    return jax.lax.psum_scatter(g, "shard", tiled=True)


def far_sum(g):
    return jax.lax.psum(g, "rep")


@exercise.alternative(of=hsdp_grads)
def hsdp_through_the_gather(w, x, y, *, mesh):
    """The loss gathers w for one matmul of all micro-batches. JAX turns the gather into the reduce-scatter. The loss
    uses means, not sums."""

    def local(w, x, y):
        def loss(w):
            return jnp.mean((x @ jax.lax.all_gather(w, "shard", tiled=True) - y) ** 2)

        g = jax.lax.pmean(jax.grad(loss)(w), "rep") / jax.lax.axis_size("shard")
        return normed(g)

    return mapped(local, mesh)(w, x, y)


@exercise.alternative(of=hsdp_grads)
def hsdp_in_a_scan(w, x, y, *, mesh):
    """A scan over micro-batches scales each gradient. The sum over rep is a reduce-scatter and an all-gather."""

    def local(w, x, y):
        whole, R = jax.lax.all_gather(w, "shard", tiled=True), mesh.shape["rep"]
        every = y.size * R * mesh.shape["shard"]

        def add(g, xy):
            return (g + 2 / every * xy[0].T @ (xy[0] @ whole - xy[1]), None)

        g = scattered(jax.lax.scan(add, jnp.zeros_like(whole), (x, y))[0])
        flat = jnp.pad(g.ravel(), (0, -g.size % R))
        part = jax.lax.psum_scatter(flat, "rep", tiled=True)
        return normed(jax.lax.all_gather(part, "rep", tiled=True)[: g.size].reshape(g.shape))

    return mapped(local, mesh)(w, x, y)


@exercise.alternative(of=hsdp_grads)
def hsdp_by_types(w, x, y, *, mesh):
    """With check_vma=True, the cast of w to varying over rep comes before the gather. So JAX sums over rep after the
    reduce-scatter."""

    def local(w, x, y):
        def loss(w):
            w = jax.lax.pcast(w, "rep", to="varying")
            return jnp.sum((x @ jax.lax.all_gather(w, "shard", tiled=True) - y) ** 2)

        return normed(jax.grad(loss)(w) / (y.size * mesh.size))

    return mapped(local, mesh, vma=True)(w, x, y)


# -- what goes wrong ---------------------------------------------------------------------------


def hsdp(mesh, reduce, norm=normed, every=None):
    """Return a step in which ``reduce`` combines the devices' sums."""

    def local(w, x, y):
        return norm(reduce(own_sum(w, x, y)) / (y.size * (every or mesh.size)))

    return mapped(local, mesh)


def own_rows(g):
    size = len(g) // jax.lax.axis_size("shard")
    return jax.lax.dynamic_slice_in_dim(g, jax.lax.axis_index("shard") * size, size)


@exercise.misconception(
    fails=[hsdp_far, hsdp_near],
    breaks=[
        "a device sends over rep: 2 (R−1)/R · V/S bytes at most",
        "over shard: gather `w`, reduce-scatter the gradient",
    ],
)
def hsdp_one_all_reduce(w, x, y, *, mesh):
    """You all-reduced over all devices and kept your rows, so the whole gradient crosses rep. Reduce-scatter over shard first, then sum only the remaining part over rep."""
    return hsdp(mesh, lambda g: own_rows(jax.lax.psum(g, ("rep", "shard"))))(w, x, y)


@exercise.misconception(fails=[hsdp_far, hsdp_layout, hsdp_near], breaks="laid out as above")
def hsdp_whole_gradient(w, x, y, *, mesh):
    """You returned the whole gradient on every device. A device keeps only its rows, P('shard'): reduce-scatter over shard, then sum over rep."""

    def local(w, x, y):
        g = jax.lax.psum(own_sum(w, x, y), ("rep", "shard")) / (y.size * mesh.size)
        return g, jnp.sqrt(jnp.sum(g**2))

    specs = (P("shard"), ROWS, ROWS)
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=(P(), P()), check_vma=False)(w, x, y)


@exercise.misconception(fails=hsdp_far, breaks="a device sends over rep: 2 (R−1)/R · V/S bytes at most")
def hsdp_far_first(w, x, y, *, mesh):
    """You summed over rep before you scattered, so S times as many bytes cross rep. Scatter first. With check_vma=True, cast w over rep before the gather. Otherwise JAX casts the gathered w, and sums its whole gradient over rep."""
    return hsdp(mesh, lambda g: scattered(far_sum(g)))(w, x, y)


@exercise.misconception(fails=hsdp_near, breaks="over shard: gather `w`, reduce-scatter the gradient")
def hsdp_all_reduced_near(w, x, y, *, mesh):
    """You all-reduced over shard and kept your rows, which sends twice the bytes of a reduce-scatter."""
    return hsdp(mesh, lambda g: far_sum(own_rows(jax.lax.psum(g, "shard"))))(w, x, y)


@exercise.misconception(
    fails=[hsdp_far, hsdp_near],
    breaks="a device has to sum the gradients of all M micro-batches before it sends any gradient",
)
def hsdp_each_micro_batch_sent(w, x, y, *, mesh):
    """You sent the gradient of each micro-batch. Add the gradients on the device, and send the sum once."""

    def local(w, x, y):
        g = 0
        for micro in range(len(x)):
            whole = jax.lax.all_gather(w, "shard", tiled=True)
            g += far_sum(scattered(2 * x[micro].T @ (x[micro] @ whole - y[micro])))
        return normed(g / (y.size * mesh.size))

    return mapped(local, mesh)(w, x, y)


@exercise.misconception(
    form_of=hsdp_each_micro_batch_sent,
    breaks="a device has to sum the gradients of all M micro-batches before it sends any gradient",
)
def hsdp_each_micro_batch_sent_gathered_once(w, x, y, *, mesh):
    """Like `hsdp_each_micro_batch_sent`, but the weights are gathered once."""

    def local(w, x, y):
        whole = jax.lax.all_gather(w, "shard", tiled=True)
        each = 2 * jnp.einsum("mbd,mbk->mdk", x, x @ whole - y)
        return normed(sum(far_sum(scattered(g)) for g in each) / (y.size * mesh.size))

    return mapped(local, mesh)(w, x, y)


@exercise.misconception(
    fails=hsdp_near, breaks="a device has to sum the gradients of all M micro-batches before it sends any gradient"
)
def hsdp_each_micro_batch_scattered(w, x, y, *, mesh):
    """You reduce-scattered the gradient of each micro-batch. Add the gradients on the device, and scatter the sum once."""

    def local(w, x, y):
        whole = jax.lax.all_gather(w, "shard", tiled=True)
        each = 2 * jnp.einsum("mbd,mbk->mdk", x, x @ whole - y)
        return normed(far_sum(sum(scattered(g) for g in each)) / (y.size * mesh.size))

    return mapped(local, mesh)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_last_micro_batch_far(w, x, y, *, mesh):
    """You summed only the last micro-batch over rep. The earlier micro-batches' gradients were scattered over shard but never summed over rep. Add the gradients of all micro-batches first, then send the sum."""

    def local(w, x, y):
        near = scattered(own_sum(w, x[:-1], y[:-1]))
        return normed((near + far_sum(scattered(own_sum(w, x[-1:], y[-1:])))) / (y.size * mesh.size))

    return mapped(local, mesh)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_last_micro_batch_alone(w, x, y, *, mesh):
    """You kept only the gradient of the last micro-batch. Add each micro-batch's gradient to the earlier ones."""

    def local(w, x, y):
        return normed(far_sum(scattered(own_sum(w, x[-1:], y[-1:]))) / (y.size * mesh.size))

    return mapped(local, mesh)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_never_far(w, x, y, *, mesh):
    """You never summed over rep, so the copies learn from different rows and drift apart. Sum over rep after the reduce-scatter."""
    return hsdp(mesh, scattered)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_mean_over_shard_only(w, x, y, *, mesh):
    """You divided by the rows along shard alone. Devices along rep have different rows: count all rows."""
    return hsdp(mesh, lambda g: far_sum(scattered(g)), every=mesh.shape["shard"])(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_mean_over_rep_only(w, x, y, *, mesh):
    """You divided by the rows along rep alone. Devices along shard have different rows: count all rows."""
    return hsdp(mesh, lambda g: far_sum(scattered(g)), every=mesh.shape["rep"])(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="The loss is the mean")
def hsdp_mean_of_own_rows(w, x, y, *, mesh):
    """You divided by the numbers of one device and added the devices' means. Divide by the numbers of all devices."""
    return hsdp(mesh, lambda g: far_sum(scattered(g)) * mesh.size)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_without_two(w, x, y, *, mesh):
    """You left out the factor 2 of the square's derivative."""
    return hsdp(mesh, lambda g: far_sum(scattered(g)) / 2)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_averaged_far(w, x, y, *, mesh):
    """You divided the gradient by the rows of all devices, and then averaged it over rep, so it is R times too small. Add the parts along rep."""
    return hsdp(mesh, lambda g: jax.lax.pmean(scattered(g), "rep"))(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient's norm √Σg²")
def hsdp_norm_without_root(w, x, y, *, mesh):
    """You returned the sum of squares. The norm is its square root."""

    def norm(g):
        return g, jax.lax.psum(jnp.sum(g**2), "shard")

    return hsdp(mesh, lambda g: far_sum(scattered(g)), norm)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="The loss is the mean")
def hsdp_sum_over_columns(w, x, y, *, mesh):
    """You divided by the number of rows only. The mean is over micro-batches, rows and columns."""
    return hsdp(mesh, lambda g: far_sum(scattered(g)) * y.shape[2])(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="The loss is the mean")
def hsdp_sum_over_micro_batches(w, x, y, *, mesh):
    """You added the means of the micro-batches. Divide by the number of micro-batches, too."""
    return hsdp(mesh, lambda g: far_sum(scattered(g)) * y.shape[0])(w, x, y)


@exercise.misconception(fails=hsdp_near, breaks="over shard: gather `w`, reduce-scatter the gradient")
def hsdp_gathered_each_time(w, x, y, *, mesh):
    """You gathered w for each micro-batch. All micro-batches use equal weights: gather w once."""

    def local(w, x, y):
        g = 0
        for x_micro, y_micro in zip(x, y, strict=True):
            own, x_micro = jax.lax.optimization_barrier((w, x_micro))
            g += 2 * x_micro.T @ (x_micro @ jax.lax.all_gather(own, "shard", tiled=True) - y_micro)
        return normed(far_sum(scattered(g)) / (y.size * mesh.size))

    return mapped(local, mesh)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_norm_over_copies(w, x, y, *, mesh):
    """You added the squares over rep as well. Devices along rep hold copies: count each element once."""

    def norm(g):
        return (g, jnp.sqrt(jax.lax.psum(jnp.sum(g**2), ("rep", "shard"))))

    return hsdp(mesh, lambda g: far_sum(scattered(g)), norm)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_norm_of_own_rows(w, x, y, *, mesh):
    """Your norm covers only the rows on one device. Add the squares over shard before you take the root."""
    return hsdp(mesh, lambda g: far_sum(scattered(g)), lambda g: (g, jnp.sqrt(jnp.sum(g**2))))(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient's norm √Σg²")
def hsdp_norms_added(w, x, y, *, mesh):
    """You added the norms of the devices' rows. Add the squares over shard, then take the root."""
    norm = lambda g: (g, jax.lax.psum(jnp.sqrt(jnp.sum(g**2)), "shard"))  # noqa: E731
    return hsdp(mesh, lambda g: far_sum(scattered(g)), norm)(w, x, y)


@exercise.misconception(fails=hsdp_value, breaks="the gradient of all rows, and its norm")
def hsdp_norm_before_the_far_sum(w, x, y, *, mesh):
    """You took the norm before the sum over rep. Take the norm of the whole gradient, not a sum of norms."""

    def local(w, x, y):
        g, norm = normed(scattered(own_sum(w, x, y)) / (y.size * mesh.size))
        return far_sum(g), far_sum(norm)

    return mapped(local, mesh)(w, x, y)


@exercise.misconception(form_of=hsdp_norm_before_the_far_sum, breaks="the gradient of all rows, and its norm")
def hsdp_norm_of_one_rep(w, x, y, *, mesh):
    """Like `hsdp_norm_before_the_far_sum`, but the norms are not added."""

    def local(w, x, y):
        g, norm = normed(scattered(own_sum(w, x, y)) / (y.size * mesh.size))
        return far_sum(g), norm

    return mapped(local, mesh)(w, x, y)


# -- questions ---------------------------------------------------------------------------------


def both(chip, M, R, near=7 / 8, far=2.0, egress=1 / 8):
    """Return the near and the far time, for these shares of the gradient's bytes and of the node's egress."""
    row, size = GPUS[chip], 2e9 * M
    return size * near / row.egress, far * (R - 1) / R * (size / 8) / (row.node_egress * egress)


@exercise.misconception(of=hsdp_time)
def time_of_a_flat_all_reduce(chip, M, R):
    """You sent the whole gradient between the nodes for each GPU. After the reduce-scatter, a GPU has an eighth of the gradient."""
    near, far = both(chip, M, R)
    return near + 8 * far


@exercise.misconception(of=hsdp_time)
def time_with_the_node_to_itself(chip, M, R):
    """You gave each GPU the egress of the whole node. All eight GPUs send at the same time and share this egress."""
    return sum(both(chip, M, R, egress=1))


@exercise.misconception(of=hsdp_time)
def time_far_once(chip, M, R):
    """You counted only one phase of the all-reduce. An all-reduce is a reduce-scatter and an all-gather between nodes."""
    return sum(both(chip, M, R, far=1))


@exercise.misconception(of=hsdp_time)
def time_far_as_if_scattered(chip, M, R):
    """You counted all R nodes in the all-reduce. A device sends (R - 1)/R of its bytes, twice."""
    near, far = both(chip, M, R)
    return near + far * R / (R - 1)


@exercise.misconception(of=hsdp_time)
def time_near_reduced(chip, M, R):
    """You all-reduced inside the node. A reduce-scatter takes half as long, and the gather of the weights happens at a different time."""
    return sum(both(chip, M, R, near=7 / 4))


@exercise.misconception(of=hsdp_time)
def time_near_whole(chip, M, R):
    """You sent all of the gradients through a GPU's egress. A GPU keeps its own eighth: it sends 7/8 of them."""
    return sum(both(chip, M, R, near=1))


@exercise.misconception(of=hsdp_time)
def time_near_of_one_part(chip, M, R):
    """You sent one eighth of the gradients inside the node. In a reduce-scatter a GPU sends seven parts of this size: one to each of the other GPUs."""
    return sum(both(chip, M, R, near=1 / 8))


@exercise.misconception(of=hsdp_time)
def time_near_and_far_whole(chip, M, R):
    """You left out the parts that stay where they are. Inside its node a GPU sends 7/8 of the gradients. Between R nodes it sends (R - 1)/R of its part, twice."""
    near, far = both(chip, M, R, near=1)
    return near + far * R / (R - 1)


@exercise.misconception(of=hsdp_time)
def time_in_float32(chip, M, R):
    """You counted four bytes for a gradient. A bfloat16 has two bytes."""
    return 2 * sum(both(chip, M, R))


@exercise.misconception(of=hsdp_time)
def time_of_the_longer(chip, M, R):
    """You took the longer of the two times. The sum between nodes needs the result of the reduce-scatter, so the two run one after the other."""
    return max(both(chip, M, R))


@exercise.misconception(of=hsdp_time)
def time_of_the_near_links(chip, M, R):
    """You counted the reduce-scatter in the node alone. Then each GPU all-reduces its part of the gradients between the nodes."""
    return both(chip, M, R)[0]


exercise.scenario(hsdp_time, lambda chip, M, R: Scenario(mesh={"rep": R, "shard": 8}))
