"""H7: checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario
from grader.expect import (
    expect_close,
    expect_flops,
    expect_only,
    expect_other_flops,
    expect_shard_map,
    expect_spec,
    expect_traffic,
    needed,
)
from h7_fsdp_tp import exercise, layer, mlp_2d, mlp_2d_bytes


@exercise.helper
def travels(seen, weights, activations, *kinds, near=""):
    """Require at most the given weights over x and activations over y, by the given collectives or hop by hop. Each
    has three numbers: the need of a right program, the budget, and the need of a wrong program."""
    B, D, F = seen.dims["B"], seen.dims["D"], seen.dims["F"]
    mesh = seen.mesh
    expect_only(seen, *kinds, "permute")
    over_x = 4 * D * F / mesh["y"] * (1 - 1 / mesh["x"])
    over_y = 4 * B * D / mesh["x"] * (1 - 1 / mesh["y"])
    for axis, one, (right, most, wrong) in (("x", over_x, weights), ("y", over_y, activations)):
        budget = needed(right * one, wrong * one, at=most * one, near=near) if most else 0
        expect_traffic(seen, at_most=budget, axis=axis)


@exercise.check(layer, points=1, public=True)
def mlp_value(seen):
    """mlp_2d: the layer's result"""
    expect_close(seen.out, np.tanh(seen.a @ seen.w_in) @ seen.w_out)


@exercise.check(layer, points=0.5, public=True, after=mlp_value)
def mlp_gradients(seen):
    """mlp_2d: the gradients of all three arrays"""
    hidden = np.tanh(seen.a @ seen.w_in)
    back = (seen.cotangent @ seen.w_out.T) * (1 - hidden**2)
    expect_close(seen.grads["a"], back @ seen.w_in.T)
    expect_close(seen.grads["w_in"], seen.a.T @ back)
    expect_close(seen.grads["w_out"], hidden.T @ seen.cotangent)


@exercise.check(layer, points=0.5, public=True, after=mlp_value)
def mlp_layouts(seen):
    """mlp_2d: the result has the layout of A, and each gradient has the layout of its array"""
    expect_spec(seen.out, P("x", "y"))
    for name, spec in {"a": P("x", "y"), "w_in": P("x", "y"), "w_out": P("y", "x")}.items():
        expect_spec(seen.grads[name], spec)


@exercise.check(layer, points=1, public=True, after=mlp_value)
def mlp_weights(seen):
    """mlp_2d: over x the forward pass gathers each weight once and sends nothing else"""
    expect_shard_map(seen)
    over_x = seen.only(backward=False, axis="x")
    # Wrong: W_out is cut as W_in, so the compiler moves parts of it before the function begins. On x=2 it moves 1 part
    # besides the 2 that are gathered. On x=4 an all-to-all moves half a part, and a permute 1 part, besides 6.
    near = "" if seen.mesh["x"] == 2 else "only on x=2 are so few parts gathered that the ratio is 1.5"
    wrong = 2.5 if near else 3
    travels(over_x, (2, 2, wrong), (0, 0, 0), "all_gather", near=near)


@exercise.check(layer, points=0.5, after=mlp_value)
def mlp_activations(seen):
    """mlp_2d: over y the forward pass gathers activations once and reduce-scatters once"""
    expect_shard_map(seen)
    over_y = seen.only(backward=False, axis="y")
    travels(over_y, (0, 0, 0), (2, 2, 3), "all_gather", "reduce_scatter")


@exercise.check(layer, points=1, after=[mlp_gradients, mlp_layouts])
def mlp_backward(seen):
    """mlp_2d: the backward pass sends weights and their gradients over x, activations and their gradients over y;
    both passes together compute at most one matmul again"""
    expect_shard_map(seen)
    travels(seen.only(backward=True), (2, 4, 5), (2, 3, 5), "all_gather", "reduce_scatter")
    B, D, F = seen.dims["B"], seen.dims["D"], seen.dims["F"]
    matmul = 2 * B * D * F / (seen.mesh["x"] * seen.mesh["y"])
    # A right program has 6 matmuls, or 7 if it computes tanh's input again. Wrong: a device repeats other devices' matmuls.
    expect_flops(seen, at_most=needed(6 * matmul, 9 * matmul, at=7.5 * matmul))
    # Wrong: three operations correct each of a matmul's additions.
    expect_other_flops(seen, at_most=needed(matmul / (2 * D), 1.5 * matmul, at=matmul))


SPECS = (P("x", "y"), P("x", "y"), P("y", "x"))


@exercise.alternative(of=mlp_2d)
def weights_first(a, w_in, w_out, *, mesh):
    """Gather weights first, then activations. The backward pass gathers everything again."""

    @jax.checkpoint
    def local(a, w_in, w_out):
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)
        hidden = jnp.tanh(jnp.einsum("bd,df->bf", jax.lax.all_gather(a, "y", axis=1, tiled=True), up))
        return jax.lax.psum_scatter(jnp.einsum("bf,fd->bd", hidden, down), "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"), check_vma=False)(a, w_in, w_out)


@exercise.alternative(of=mlp_2d)
def activations_in_hops(a, w_in, w_out, *, mesh):
    """Activations go round y in hops, and each part is multiplied by its rows of W_in when it arrives."""

    def local(a, w_in, w_out):
        n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
        ring = [(d, (d + 1) % n) for d in range(n)]
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        hidden, part, width = 0, a, a.shape[1]
        for hop in range(n):
            arriving = jax.lax.ppermute(part, "y", ring) if hop < n - 1 else part
            hidden += part @ jax.lax.dynamic_slice_in_dim(up, (me - hop) % n * width, width)
            part = arriving
        partial = jnp.tanh(hidden) @ down
        return jax.lax.psum_scatter(partial, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.alternative(of=mlp_2d)
def by_halves_of_the_batch(a, w_in, w_out, *, mesh):
    """Split the rows into two parts: one part's activations travel while the other part is multiplied."""

    def local(a, w_in, w_out):
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        halves = []
        for part in (a[:1], a[1:]):
            rows = jax.lax.all_gather(part, "y", axis=1, tiled=True)
            halves.append(jax.lax.psum_scatter(jnp.tanh(rows @ up) @ down, "y", scatter_dimension=1, tiled=True))
        return jnp.concatenate(halves)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"))(a, w_in, w_out)


def around(
    over_x=None, finish=None, over_y=lambda a: jax.lax.all_gather(a, "y", axis=1, tiled=True), matmul=jnp.matmul
):
    """Return mlp_2d with changed gathers of weights or of A, a changed first matmul or a changed last step."""
    gather = over_x or (lambda w, axis: jax.lax.all_gather(w, "x", axis=axis, tiled=True))
    scatter = finish or (lambda out: jax.lax.psum_scatter(out, "y", scatter_dimension=1, tiled=True))

    def local(a, w_in, w_out):
        return scatter(jnp.tanh(matmul(over_y(a), gather(w_in, 0))) @ gather(w_out, 1))

    return lambda a, w_in, w_out, mesh: jax.shard_map(
        local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"), check_vma=False
    )(a, w_in, w_out)


def own_columns(out):
    """Return the columns of a whole result that this device keeps."""
    width = out.shape[1] // jax.lax.axis_size("y")
    return jax.lax.dynamic_slice_in_dim(out, jax.lax.axis_index("y") * width, width, axis=1)


@exercise.misconception(fails=mlp_value, breaks="right numbers")
def weights_gathered_over_y(a, w_in, w_out, *, mesh):
    """The columns of A do not match the rows of W_in. Gather A over y. Over x, gather only D: the rows of W_in and the columns of W_out. Leave F cut."""
    return around(over_x=lambda w, axis: jax.lax.all_gather(w, "y", axis=1 - axis, tiled=True))(a, w_in, w_out, mesh)


@exercise.misconception(fails=mlp_value, breaks="right numbers")
def summed_over_both_axes(a, w_in, w_out, *, mesh):
    """You summed over x as well. Chips along x have different rows of the batch. Only chips along y hold parts of the same sums."""

    def finish(out):
        return jax.lax.psum(jax.lax.psum_scatter(out, "y", scatter_dimension=1, tiled=True), "x")

    return around(finish=finish)(a, w_in, w_out, mesh)


@exercise.misconception(fails=mlp_value, breaks="right numbers")
def kept_a_partial_sum(a, w_in, w_out, *, mesh):
    """You kept your columns of a partial sum. Each chip along y has summed only its own part of F: add the parts with a reduce-scatter over y."""
    return around(finish=own_columns)(a, w_in, w_out, mesh)


@exercise.misconception(fails=mlp_value, breaks="right numbers")
def activated_partial_sums(a, w_in, w_out, *, mesh):
    """You put partial sums through tanh, but tanh(p + q) is not tanh(p) + tanh(q). Gather A over y before the first matmul."""

    def local(a, w_in, w_out):
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        width = a.shape[1]
        own = jax.lax.dynamic_slice_in_dim(up, jax.lax.axis_index("y") * width, width)
        return jax.lax.psum_scatter(jnp.tanh(a @ own) @ down, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"))(a, w_in, w_out)


def without_tanh(a, w_in, w_out, mesh):
    """Return A · W_in · W_out."""

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        return jax.lax.psum_scatter(rows @ up @ down, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.misconception(fails=mlp_value, breaks="right numbers")
def tanh_left_out(a, w_in, w_out, *, mesh):
    """You left out tanh, or applied it to the result. Apply it between the two matmuls."""
    return without_tanh(a, w_in, w_out, mesh)


@exercise.misconception(form_of=tanh_left_out, breaks="right numbers")
def tanh_of_the_result(a, w_in, w_out, *, mesh):
    """Like `tanh_left_out`, but with tanh of the result."""
    return jnp.tanh(without_tanh(a, w_in, w_out, mesh))


@exercise.misconception(fails=mlp_value, breaks="returned Out")
def returned_the_other_way_round(a, w_in, w_out, *, mesh):
    """Your out_specs cut the rows over y and the columns over x. The result has the layout of A: P('x', 'y')."""

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        return jax.lax.psum_scatter(jnp.tanh(rows @ up) @ down, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("y", "x"))(a, w_in, w_out)


@exercise.misconception(fails=mlp_gradients, breaks="right numbers")
def gradients_summed_over_y(a, w_in, w_out, *, mesh):
    """You summed the weights' gradients over y. Chips along y have different columns of W_in and different rows of W_out, so their gradients belong to different weights."""

    def gather(w, axis):
        whole = jax.custom_vjp(lambda w: jax.lax.all_gather(w, "x", axis=axis, tiled=True))

        def back(_, g):
            return (jax.lax.psum(jax.lax.psum_scatter(g, "x", scatter_dimension=axis, tiled=True), "y"),)

        whole.defvjp(lambda w: (whole(w), None), back)
        return whole(w)

    return around(over_x=gather)(a, w_in, w_out, mesh)


@exercise.misconception(fails=mlp_backward, breaks="it sends at most twice the forward bytes over x")
def gradients_all_reduced_over_x(a, w_in, w_out, *, mesh):
    """You all-reduced the weights' gradients over x and kept a part. A reduce-scatter gives a chip its own part, for half the bytes."""

    def gather(w, axis):
        whole = jax.custom_vjp(lambda w: jax.lax.all_gather(w, "x", axis=axis, tiled=True))

        def back(_, g):
            width = w.shape[axis]
            return (jax.lax.dynamic_slice_in_dim(jax.lax.psum(g, "x"), jax.lax.axis_index("x") * width, width, axis),)

        whole.defvjp(lambda w: (whole(w), None), back)
        return whole(w)

    return around(over_x=gather)(a, w_in, w_out, mesh)


def with_corrected_sums(a, w):
    """Return a @ w. Each addition of a sum corrects the rounding error of the addition before it."""

    def add(state, factors):
        total, lost = state
        term = factors[0][:, None] * factors[1] - lost
        new = total + term
        return (new, (new - total) - term), None

    none = jnp.zeros((len(a), w.shape[1]))
    return jax.lax.scan(add, (none, none), (a.T, w))[0][0]


@exercise.misconception(fails=mlp_backward, breaks="Other operations take at most 2BDF/(XY) FLOPs")
def rounding_errors_corrected(a, w_in, w_out, *, mesh):
    """You wrote a matmul as a loop that corrects the rounding error of each addition. These corrections are three more operations for each term of a sum. Use `@`, which is exact enough."""
    matmul = jax.custom_vjp(with_corrected_sums)
    matmul.defvjp(lambda a, w: (matmul(a, w), (a, w)), lambda kept, g: jax.vjp(jnp.matmul, *kept)[1](g))
    return around(matmul=matmul)(a, w_in, w_out, mesh)


@exercise.misconception(
    fails=[mlp_activations, mlp_backward, mlp_weights],
    breaks=["sends over x only weights, by gathers", "at most 15BDF/(XY) FLOPs"],
)
def gathered_over_both_axes(a, w_in, w_out, *, mesh):
    """You gathered the weights whole, over y as well. That is FSDP on all chips, and chips along y repeat the same work. Leave F cut over y."""

    def both(w, axis):
        columns = jax.lax.all_gather(w, "y", axis=1 - axis, tiled=True)
        return jax.lax.all_gather(columns, "x", axis=axis, tiled=True)

    return around(over_x=both, finish=own_columns)(a, w_in, w_out, mesh)


@exercise.misconception(fails=[mlp_activations, mlp_backward], breaks="one gather and one scatter")
def gathered_over_x_then_y(a, w_in, w_out, *, mesh):
    """You gathered the weights over x, and then over y as well, so chips along y repeat the same work. Leave F cut over y."""

    def both(w, axis):
        part = jax.lax.all_gather(w, "x", axis=axis, tiled=True)
        return jax.lax.all_gather(part, "y", axis=1 - axis, tiled=True)

    return around(over_x=both, finish=own_columns)(a, w_in, w_out, mesh)


@exercise.misconception(fails=[mlp_activations, mlp_backward, mlp_weights], breaks="one gather and one scatter")
def hidden_gathered_over_y(a, w_in, w_out, *, mesh):
    """You gathered tanh(H) and W_out over y, so chips along y repeat the second matmul. Leave F cut over y: each chip multiplies its own part of F, and a reduce-scatter over y adds the results."""

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)
        hidden = jnp.tanh(rows @ jax.lax.all_gather(w_in, "x", axis=0, tiled=True))
        hidden, down = (jax.lax.all_gather(w, "y", axis=axis, tiled=True) for axis, w in ((1, hidden), (0, w_out)))
        return own_columns(hidden @ jax.lax.all_gather(down, "x", axis=1, tiled=True))

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.misconception(fails=mlp_weights, breaks="sends over x only weights, by gathers")
def activations_over_x(a, w_in, w_out, *, mesh):
    """You gathered the rows of A over x and left W_in cut, so activations travel over x. Every chip then has all rows of the batch, and the sums of H travel too. Over x, gather the weights, and leave the batch cut."""

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(jax.lax.all_gather(a, "y", axis=1, tiled=True), "x", tiled=True)
        own = jax.lax.dynamic_slice_in_dim(rows, jax.lax.axis_index("x") * len(w_in), len(w_in), axis=1)
        hidden = jnp.tanh(jax.lax.psum_scatter(own @ w_in, "x", tiled=True))
        out = hidden @ jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        return jax.lax.psum_scatter(out, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.misconception(
    fails=[mlp_activations, mlp_backward, mlp_weights], breaks="sends over x only weights, by gathers"
)
def activations_over_x_then_y(a, w_in, w_out, *, mesh):
    """You gathered the rows of A over x first, so the gather over y also brings the rows of all devices along x. Over x, gather the weights, and leave the batch cut."""

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(jax.lax.all_gather(a, "x", tiled=True), "y", axis=1, tiled=True)
        own = jax.lax.dynamic_slice_in_dim(rows, jax.lax.axis_index("x") * len(w_in), len(w_in), axis=1)
        hidden = jnp.tanh(jax.lax.psum_scatter(own @ w_in, "x", tiled=True))
        out = hidden @ jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        return jax.lax.psum_scatter(out, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.misconception(fails=mlp_value, breaks="right numbers")
def parts_of_a_interleaved(a, w_in, w_out, *, mesh):
    """You joined the parts of A in the wrong order: their columns alternate. The part of device 0 along y comes first, then the part of device 1: use tiled=True."""
    interleaved = lambda a: jax.lax.all_gather(a, "y", axis=2).reshape(a.shape[0], -1)  # noqa: E731
    return around(over_y=interleaved)(a, w_in, w_out, mesh)


@exercise.misconception(
    fails=[mlp_weights, mlp_activations, mlp_backward], breaks="in the forward pass `shard_map` sends over x"
)
def left_to_the_compiler(a, w_in, w_out, *, mesh):
    """You left the collectives to the compiler, so your program does not show what is sent. Write it with
    jax.shard_map."""
    laid_out = lambda x, *axes: jax.lax.with_sharding_constraint(x, jax.NamedSharding(mesh, P(*axes)))  # noqa: E731
    hidden = jnp.tanh(laid_out(a, "x", "y") @ laid_out(w_in, "x", "y"))
    return laid_out(hidden @ laid_out(w_out, "y", "x"), "x", "y")


@exercise.misconception(fails=mlp_layouts, breaks="gradients laid out as their arrays")
def weights_gathered_before(a, w_in, w_out, *, mesh):
    """Your in_specs leave out an axis of an array's layout: x of the weights, or y of A. JAX then gathers the array before your function begins, and its gradient is not cut over this axis. Take the arrays as they are, and gather them in the function."""

    def local(a, up, down):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)
        return jax.lax.psum_scatter(jnp.tanh(rows @ up) @ down, "y", scatter_dimension=1, tiled=True)

    specs = (P("x", "y"), P(None, "y"), P("y", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.misconception(form_of=weights_gathered_before)
def all_gathered_before(a, w_in, w_out, *, mesh):
    """Like `weights_gathered_before`, and A is gathered, too."""

    def local(rows, up, down):
        return jax.lax.psum_scatter(jnp.tanh(rows @ up) @ down, "y", scatter_dimension=1, tiled=True)

    specs = (P("x", None), P(None, "y"), P("y", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.misconception(form_of=weights_gathered_before)
def activations_gathered_before(a, w_in, w_out, *, mesh):
    """Like `weights_gathered_before`, but A is gathered."""

    def local(rows, up, down):
        up = jax.lax.all_gather(up, "x", tiled=True)
        down = jax.lax.all_gather(down, "x", axis=1, tiled=True)
        return jax.lax.psum_scatter(jnp.tanh(rows @ up) @ down, "y", scatter_dimension=1, tiled=True)

    specs = (P("x", None), P("x", "y"), P("y", "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.misconception(fails=[mlp_activations, mlp_backward], breaks="one gather and one scatter")
def partial_sums_gathered(a, w_in, w_out, *, mesh):
    """You gathered all partial sums over y and added them. A reduce-scatter adds them on the way, and sends a chip only its own columns."""

    def finish(out):
        return own_columns(jnp.sum(jax.lax.all_gather(out, "y"), axis=0))

    return around(finish=finish)(a, w_in, w_out, mesh)


@exercise.misconception(fails=[mlp_activations, mlp_backward], breaks="one gather and one scatter")
def all_reduced_over_y(a, w_in, w_out, *, mesh):
    """You all-reduced the result over y and kept your columns. A reduce-scatter gives a chip its own columns, for half the bytes."""
    return around(finish=lambda out: own_columns(jax.lax.psum(out, "y")))(a, w_in, w_out, mesh)


@exercise.misconception(fails=[mlp_activations, mlp_layouts], breaks="returned Out")
def result_whole_over_y(a, w_in, w_out, *, mesh):
    """You all-reduced the result over y, so each chip along y holds all columns. Out has the layout of A: a reduce-scatter gives a chip its own columns, for half the bytes."""

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)
        return jax.lax.psum(jnp.tanh(rows @ up) @ down, "y")

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P("x"))(a, w_in, w_out)


@exercise.misconception(fails=[mlp_activations, mlp_layouts, mlp_weights], breaks="gradients laid out as their arrays")
def w_out_cut_as_w_in(a, w_in, w_out, *, mesh):
    """You took W_out as P('x', 'y'), as if it were cut like W_in. JAX then sends W_out to other chips before your function begins, and the gradient of W_out is cut wrongly. W_out is P('y', 'x'): y cuts F, and x cuts D."""

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)
        hidden = jnp.tanh(rows @ jax.lax.all_gather(w_in, "x", axis=0, tiled=True))
        hidden = jax.lax.all_gather(hidden, "y", axis=1, tiled=True)
        return hidden @ jax.lax.all_gather(w_out, "x", axis=0, tiled=True)

    specs = (P("x", "y"), P("x", "y"), P("x", "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, w_in, w_out)


@exercise.misconception(of=mlp_2d_bytes)
def bytes_on_swapped_axes(B, D, F, X, Y):
    """You sent weights along y and activations along x. x cuts the batch, so chips along x exchange weights. y cuts F, so chips along y exchange activations."""
    return {"x": 2 * 2 * B * D / Y * (X - 1) / X, "y": 2 * 2 * D * F / X * (Y - 1) / Y}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_of_whole_arrays(B, D, F, X, Y):
    """You gathered whole arrays. A gather along x joins only 1/Y of the weights, and a gather along y joins only 1/X of the activations."""
    return {"x": 2 * 2 * D * F * (X - 1) / X, "y": 2 * 2 * B * D * (Y - 1) / Y}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_of_whole_weights(X, **rest):
    """You gathered whole weights along x. y cuts F, so a chip gathers only 1/Y of each weight."""
    right = mlp_2d_bytes(X=X, **rest)
    return {**right, "x": right["x"] * rest["Y"]}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_of_whole_activations(X, **rest):
    """You sent the whole batch's activations along y. x cuts the batch, so a chip has only 1/X of the activations."""
    right = mlp_2d_bytes(X=X, **rest)
    return {**right, "y": right["y"] * X}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_divided_by_talking_axis(B, D, F, X, Y):
    """You divided by the size of the collective's axis. After a gather over x, only y cuts the weights. After a gather over y, only x cuts the activations."""
    return {"x": 2 * 2 * D * F / X * (X - 1) / X, "y": 2 * 2 * B * D / Y * (Y - 1) / Y}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_without_the_own_part(B, D, F, X, Y):
    """You counted the whole gathered or scattered array. On N chips a chip sends (N - 1)/N of the array."""
    return {"x": 2 * 2 * D * F / Y, "y": 2 * 2 * B * D / X}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_in_swapped_columns(**draw):
    """You swapped the columns of the answer. Chips along x gather weights, and chips along y exchange activations."""
    right = mlp_2d_bytes(**draw)
    return {"x": right["y"], "y": right["x"]}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_of_float32(**draw):
    """You counted four bytes for a number. A bfloat16 has two bytes."""
    return {axis: 2 * sent for axis, sent in mlp_2d_bytes(**draw).items()}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_of_one_each(B, D, F, X, Y):
    """You counted one collective for each axis. There are two weights to gather, and the activations need a gather and a reduce-scatter."""
    return {"x": 2 * D * F / Y * (X - 1) / X, "y": 2 * B * D / X * (Y - 1) / Y}


@exercise.misconception(of=mlp_2d_bytes)
def bytes_of_an_all_reduce(B, D, F, X, Y):
    """You ended with an all-reduce over y. The result stays cut over y, so a reduce-scatter is enough and sends half as much."""
    return {"x": 2 * 2 * D * F / Y * (X - 1) / X, "y": 2 * 3 * B * D / X * (Y - 1) / Y}


exercise.scenario(
    mlp_2d_bytes,
    lambda B, D, F, X, Y: Scenario(
        mesh={"x": X, "y": Y}, arrays=[((B, D), P("x", "y")), ((D, F), P("x", "y")), ((F, D), P("y", "x"))]
    ),
)
