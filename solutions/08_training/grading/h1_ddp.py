"""H1: checks, misconceptions and alternatives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, array, axis, integers, like, normal
from grader.expect import Failure, expect_close, expect_equal, expect_independent, expect_spec, expect_traffic, needed
from grader.hardware import all_reduce_time, latency, matmul_time
from h1_ddp import ddp_exposed, ddp_loss, ddp_step, exercise


@exercise.helper
def small(rng, shape):
    return 0.4 * rng.standard_normal(shape)


@exercise.helper
def unequally_many(rng, shape, mesh):
    """Draw which rows are real, not padding. Devices have different numbers of real rows, and at least one has none."""
    n = mesh["dp"]
    rows = shape[0] // n
    counts = rng.permutation(rows + 1)[:n]
    counts[rng.integers(n)] = 0
    return np.concatenate([rng.permutation(rows) < count for count in counts])


@exercise.helper
def some_rows_twice(rng, shape, mesh):
    """Draw rows. The last device gets a copy of the first device's rows."""
    x = rng.standard_normal(shape)
    rows = shape[0] // mesh["dp"]
    x[-rows:] = x[:rows]
    return x


@exercise.helper
def mostly_real(rng, shape):
    return rng.random(shape) < 0.7


@exercise.helper
def data(x, real):
    """The arguments, with the given draws of rows and of real rows."""
    return {
        "params": {"a": array("D", "F", draw=small), "b": array("F", "K", draw=small)},
        "x": array("B", "D", draw=x, spec=P("dp")) if x else normal("B", "D", spec=P("dp")),
        "y": normal("B", "K", spec=P("dp")),
        "real": array("B", draw=real, spec=P("dp"), dtype="bool"),
        "key": integers(0, 2**31 - 1, 2, dtype="uint32"),
        "returns": (like("params"), "kept", "loss"),
    }


call = exercise.call(
    ddp_step,
    **data(some_rows_twice, unequally_many),
    steps=5,
    dims={"D": 6, "F": 16, "K": 3, "B": 12 * axis("dp")},
    hidden_dims={"D": 9, "F": 21, "K": 5, "B": 13 * axis("dp")},
)
sent = exercise.call(
    ddp_step,
    **data(None, mostly_real),
    meshes=[{"dp": 4}, {"dp": 2, "tp": 4}],
    dims={"D": 6, "F": 16, "K": 3, "B": 12 * axis("dp")},
    hidden_dims={"D": 9, "F": 21, "K": 5, "B": 17 * axis("dp")},
)


@exercise.helper
def on_one_device(params, x, y, real, kept):
    """Return the parameters after a step on all rows, and the loss before that step."""
    tanh = np.tanh(x @ params["a"])
    hidden = np.where(kept, tanh / 0.75, 0)
    error = np.where(real[:, None], hidden @ params["b"] - y, 0)
    back = 2 * error / real.sum()
    inner = np.where(kept, back @ params["b"].T / 0.75, 0) * (1 - tanh**2)
    grads = {"a": x.T @ inner, "b": hidden.T @ back}
    return {name: p - 0.1 * grads[name] for name, p in params.items()}, np.sum(error**2) / real.sum()


@exercise.helper
def kept_in(step):
    """Return what dropout kept in a step; the step fails if it is not bool[B, F]."""
    kept, due = step.out[1], (step.dims["B"], step.dims["F"])
    expect_equal(kept, kept.value.astype(float) if kept.shape == due else np.zeros(due), dtype="bool")
    return kept.value


@exercise.helper
def expect_one_device(step):
    """Require the parameters and the loss of one device with all rows and the same dropout."""
    params, loss = on_one_device(step.params, step.x, step.y, step.real, kept_in(step))
    expect_close((step.out[2], step.out[0]), (loss, params))


@exercise.check(call, points=2, public=True)
def ddp_value(seen):
    """ddp_step: each of five steps equals the step of one device with all rows and the same dropout"""
    for step in seen.steps:
        expect_one_device(step)


@exercise.check(call, points=0.5, public=True)
def ddp_dropout(seen):
    """ddp_step: 3/4 of the numbers are kept, at different places on each device and in each step"""
    n = seen.mesh["dp"]
    kept = np.concatenate([kept_in(step).reshape(n, -1, seen.dims["F"]) for step in seen.steps])
    if not any(kept_in(step)[~step.real].any() for step in seen.steps):
        raise Failure(
            "the dropout mask keeps no number of a padding row; draw the mask for all rows, including padding"
        )
    part, spread = kept.mean(), np.sqrt(0.75 * 0.25 / kept.size)
    if abs(part - 0.75) > 6 * spread:
        raise Failure(
            f"dropout must keep 75 % of the numbers, but keeps {part:.0%}",
            expected=0.75,
            actual=float(part),
            spread=0.2,
        )
    alike = {"rows": kept == kept[:, :1], "columns": kept == kept[:, :, :1]}
    alike = {many: same.all(axis=(1, 2)).sum() for many, same in alike.items()}
    many = max(alike, key=alike.__getitem__)  # a mask of whole rows may keep all rows of some devices
    if alike[many]:
        raise Failure(f"the dropout mask is equal for all {many} of a device")
    expect_independent({f"device {k % n} of dp in step {k // n + 1}": one for k, one in enumerate(kept)})


@exercise.check(sent, points=0.5, after=ddp_value)
def ddp_traffic(seen):
    """ddp_step: one all-reduce of the gradient; parameters are whole on every device, rows stay on their devices"""
    expect_one_device(seen)
    expect_spec(seen.out, (P(), P("dp"), P()))
    n, parameters = seen.mesh["dp"], seen.dims["F"] * (seen.dims["D"] + seen.dims["K"])
    right = 2 * (n - 1) / n * 4 * parameters
    # With tp (dp=2, tp=4) the wrong program all-reduces over all 8 devices. Each device then sends 2 · 7/8 of the array,
    # and a right program sends 2 · 1/2. Without tp (dp=4) the wrong program gathers the batch: it sends 1.5 times as
    # many bytes as a right program.
    wrong = 7 / 4 * right if "tp" in seen.mesh else 1.5 * right
    expect_traffic(seen, at_most=needed(right, wrong, at=right + 32))


# -- right in other ways -----------------------------------------------------------------------

RATE = 0.1


def squares(params, x, y, real, kept):
    """Return the sum of the losses of the real rows."""
    hidden = jnp.where(kept, jnp.tanh(x @ params["a"]) / 0.75, 0)
    return jnp.sum(jnp.where(real[:, None], (hidden @ params["b"] - y) ** 2, 0))


def own_key(key):
    return jax.random.fold_in(jax.random.wrap_key_data(key), jax.lax.axis_index("dp"))


def drawn(key, params, x):
    return jax.random.bernoulli(key, 0.75, (len(x), len(params["b"])))


def moved(params, grads):
    return jax.tree.map(lambda p, g: p - RATE * g, params, grads)


def mapped(local, mesh, vma=False):
    cut = P("dp")
    specs = {"in_specs": (P(), cut, cut, cut, P()), "out_specs": (P(), cut, P())}
    return jax.shard_map(local, mesh=mesh, **specs, check_vma=vma)


@exercise.alternative(of=ddp_step)
def ddp_global_mask(params, x, y, real, key, *, mesh):
    """Each device draws the mask of the whole batch and slices it. One all-reduce sums a flat array of all sums."""

    def local(params, x, y, real, key):
        me, whole = jax.lax.axis_index("dp"), (mesh.shape["dp"] * len(x), len(params["b"]))
        every = jax.random.uniform(jax.random.wrap_key_data(key), whole) < 0.75
        kept = jax.lax.dynamic_slice_in_dim(every, me * len(x), len(x))
        total, grads = jax.value_and_grad(squares)(params, x, y, real, kept)
        flat, unravel = ravel_pytree((total, jnp.sum(real, dtype="float32"), grads))
        total, n, grads = unravel(jax.lax.psum(flat, "dp"))
        return moved(params, jax.tree.map(lambda g: g / n, grads)), kept, total / n

    return mapped(local, mesh)(params, x, y, real, key)


@exercise.alternative(of=ddp_step)
def ddp_by_types(params, x, y, real, key, *, mesh):
    """With check_vma=True, JAX sums the gradient of each device's loss over the devices."""

    def local(params, x, y, real, key):
        kept = drawn(own_key(key), params, x)
        n = jax.lax.psum(jnp.sum(real), "dp")
        loss, grads = jax.value_and_grad(lambda p: squares(p, x, y, real, kept) / n)(params)
        return moved(params, grads), kept, jax.lax.psum(loss, "dp")

    return mapped(local, mesh, vma=True)(params, x, y, real, key)


@exercise.alternative(of=ddp_step)
def ddp_from_outside(params, x, y, real, key, *, mesh):
    """The loss function calls shard_map, and JAX differentiates the loss function."""

    def local(params, x, y, real, key):
        kept = drawn(own_key(key), params, x)
        return jax.lax.psum(squares(params, x, y, real, kept), "dp"), kept

    def loss(params):
        cut = P("dp")
        total = jax.shard_map(local, mesh=mesh, in_specs=(P(), cut, cut, cut, P()), out_specs=(P(), cut))
        total, kept = total(params, x, y, real, key)
        return total / jnp.sum(real), kept

    (loss, kept), grads = jax.value_and_grad(loss, has_aux=True)(params)
    return moved(params, grads), kept, loss


@exercise.alternative(of=ddp_step)
def ddp_scattered_and_gathered(params, x, y, real, key, *, mesh):
    """A reduce-scatter and an all-gather replace the all-reduce of gradients. Each device divides its part."""

    def local(params, x, y, real, key):
        n, kept = mesh.shape["dp"], drawn(own_key(key), params, x)
        count = jnp.maximum(jax.lax.psum(jnp.sum(real), "dp"), 1)
        total, grads = jax.value_and_grad(squares)(params, x, y, real, kept)
        flat, unravel = ravel_pytree(grads)
        part = jax.lax.psum_scatter(jnp.pad(flat, (0, -len(flat) % n)), "dp", tiled=True) / count
        flat = jax.lax.all_gather(part, "dp", tiled=True)[: len(flat)]
        return moved(params, unravel(flat)), kept, jax.lax.psum(total, "dp") / count

    return mapped(local, mesh)(params, x, y, real, key)


# -- what goes wrong ---------------------------------------------------------------------------


def summed(tree):
    return jax.lax.psum(tree, "dp")


def ddp(mesh, *, divide, key=own_key, reduce=summed, total=squares):
    """Make a step with the given parts changed. ``divide(total, real)`` makes a device's loss from its sum of losses."""

    def local(params, x, y, real, seed):
        kept = drawn(key(seed), params, x)
        loss, grads = jax.value_and_grad(lambda p: divide(total(p, x, y, real, kept), real))(params)
        loss, grads = reduce((loss, grads))
        return moved(params, grads), kept, loss

    return mapped(local, mesh)


def by_all(total, real):
    return total / jax.lax.psum(jnp.sum(real), "dp")


def dropped(z, kept, scale=0.75):
    """Return dropout(tanh(z)) and its derivative, with numbers divided by ``scale``."""
    return np.where(kept, np.tanh(z) / scale, 0), np.where(kept, (1 - np.tanh(z) ** 2) / scale, 0)


def gives(rate=None, act=dropped, junk=False, loss=None):
    """Return a function that compares a program's steps with steps that make a given mistake and use the program's mask.

    Args: rate(real, step): the divisor of each device's sum of losses, for real [N, B/N]; act(z, kept): `hidden` and its
    derivative; junk: whether the loss includes padding; loss(step, due, value): the returned loss, from the new
    parameters ``due`` and the loss ``value`` before the step.
    """

    def compare(seen):
        for step in seen.steps:
            n, (a, b) = seen.mesh["dp"], (step.params[name] for name in "ab")
            real, kept = step.real.reshape(n, -1), step.out[1].value
            parts = rate(real, step) if rate else np.full(n, real.sum())
            each = np.repeat(parts, real.shape[1])[:, None]
            hidden, slope = act(step.x @ a, kept)
            error = np.where(step.real[:, None] | junk, hidden @ b - step.y, 0)
            back = 2 * error / each
            inner = back @ b.T * slope
            due = {"a": a - RATE * step.x.T @ inner, "b": b - RATE * hidden.T @ back}
            value = np.sum(error**2 / each)
            expect_close((step.out[2], step.out[0]), (loss(step, due, value) if loss else value, due))

    return compare


def of_means(real, step):
    return len(real) * np.maximum(real.sum(1), 1)


@exercise.misconception(
    fails=ddp_value, gives=gives(of_means), breaks="each of five steps equals the step of one device"
)
def ddp_mean_of_means(params, x, y, real, key, *, mesh):
    """You took the mean of the devices' means. A row then counts more on a device with few real rows than on a device with many. Divide the sum over all devices by the number of real rows on all devices."""

    def own_mean(total, real):
        return total / jnp.maximum(jnp.sum(real), 1)

    return ddp(mesh, divide=own_mean, reduce=lambda tree: jax.lax.pmean(tree, "dp"))(params, x, y, real, key)


@exercise.misconception(form_of=ddp_mean_of_means, breaks="each of five steps equals the step of one device")
def ddp_mean_of_means_and_nan(params, x, y, real, key, *, mesh):
    """Like `ddp_mean_of_means`, but a device without a real row computes 0/0."""

    def own_mean(total, real):
        return total / jnp.sum(real)

    return ddp(mesh, divide=own_mean, reduce=lambda tree: jax.lax.pmean(tree, "dp"))(params, x, y, real, key)


@exercise.misconception(fails=ddp_value, breaks="each of five steps equals the step of one device")
def ddp_no_rows_no_mean(params, x, y, real, key, *, mesh):
    """You divided on each device by its own number of real rows. A device without a real row computes 0/0, and NaN stays NaN in every sum, mean and product. Sum over all devices first, then divide by the number of real rows on all devices."""

    def divide(total, real):
        own = jnp.sum(real)
        return total / own * (own / jax.lax.psum(own, "dp"))

    return ddp(mesh, divide=divide)(params, x, y, real, key)


@exercise.misconception(
    fails=ddp_value,
    gives=gives(lambda real, step: np.full(len(real), real.size)),
    breaks=[
        "must give the result that one device computes from the whole batch",
        "each of five steps equals the step of one device",
    ],
)
def ddp_padding_counted(params, x, y, real, key, *, mesh):
    """You divided by the number of all rows, padding included. Count only the real rows."""

    def divide(total, real):
        return total / (len(real) * mesh.shape["dp"])

    return ddp(mesh, divide=divide)(params, x, y, real, key)


@exercise.misconception(
    fails=ddp_value, gives=gives(junk=True), breaks="each of five steps equals the step of one device"
)
def ddp_padding_learnt(params, x, y, real, key, *, mesh):
    """You divided by the number of real rows but summed over all rows. Leave padding out of the loss."""

    def every(p, x, y, real, kept):
        return squares(p, x, y, jnp.ones_like(real), kept)

    return ddp(mesh, divide=by_all, total=every)(params, x, y, real, key)


@exercise.misconception(
    fails=ddp_value,
    gives=gives(lambda real, step: np.full(len(real), real.sum() * step.mesh.get("tp", 1))),
    breaks="each of five steps equals the step of one device",
)
def ddp_copies_counted(params, x, y, real, key, *, mesh):
    """You counted the rows over all axes of the mesh. Devices along tp hold the same rows: count each row once."""

    def divide(total, real):
        return total / jax.lax.psum(jnp.sum(real), mesh.axis_names)

    return ddp(mesh, divide=divide)(params, x, y, real, key)


@exercise.misconception(
    fails=ddp_value,
    gives=gives(
        lambda real, step: np.full(len(real), -real.sum()),
        loss=lambda step, due, value: -value,
    ),
    breaks="p − 0.1 · gradient of the loss for p",
)
def ddp_upwards(params, x, y, real, key, *, mesh):
    """You added the gradient to the parameters, so the loss grows. Subtract 0.1 times the gradient."""

    def reduce(tree):
        return -summed(tree[0]), summed(tree[1])

    return ddp(mesh, divide=lambda total, real: -by_all(total, real), reduce=reduce)(params, x, y, real, key)


@exercise.misconception(fails=[ddp_dropout, ddp_value], breaks="have the layouts above")
def ddp_copies_with_other_masks(params, x, y, real, key, *, mesh):
    """You folded a device's index along all axes into the key. Devices that differ only along another axis hold the same rows and must drop the same places: fold in only the index along dp."""

    def key_of_all_axes(key):
        return jax.random.fold_in(jax.random.wrap_key_data(key), jax.lax.axis_index(mesh.axis_names))

    return ddp(mesh, divide=by_all, key=key_of_all_axes)(params, x, y, real, key)


@exercise.misconception(fails=ddp_traffic, breaks="4 bytes per parameter")
def ddp_summed_over_all_axes(params, x, y, real, key, *, mesh):
    """You summed over all axes of the mesh. Devices along other axes than dp hold copies of the rows, so this sends more bytes and adds nothing: sum over dp only."""

    def divide(total, real):
        return total / jax.lax.psum(jnp.sum(real), mesh.axis_names)

    return ddp(mesh, divide=divide, reduce=lambda tree: jax.lax.psum(tree, mesh.axis_names))(params, x, y, real, key)


@exercise.misconception(fails=ddp_dropout, breaks="masks differ between devices")
def ddp_one_key_for_all(params, x, y, real, key, *, mesh):
    """All devices draw from the same key, so different rows drop the same places. Fold the device's index along dp into the key."""
    return ddp(mesh, divide=by_all, key=jax.random.wrap_key_data)(params, x, y, real, key)


@exercise.misconception(fails=ddp_dropout, breaks="even with equal rows")
def ddp_key_from_rows(params, x, y, real, key, *, mesh):
    """You made a device's key from its rows. Devices with equal rows then drop equal places. Fold the device's index along dp into the key."""

    def local(params, x, y, real, key):
        key = jax.random.fold_in(jax.random.wrap_key_data(key), (x[0, 0] * 1e6).astype(jnp.int32))
        kept = drawn(key, params, x)
        loss, grads = jax.value_and_grad(lambda p: by_all(squares(p, x, y, real, kept), real))(params)
        loss, grads = summed((loss, grads))
        return moved(params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


@exercise.misconception(fails=ddp_dropout, breaks="masks differ between devices (even with equal rows), steps")
def ddp_one_key_for_ever(params, x, y, real, key, *, mesh):
    """You created a new key in the function, so every step drops equal places. Use the key that the step gets."""

    def fixed(key):
        return jax.random.fold_in(jax.random.key(0), jax.lax.axis_index("dp"))

    return ddp(mesh, divide=by_all, key=fixed)(params, x, y, real, key)


def with_mask(mesh, mask):
    """Make a right step in which dropout keeps the places where ``mask(key, real, B/N, F)`` is true."""

    def local(params, x, y, real, key):
        kept = jnp.broadcast_to(mask(own_key(key), real, len(x), len(params["b"])), (len(x), len(params["b"])))
        loss, grads = summed(jax.value_and_grad(lambda p: by_all(squares(p, x, y, real, kept), real))(params))
        return moved(params, grads), kept, loss

    return mapped(local, mesh)


@exercise.misconception(fails=ddp_dropout, breaks="rows and columns")
def ddp_one_mask_for_all_rows(params, x, y, real, key, *, mesh):
    """You drew one mask and used it for all rows of a device. Draw a number for each row and column."""
    mask = lambda key, real, rows, units: jax.random.bernoulli(key, 0.75, (1, units))  # noqa: E731
    return with_mask(mesh, mask)(params, x, y, real, key)


@exercise.misconception(fails=ddp_dropout, breaks="rows and columns")
def ddp_one_number_for_a_row(params, x, y, real, key, *, mesh):
    """You drew one number for each row, so dropout keeps or drops a whole row. Draw a number for each row and column."""
    mask = lambda key, real, rows, units: jax.random.bernoulli(key, 0.75, (rows, 1))  # noqa: E731
    return with_mask(mesh, mask)(params, x, y, real, key)


@exercise.misconception(fails=ddp_dropout, breaks="3/4 of the numbers are kept")
def ddp_padding_dropped(params, x, y, real, key, *, mesh):
    """Your `kept` is false in all padding rows. Padding has no effect on the loss anyway: draw the mask for all rows."""
    mask = lambda key, real, rows, units: jax.random.bernoulli(key, 0.75, (rows, units)) & real[:, None]  # noqa: E731
    return with_mask(mesh, mask)(params, x, y, real, key)


@exercise.misconception(fails=ddp_traffic, breaks="have the layouts above")
def ddp_kept_on_every_device(params, x, y, real, key, *, mesh):
    """You gathered `kept`, so every device holds it for all rows. Keep on each device only its own rows: P('dp')."""
    params, kept, loss = ddp_step(params, x, y, real, key, mesh=mesh)
    return params, jax.lax.with_sharding_constraint(kept, jax.NamedSharding(mesh, P())), loss


@exercise.misconception(fails=ddp_dropout, breaks="3/4 of the numbers are kept")
def ddp_dropped_most(params, x, y, real, key, *, mesh):
    """Your `kept` has about 1/4 of the numbers: you dropped 3/4 of them, or returned what you dropped. 3/4 is the probability of keeping a number."""

    def local(params, x, y, real, key):
        kept = ~drawn(own_key(key), params, x)
        loss, grads = jax.value_and_grad(lambda p: by_all(squares(p, x, y, real, kept), real))(params)
        loss, grads = summed((loss, grads))
        return moved(params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


@exercise.misconception(fails=ddp_value, gives=gives(act=partial(dropped, scale=1)), breaks="divides it by 3/4")
def ddp_not_scaled(params, x, y, real, key, *, mesh):
    """You did not scale the numbers that you keep. Divide them by 3/4, so that the sum stays the same on average."""

    def total(params, x, y, real, kept):
        hidden = jnp.where(kept, jnp.tanh(x @ params["a"]), 0)
        return jnp.sum(jnp.where(real[:, None], (hidden @ params["b"] - y) ** 2, 0))

    return ddp(mesh, divide=by_all, total=total)(params, x, y, real, key)


def dropped_first(z, kept):
    """Return tanh(dropout(z)) and its derivative."""
    tanh = np.tanh(np.where(kept, z / 0.75, 0))
    return tanh, np.where(kept, (1 - tanh**2) / 0.75, 0)


@exercise.misconception(fails=ddp_value, gives=gives(act=dropped_first), breaks="hidden = dropout(tanh(x·a))")
def ddp_dropout_before_tanh(params, x, y, real, key, *, mesh):
    """You applied dropout before tanh. Apply it to the result of tanh."""

    def total(params, x, y, real, kept):
        hidden = jnp.tanh(jnp.where(kept, x @ params["a"] / 0.75, 0))
        return jnp.sum(jnp.where(real[:, None], (hidden @ params["b"] - y) ** 2, 0))

    return ddp(mesh, divide=by_all, total=total)(params, x, y, real, key)


@exercise.misconception(
    fails=ddp_value,
    gives=gives(lambda real, step: np.full(len(real), real.sum() * step.dims["K"])),
    breaks="over real rows and all columns",
)
def ddp_divided_by_columns(params, x, y, real, key, *, mesh):
    """You divided by the number of real rows times the number of columns. The sum is over all columns, but n counts rows."""
    return ddp(mesh, divide=lambda total, real: by_all(total, real) / y.shape[1])(params, x, y, real, key)


def loss_after(step, due, value):
    return on_one_device(due, step.x, step.y, step.real, step.out[1].value)[1]


@exercise.misconception(fails=ddp_value, gives=gives(loss=loss_after), breaks="loss before the step")
def ddp_loss_after_the_step(params, x, y, real, key, *, mesh):
    """You returned the loss of the new parameters. Return the loss before the step: value_and_grad computes both at once."""

    def local(params, x, y, real, key):
        kept = drawn(own_key(key), params, x)
        loss_of = lambda p: by_all(squares(p, x, y, real, kept), real)  # noqa: E731
        new = moved(params, summed(jax.grad(loss_of)(params)))
        return new, kept, summed(loss_of(new))

    return mapped(local, mesh)(params, x, y, real, key)


@exercise.misconception(fails=ddp_value, breaks="each of five steps equals the step of one device")
def ddp_only_gradients_summed(params, x, y, real, key, *, mesh):
    """You summed the gradients but not the loss. Each device returns the loss of its own rows. Sum the loss over the devices too."""
    return ddp(mesh, divide=by_all, reduce=lambda tree: (tree[0], summed(tree[1])))(params, x, y, real, key)


@exercise.misconception(fails=ddp_value, breaks="each of five steps equals the step of one device")
def ddp_only_loss_summed(params, x, y, real, key, *, mesh):
    """You summed the loss but not the gradients. The loss looks right, but the devices' weights drift apart. Sum the gradients over the devices too."""
    return ddp(mesh, divide=by_all, reduce=lambda tree: (summed(tree[0]), tree[1]))(params, x, y, real, key)


@exercise.misconception(
    fails=ddp_value,
    gives=gives(lambda real, step: np.full(len(real), real.sum() * len(real))),
    breaks="each of five steps equals the step of one device",
)
def ddp_summed_and_averaged(params, x, y, real, key, *, mesh):
    """You divided by the number of rows and also took the mean over devices, so the gradient is N times too small. Add the devices' parts."""
    return ddp(mesh, divide=by_all, reduce=lambda tree: jax.lax.pmean(tree, "dp"))(params, x, y, real, key)


@exercise.misconception(
    form_of=ddp_summed_and_averaged,
    gives=gives(
        lambda real, step: np.full(len(real), real.sum() * len(real)),
        loss=lambda step, due, value: value * step.mesh["dp"],
    ),
    breaks="each of five steps equals the step of one device",
)
def ddp_summed_and_gradients_averaged(params, x, y, real, key, *, mesh):
    """Like `ddp_summed_and_averaged`, but the loss is a sum."""
    reduce = lambda tree: (summed(tree[0]), jax.lax.pmean(tree[1], "dp"))  # noqa: E731
    return ddp(mesh, divide=by_all, reduce=reduce)(params, x, y, real, key)


@exercise.misconception(fails=ddp_value, breaks="each of five steps equals the step of one device")
def ddp_summed_twice(params, x, y, real, key, *, mesh):
    """With check_vma=True, JAX already sums the gradient in the backward pass. Your psum makes the gradient N times too large: leave out the psum."""

    def local(params, x, y, real, key):
        kept = drawn(own_key(key), params, x)
        loss, grads = jax.value_and_grad(lambda p: by_all(squares(p, x, y, real, kept), real))(params)
        return moved(params, summed(jax.lax.pcast(grads, "dp", to="varying"))), kept, summed(loss)

    return mapped(local, mesh, vma=True)(params, x, y, real, key)


@exercise.misconception(fails=ddp_traffic, breaks="4 bytes per parameter")
def ddp_batch_gathered(params, x, y, real, key, *, mesh):
    """You sent the whole batch to every device. Let each device compute its own rows, and send only the gradient."""

    def local(params, x, y, real, key):
        kept = drawn(own_key(key), params, x)
        x, y, real, every = (jax.lax.all_gather(a, "dp", tiled=True) for a in (x, y, real, kept))
        loss, grads = jax.value_and_grad(lambda p: squares(p, x, y, real, every) / jnp.sum(real))(params)
        return moved(params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


@exercise.misconception(form_of=ddp_batch_gathered, breaks="4 bytes per parameter")
def ddp_batch_gathered_without_masks(params, x, y, real, key, *, mesh):
    """Like `ddp_batch_gathered`, but each device draws the masks of all devices."""

    def local(params, x, y, real, key):
        n, own = mesh.shape["dp"], jax.lax.axis_index("dp") * len(x)
        keys = (jax.random.fold_in(jax.random.wrap_key_data(key), device) for device in range(n))
        every = jnp.concatenate([drawn(one, params, x) for one in keys])
        kept = jax.lax.dynamic_slice_in_dim(every, own, len(x))
        x, y, real = (jax.lax.all_gather(a, "dp", tiled=True) for a in (x, y, real))
        loss, grads = jax.value_and_grad(lambda p: squares(p, x, y, real, every) / jnp.sum(real))(params)
        return moved(params, grads), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


@exercise.misconception(fails=ddp_traffic, breaks="4 bytes per parameter")
def ddp_gradients_gathered(params, x, y, real, key, *, mesh):
    """You gathered the gradients of all devices and added them up. An all-reduce gives every device the sum, and sends only 2/N of these bytes."""

    def reduce(tree):
        every = lambda leaf: jax.lax.all_gather(leaf, "dp").sum(0)  # noqa: E731
        return summed(tree[0]), jax.tree.map(every, tree[1])

    return ddp(mesh, divide=by_all, reduce=reduce)(params, x, y, real, key)


@exercise.misconception(fails=ddp_traffic, breaks="4 bytes per parameter")
def ddp_weights_averaged(params, x, y, real, key, *, mesh):
    """You reduced the gradients and then averaged the weights as well. All devices make the same update of the same weights: send nothing more."""

    def local(params, x, y, real, key):
        kept = drawn(own_key(key), params, x)
        loss, grads = jax.value_and_grad(lambda p: by_all(squares(p, x, y, real, kept), real))(params)
        loss, grads = summed((loss, grads))
        return jax.lax.pmean(moved(params, grads), "dp"), kept, loss

    return mapped(local, mesh)(params, x, y, real, key)


# -- questions ---------------------------------------------------------------------------------


@exercise.misconception(of=ddp_loss)
def loss_mean_of_means(A, B, a, b):
    """You took the mean of the two means. A token on the device with fewer tokens then counts more than the other tokens."""
    return (a + b) / 2


@exercise.misconception(of=ddp_loss)
def loss_mean_of_sums(A, B, a, b):
    """You divided the sum of all losses by the number of devices. Divide it by the number of real tokens."""
    return (A * a + B * b) / 2


@exercise.misconception(of=ddp_loss)
def loss_of_padding_too(A, B, a, b):
    """You divided by all tokens, padding included. Count only the real tokens."""
    return (A * a + B * b) / 1024


@exercise.misconception(of=ddp_loss)
def loss_means_added(A, B, a, b):
    """You added the two means. The loss is one mean over all real tokens."""
    return a + b


@exercise.misconception(of=ddp_loss)
def loss_divided_twice(A, B, a, b):
    """You divided by the number of devices as well. The sum over both devices, divided by the number of real tokens, is already the mean."""
    return (A * a + B * b) / (A + B) / 2


@exercise.misconception(of=ddp_loss)
def loss_of_one_devices_rows(A, B, a, b):
    """You divided by the 512 tokens of one device. Divide by the number of real tokens on both devices."""
    return (A * a + B * b) / 512


@exercise.misconception(of=ddp_loss)
def loss_weighted_the_other_way(A, B, a, b):
    """You weighted each mean by the other device's number of tokens. Weight it by the number of real tokens on its own device."""
    return (B * a + A * b) / (A + B)


@exercise.misconception(of=ddp_exposed)
def exposed_reduced_once(chip, M, T, N):
    """You counted only one phase of the all-reduce. An all-reduce is a reduce-scatter and an all-gather: 2 V / W."""
    return matmul_time(6e6 * M * T, chip) + all_reduce_time(1e6 * M, N, chip)


@exercise.misconception(of=ddp_exposed)
def exposed_without_forward(chip, M, T, N):
    """You left out the forward pass. It takes 2 FLOPs per parameter and token, and the backward pass takes 4."""
    return matmul_time(4e6 * M * T, chip) + all_reduce_time(2e6 * M, N, chip)


@exercise.misconception(of=ddp_exposed)
def exposed_in_float32(chip, M, T, N):
    """Either you counted more than 2 bytes per gradient, or you used one direction of the link. The gradients are bfloat16, and on a ring data flows both ways."""
    return matmul_time(6e6 * M * T, chip) + all_reduce_time(4e6 * M, N, chip)


@exercise.misconception(of=ddp_exposed)
def exposed_yet_overlapped(chip, M, T, N):
    """Either you took the longer of the two times, or you left out the all-reduce. Here the devices send nothing before the backward pass ends, so the times add up."""
    return max(matmul_time(6e6 * M * T, chip), all_reduce_time(2e6 * M, N, chip))


@exercise.misconception(of=ddp_exposed)
def exposed_divided_by_chips(chip, M, T, N):
    """You divided the FLOPs by the number of chips. *Each* chip has T tokens."""
    return matmul_time(6e6 * M * T / N, chip) + all_reduce_time(2e6 * M, N, chip)


@exercise.misconception(of=ddp_exposed)
def exposed_with_all_tokens(chip, M, T, N):
    """You counted the tokens of all chips. A chip computes only with its own T tokens."""
    return matmul_time(6e6 * M * T * N, chip) + all_reduce_time(2e6 * M, N, chip)


exercise.scenario(ddp_loss, lambda A, B, a, b: Scenario(mesh={"dp": 2}, most=5))
exercise.scenario(
    ddp_exposed,
    lambda chip, M, T, N: Scenario(
        chip=chip, rings=(N,), mesh={"dp": N}, arrays=[((N * T, 8), P("dp"))], least=2 * latency(N), holds=16e6 * M
    ),
)
