"""H9: checks, misconceptions and alternatives."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, array, larger
from grader.expect import (
    expect_close,
    expect_flops,
    expect_not_waiting,
    expect_only,
    expect_outcomes,
    expect_shard_map,
    expect_spec,
    expect_traffic,
    needed,
)
from grader.hardware import all_gather_time, matmul_time
from h9_seven_layouts import SCHEMES, exercise, mixed_layer_time, overlaps_with, stack


@exercise.helper
def layers(rng, shape):
    return rng.standard_normal(shape) / np.sqrt(shape[-1])


@exercise.helper
def batch(rng, shape):
    return rng.standard_normal(shape)


@exercise.helper
def arguments(scheme):
    """Draw A and two or three layers, in the layouts of the scheme."""
    act, weight = SCHEMES[scheme]
    ws = array("L", "E", "E", spec=P(None, *weight), draw=layers)
    return {"a": array("B", "E", spec=act, draw=batch), "ws": ws, "static": {"scheme": scheme}}


DIMS = {"L": 2, "B": 20, "E": 24}
HIDDEN = {"L": 3, "B": 28, "E": 44}
one = exercise.call(stack, **arguments(1), dims=DIMS, hidden_dims=HIDDEN)
two = exercise.call(stack, **arguments(2), dims=DIMS, hidden_dims=HIDDEN)
three = exercise.call(stack, **arguments(3), dims=DIMS, hidden_dims=HIDDEN)
four = exercise.call(stack, **arguments(4), dims=DIMS, hidden_dims=HIDDEN)
five = exercise.call(stack, **arguments(5), dims=DIMS, hidden_dims=HIDDEN)
six = exercise.call(stack, **arguments(6), dims=DIMS, hidden_dims=HIDDEN)
seven = exercise.call(stack, **arguments(7), dims=DIMS, hidden_dims=HIDDEN)


@exercise.helper
def right(*schemes):
    """Require that each scheme's result is right, and that it has the layout of the scheme's A."""
    for seen in schemes:
        due = seen.a
        for w in seen.ws:
            due = due @ w
        expect_close(seen.out, due)
        expect_spec(seen.out, SCHEMES[seen.scheme][0])


@exercise.helper
def budget(seen, *kinds, x=None, y=None, parts="x", again="x"):
    """Require that each layer sends the given numbers along x and y, by the given collectives or hop by hop. The devices
    along `parts` share each matmul. `x` and `y` hold the numbers that right and wrong programs send. A wrong program does the matmuls
    of all devices along `again`."""
    L, B, E = seen.dims["L"], seen.dims["B"], seen.dims["E"]
    share = int(np.prod([seen.mesh[axis] for axis in parts]))
    expect_shard_map(seen)
    expect_only(seen, *kinds, *(["permute"] if kinds else []))
    for axis, numbers in (("x", x), ("y", y)):
        layers = 4 * L * (1 - 1 / seen.mesh[axis])
        expect_traffic(seen, at_most=needed(*(layers * n for n in numbers)) if numbers else 0, axis=axis)
    work = 2 * L * B * E * E / share
    expect_flops(seen, at_most=needed(work, seen.mesh[again] * work))


@exercise.check([one, two, three], points=0.25, public=True)
def batch_value(one, two, three):
    """stack, schemes 1 to 3: the result, laid out as A"""
    right(one, two, three)


@exercise.check([five, six], points=0.25, public=True)
def columns_value(five, six):
    """stack, schemes 5 and 6: the result, laid out as A"""
    right(five, six)


@exercise.check([four, seven], points=0.25, public=True)
def both_value(four, seven):
    """stack, schemes 4 and 7: the result, laid out as A"""
    right(four, seven)


@exercise.check([one, two, three], points=0.5, after=batch_value)
def batch_budget(one, two, three):
    """stack, schemes 1 to 3: only W is sent, over x, and no gather waits for a matmul"""
    budget(one)
    B, E = one.dims["B"], one.dims["E"]
    for seen in (two, three):
        budget(seen, "all_gather", x=(E * E, E * E + B * E))  # wrong: A is sent, too
    for seen in (two, three):
        expect_not_waiting(seen, "all_gather", on="matmul")


@exercise.check([five, six], points=0.5, public=True, after=columns_value)
def columns_budget(five, six):
    """stack: scheme 5 reduce-scatters C over x, and scheme 6 gathers A over x"""
    B, E = five.dims["B"], five.dims["E"]
    budget(five, "reduce_scatter", x=(B * E, 2 * B * E))  # wrong: an all-reduce
    budget(six, "all_gather", x=(B * E, B * E + E * E))  # wrong: W is sent, too


@exercise.check([four, seven], points=0.5, after=both_value)
def both_budget(four, seven):
    """stack, schemes 4 and 7: over y only C is sent, over x only W; no matmul runs twice; no gather of W waits for a matmul"""
    B, E, X, Y = four.dims["B"], four.dims["E"], four.mesh["x"], four.mesh["y"]
    rows, weights = B * E / X, E * E / Y
    budget(four, "all_gather", y=(rows, min(3 * rows, E * E)), parts="xy", again="y")  # wrong: sums in place of gathers
    over_x, over_y = (weights, Y * weights), (rows, rows + E * E / X)  # wrong: all of W over both axes
    budget(seven, "all_gather", "reduce_scatter", x=over_x, y=over_y, parts="xy", again="y")
    expect_not_waiting(seven.only(axis="x"), "all_gather", on="matmul")


def drawn(rng):
    """Generate cases: the seven layouts and three other sets of layouts, each with several pairs of axis names."""
    plain = [("d", None, None, None), ("d", None, "d", None), ("d", None, None, "d"), ("d", None, None, "t")]
    plain += [(None, "d", "d", None), (None, "d", None, "d"), ("d", "t", "t", "d")]
    plain += [("d", "t", "d", "t"), ("d", "t", "t", None), ("d", "t", None, "t")]
    for names in ({"d": "x", "t": "y"}, {"d": "y", "t": "x"}, {"d": "data", "t": "model"}):
        for i in rng.permutation(len(plain)):
            layout = [names.get(axis) for axis in plain[i]]
            for hops in (False, True):
                yield {"act": tuple(layout[:2]), "weight": tuple(layout[2:]), "hops": hops}


overlapping = exercise.cases(
    overlaps_with,
    public=[
        {"act": ("x", None), "weight": (None, None), "hops": False},
        {"act": ("x", None), "weight": (None, "x"), "hops": False},
        {"act": (None, "x"), "weight": ("x", None), "hops": False},
        {"act": (None, "x"), "weight": ("x", None), "hops": True},
    ],
    hidden=drawn,
)


@exercise.check(overlapping, points=1, public=True)
def overlap_places(seen):
    """overlaps_with: the collectives of a layer and the matmuls that overlap each"""
    expect_outcomes(seen)


# -- other ways to do it right -----------------------------------------------------------------


@exercise.alternative(of=stack)
def by_rules(a, ws, *, mesh, scheme):
    """One function follows the layouts of any scheme. A scan runs the layers. check_vma is on if JAX can prove out_specs."""
    act, weight = SCHEMES[scheme]
    (rows, cols), (down, across) = act, weight

    def layer(a, w):
        for dim, axis in enumerate(weight):
            if axis is not None and axis == rows:
                w = jax.lax.all_gather(w, axis, axis=dim, tiled=True)
        if cols is not None and cols == across:
            a = jax.lax.all_gather(a, cols, axis=1, tiled=True)
        c = jnp.einsum("be,ef->bf", a, w)
        if cols is not None and cols == down:
            c = jax.lax.psum_scatter(c, cols, scatter_dimension=1, tiled=True)
        elif across not in (None, rows, cols):
            c = jax.lax.all_gather(c, across, axis=1, tiled=True)
        return c, None

    def local(a, ws):
        return jax.lax.scan(layer, a, ws)[0]

    specs, check = (act, P(None, *weight)), scheme != 4
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=act, check_vma=check)(a, ws)


@exercise.alternative(of=stack)
def activations_in_hops(a, ws, *, mesh, scheme):
    """Schemes 5 and 6 use hops, and each hop overlaps a part of the matmul. Weights are gathered one layer ahead."""
    act, weight = SCHEMES[scheme]

    def gathered(w):
        return jax.lax.all_gather(w, "x", axis=list(weight).index("x"), tiled=True) if scheme in (2, 3, 7) else w

    def hopping(a, w):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), a.shape[1]
        ring = [(d, (d + 1) % n) for d in range(n)]
        if scheme == 6:  # multiply the part that arrived by its rows of W
            out = jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
            for hop in range(n):
                arriving = jax.lax.ppermute(a, "x", ring) if hop < n - 1 else a
                out += a @ jax.lax.dynamic_slice_in_dim(w, (me - hop) % n * width, width)
                a = arriving
            return out
        total = None  # a device's sum goes round once, and each device adds its own part
        for hop in range(1, n + 1):
            part = a @ jax.lax.dynamic_slice_in_dim(w, (me - hop) % n * width, width, axis=1)
            total = part if total is None else jax.lax.ppermute(total, "x", ring) + part
        return total

    def local(a, ws):
        arriving = gathered(ws[0])
        for i in range(ws.shape[0]):
            w, arriving = arriving, gathered(ws[i + 1]) if i + 1 < ws.shape[0] else arriving
            a = hopping(a, w) if scheme in (5, 6) else a @ w
            if scheme == 4:
                a = jax.lax.all_gather(a, "y", axis=1, tiled=True)
            if scheme == 7:
                a = jax.lax.psum_scatter(a, "y", scatter_dimension=1, tiled=True)
        return a

    specs = (act, P(None, *weight))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=act, check_vma=False)(a, ws)


@exercise.alternative(of=overlaps_with)
def overlaps_with_by_table(act, weight, hops):
    """First handle the axes that cut both W and the batch, then each other axis by its case."""
    between = ["nothing", "own matmul"][hops]
    rows, cols = act
    found = [["all_gather", "W", axis, "other layers"] for axis in weight if axis and axis == rows]
    rest = [axis if axis != rows else None for axis in weight]
    if cols and rest[0] == cols:
        return [*found, ["reduce_scatter", "C", cols, between]]
    if cols:
        return [*found, ["all_gather", "A", cols, between]]
    return [*found, ["all_gather", "C", rest[1], between]] if rest[1] else found


# -- what goes wrong ---------------------------------------------------------------------------


def gather(array, axis, dim):
    return jax.lax.all_gather(array, axis, axis=dim, tiled=True)


def scatter(array, axis):
    return jax.lax.psum_scatter(array, axis, scatter_dimension=1, tiled=True)


def own_part(array, axis, dim):
    """Return the rows or columns of an array that this device keeps."""
    width = array.shape[dim] // jax.lax.axis_size(axis)
    return jax.lax.dynamic_slice_in_dim(array, jax.lax.axis_index(axis) * width, width, axis=dim)


RIGHT = {
    1: lambda a, w: a @ w,
    2: lambda a, w: a @ gather(w, "x", 0),
    3: lambda a, w: a @ gather(w, "x", 1),
    4: lambda a, w: gather(a @ w, "y", 1),
    5: lambda a, w: scatter(a @ w, "x"),
    6: lambda a, w: gather(a, "x", 1) @ w,
    7: lambda a, w: scatter(a @ gather(w, "x", 1), "y"),
}


def with_layers(**changed):
    """Return ``stack`` with changed layers for some schemes: ``with_layers(s5=lambda a, w: ...)``."""

    def other(a, ws, mesh, scheme):
        layer, (act, weight) = changed.get(f"s{scheme}", RIGHT[scheme]), SCHEMES[scheme]

        def local(a, ws):
            for w in ws:
                a = layer(a, w)
            return a

        specs = (act, P(None, *weight))
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=act, check_vma=False)(a, ws)

    return other


@exercise.misconception(of=stack, fails=columns_value, breaks="the result, laid out as A")
def partial_sums_kept(a, ws, *, mesh, scheme):
    """In scheme 5 you kept your columns of a partial sum. Each device has multiplied only its own part of the summed dimension: add the parts with a reduce-scatter."""
    return with_layers(s5=lambda a, w: own_part(a @ w, "x", 1))(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=columns_value, breaks="the result, laid out as A")
def ended_whole(a, ws, *, mesh, scheme):
    """In scheme 5 you ended with an all-reduce, so C is whole on every device. The next layer needs the layout of A: end with P(None, 'x')."""
    if scheme != 5:
        return with_layers()(a, ws, mesh, scheme)

    def local(a, ws):
        for w in ws:
            c = jax.lax.psum(a @ w, "x")
            a = own_part(c, "x", 1)
        return c

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P(None, "x")), out_specs=P(), check_vma=False)(a, ws)


@exercise.misconception(
    of=stack, fails=columns_budget, breaks="(X−1)/X or (Y−1)/Y of the arrays under *sent in each layer*"
)
def all_reduced_and_cut(a, ws, *, mesh, scheme):
    """In scheme 5 you all-reduced C and kept your columns. A reduce-scatter gives a device its own columns, for half the bytes."""
    return with_layers(s5=lambda a, w: own_part(jax.lax.psum(a @ w, "x"), "x", 1))(a, ws, mesh, scheme)


@exercise.misconception(
    of=stack, fails=columns_budget, breaks="(X−1)/X or (Y−1)/Y of the arrays under *sent in each layer*"
)
def weights_gathered_for_columns(a, ws, *, mesh, scheme):
    """In scheme 6 you gathered W, multiplied all of it by each device's columns of A, and scattered the sums. Gather A instead: no other collective is needed."""

    def rows(a, w):
        return scatter(a @ own_part(gather(w, "x", 1), "x", 0), "x")

    return with_layers(s6=rows)(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=batch_budget, breaks="of the arrays under *sent in each layer*")
def activations_sent_in_2(a, ws, *, mesh, scheme):
    """In scheme 2 you sent A and C. FSDP sends W alone: gather W over x, and multiply your own rows of A by all of W."""

    def moved(a, w):
        return jax.lax.psum_scatter(own_part(gather(a, "x", 0), "x", 1) @ w, "x", scatter_dimension=0, tiled=True)

    return with_layers(s2=moved)(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=both_budget, breaks="no matmul runs twice")
def same_rows_twice(a, ws, *, mesh, scheme):
    """In scheme 4 you gathered W over y, so devices along y multiply the same rows by the same W. Multiply by a part of W, and gather C."""
    return with_layers(s4=lambda a, w: a @ gather(w, "y", 1))(a, ws, mesh, scheme)


@exercise.misconception(
    of=stack, fails=both_budget, breaks="(X−1)/X or (Y−1)/Y of the arrays under *sent in each layer*"
)
def weights_gathered_whole(a, ws, *, mesh, scheme):
    """In scheme 7 you gathered W over both axes. Over x, gather the columns of W. Leave the rows of W cut over y, like A's columns."""

    def whole(a, w):
        return scatter(a @ own_part(gather(gather(w, "y", 0), "x", 1), "y", 0), "y")

    return with_layers(s7=whole)(a, ws, mesh, scheme)


def whole_matmul(a, w, act, weight):
    """Return this device's part of C, from all of A and all of W."""
    for dim in (0, 1):
        a = gather(a, act[dim], dim) if act[dim] else a
        w = gather(w, weight[dim], dim) if weight[dim] else w
    c = a @ w
    for dim in (0, 1):
        c = own_part(c, act[dim], dim) if act[dim] else c
    return c


@exercise.misconception(of=stack, fails=[batch_budget, columns_budget, both_budget], breaks="no matmul runs twice")
def everything_gathered(a, ws, *, mesh, scheme):
    """You gathered A and W whole, so each device computes all of C and keeps a part. Gather only the array that the table names. Then devices share the matmul."""
    act, weight = SCHEMES[scheme]
    return with_layers(**{f"s{scheme}": lambda a, w: whole_matmul(a, w, act, weight)})(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=columns_budget, breaks="no matmul runs twice")
def everything_gathered_in_5(a, ws, *, mesh, scheme):
    """In scheme 5 you gathered A and W over x, so devices along x repeat the same work. A's columns and W's rows are cut alike: multiply them as they are, and scatter the sums."""
    return with_layers(s5=lambda a, w: own_part(gather(a, "x", 1) @ gather(w, "x", 0), "x", 1))(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=both_budget, breaks="no matmul runs twice")
def everything_gathered_in_7(a, ws, *, mesh, scheme):
    """In scheme 7 you gathered A and W over y, so devices along y repeat the same work. Over x, gather the columns of W. Leave the rows of W, and A's columns, cut over y."""

    def whole(a, w):
        return own_part(gather(a, "y", 1) @ gather(gather(w, "x", 1), "y", 0), "y", 1)

    return with_layers(s7=whole)(a, ws, mesh, scheme)


@exercise.misconception(form_of=everything_gathered_in_7, breaks="no matmul runs twice")
def everything_gathered_in_7_first_over_y(a, ws, *, mesh, scheme):
    """Like `everything_gathered_in_7`, with the gather over y first."""

    def whole(a, w):
        return own_part(gather(a, "y", 1) @ gather(gather(w, "y", 0), "x", 1), "y", 1)

    return with_layers(s7=whole)(a, ws, mesh, scheme)


@exercise.misconception(
    of=stack, fails=[batch_budget, columns_budget, both_budget], breaks="laid out as A, by `jax.shard_map`"
)
def left_to_the_compiler(a, ws, *, mesh, scheme):
    """You left the collectives to the compiler, so your program does not show what is sent. Write it with
    jax.shard_map."""
    for w in ws:
        a = jax.lax.with_sharding_constraint(a @ w, jax.NamedSharding(mesh, SCHEMES[scheme][0]))
    return a


@exercise.misconception(
    of=stack,
    fails=[batch_budget, columns_budget, both_budget],
    breaks="of the arrays under *sent in each layer*, nothing else",
)
def averaged_over_y(a, ws, *, mesh, scheme):
    """In schemes 1 to 6 you averaged C over y, so that shard_map sees equal results along y. Devices along y have equal results anyway: use check_vma=False, and send nothing."""

    def averaged(layer):
        return lambda a, w: jax.lax.pmean(layer(a, w), "y")

    return with_layers(**{f"s{n}": averaged(RIGHT[n]) for n in range(1, 7)})(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=[batch_budget, both_budget], breaks="no gather of W waits for a matmul")
def gathers_behind_the_matmul(a, ws, *, mesh, scheme):
    """Your gather of W waits for the previous layer, so nothing can run beside it. W needs no activations: gather it from the function's argument, without a barrier."""

    def held(layer):
        def behind(a, w):
            a, w = jax.lax.optimization_barrier((a, w))
            return layer(a, w)

        return behind

    return with_layers(s2=held(RIGHT[2]), s3=held(RIGHT[3]), s7=held(RIGHT[7]))(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=batch_value, breaks="the result, laid out as A")
def gathered_along_the_other_dimension(a, ws, *, mesh, scheme):
    """In scheme 2 or 3 the shapes of A and W do not fit. Gather W along the dimension that x cuts: dimension 0 in scheme 2, dimension 1 in scheme 3."""
    return with_layers(s3=lambda a, w: a @ gather(w, "x", 0))(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=batch_value, breaks="the result, laid out as A")
def own_columns_only(a, ws, *, mesh, scheme):
    """In scheme 3 you multiplied your rows by your own columns of W and repeated the result in the other columns. Other devices have the other columns: gather W along dimension 1."""

    def diagonal(a, w):
        return jnp.tile(a @ w, (1, jax.lax.axis_size("x")))

    return with_layers(s3=diagonal)(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=both_value, breaks="the result, laid out as A")
def own_columns_only_in_4(a, ws, *, mesh, scheme):
    """In scheme 4 you repeated your own columns of C in the other columns. Devices along y have the other columns: gather C along dimension 1."""
    return with_layers(s4=lambda a, w: jnp.tile(a @ w, (1, jax.lax.axis_size("y"))))(a, ws, mesh, scheme)


@exercise.misconception(of=stack, fails=both_value, breaks="the result, laid out as A")
def scattered_over_the_batch(a, ws, *, mesh, scheme):
    """In scheme 7 you summed over x. Devices along x have different rows of the batch. y cuts the summed dimension: sum over y."""
    return with_layers(s7=lambda a, w: own_part(jax.lax.psum(a @ gather(w, "x", 1), "x"), "y", 1))(a, ws, mesh, scheme)


@exercise.misconception(of=overlaps_with, fails=overlap_places, breaks="the right list, also")
def gathered_activations_called_overlapped(act, weight, hops):
    """You answered that other layers can overlap a whole all-gather of A. The layer before computes A, so the gather cannot start earlier. If you split a gather into hops, it overlaps its own matmul."""
    found = overlaps_with(act, weight, hops)
    return [(*c[:3], "other layers" if c[1] == "A" else c[3]) for c in found]


@exercise.misconception(of=overlaps_with, fails=overlap_places, breaks="the right list, also")
def sums_called_overlapped(act, weight, hops):
    """You answered that other layers can overlap a whole collective of C. The collective needs the whole matmul, and the next layer needs the collective, so nothing can run beside it."""
    found = overlaps_with(act, weight, hops)
    return [(*c[:3], "other layers" if c[1] == "C" else c[3]) for c in found]


@exercise.misconception(form_of=sums_called_overlapped, breaks="the right list, also")
def sums_and_activations_called_overlapped(act, weight, hops):
    """Like `sums_called_overlapped`, but for gathers of A too."""
    return [(*c[:3], "other layers") for c in overlaps_with(act, weight, hops)]


@exercise.misconception(of=overlaps_with, fails=overlap_places, breaks="the right list, also")
def whole_beside_its_matmul(act, weight, hops):
    """You answered that a whole collective of A or C overlaps its own matmul. The matmul needs the whole gathered A, and a collective of C needs the whole matmul. Such a collective overlaps its matmul only if it is cut into hops."""
    return overlaps_with(act, weight, True)


@exercise.misconception(form_of=whole_beside_its_matmul, breaks="the right list, also")
def whole_gather_beside_its_matmul(act, weight, hops):
    """Like `whole_beside_its_matmul`, for A alone."""
    found = overlaps_with(act, weight, hops)
    return [(*c[:3], "own matmul" if c[1] == "A" else c[3]) for c in found]


@exercise.misconception(form_of=whole_beside_its_matmul, breaks="the right list, also")
def whole_sum_beside_its_matmul(act, weight, hops):
    """Like `whole_beside_its_matmul`, for C alone."""
    found = overlaps_with(act, weight, hops)
    return [(*c[:3], "own matmul" if c[1] == "C" else c[3]) for c in found]


@exercise.misconception(of=overlaps_with, fails=overlap_places, breaks="the right list, also")
def hops_thought_useless(act, weight, hops):
    """You answered that nothing can overlap hops of A or C. Each hop needs, or feeds, only a part of the matmul, so the rest of the matmul can run beside it."""
    return overlaps_with(act, weight, False)


@exercise.misconception(of=overlaps_with, fails=overlap_places, breaks="the right list, also")
def gathers_of_weights_thought_bare(act, weight, hops):
    """You answered that a gather of W can overlap only its own matmul, or nothing. The gather needs no matmul, so it can run beside any earlier layer."""
    between = "own matmul" if hops else "nothing"
    return [(*c[:3], between) for c in overlaps_with(act, weight, hops)]


@exercise.misconception(of=overlaps_with, fails=overlap_places, breaks="the right list, also")
def hops_of_weights_beside_their_matmul(act, weight, hops):
    """You put each hop of W beside its own matmul. A gather of W, whole or in hops, needs no matmul: it runs beside the other layers."""
    found = overlaps_with(act, weight, hops)
    return [(*c[:3], "own matmul") if hops else c for c in found]


@exercise.misconception(of=overlaps_with, fails=overlap_places, breaks="the right list, also")
def weights_gathered_over_any_axis(act, weight, hops):
    """You gathered W over an axis that does not cut the batch, as in layout 4. Devices along this axis then repeat
    the computation. Gather C over this axis."""
    if act[1] is None and weight[1] not in (None, act[0]):
        return [("all_gather", "W", weight[1], "other layers")]
    return overlaps_with(act, weight, hops)


def mixed(together, chip, B, L, E, X, Y, weights=1, activations=1):
    """Return how much longer the large batch takes, where ``together(gather, matmul, scatter)`` gives the time of a batch."""
    gathered = weights * all_gather_time(2 * E * E / Y, X, chip)
    parts = [
        (matmul_time(2 * rows * E * E / (X * Y), chip), activations * all_gather_time(2 * rows * E / X, Y, chip))
        for rows in (B, L)
    ]
    small, large = (together(gathered, matmul, scattered) for matmul, scattered in parts)
    return large - small


@exercise.misconception(of=mixed_layer_time)
def mixed_added(chip, B, L, E, X, Y):
    """You added the two batches' times. The question asks for their difference."""
    gather = all_gather_time(2 * E * E / Y, X, chip)
    return mixed_layer_time(chip=chip, B=B, L=L, E=E, X=X, Y=Y) + 2 * gather


@exercise.misconception(of=mixed_layer_time)
def mixed_large_alone(chip, B, L, E, X, Y):
    """Your answer is the time of the large batch. Subtract the time of the small batch."""
    return mixed_layer_time(chip=chip, B=B, L=L, E=E, X=X, Y=Y) + all_gather_time(2 * E * E / Y, X, chip)


@exercise.misconception(of=mixed_layer_time)
def mixed_small_alone(chip, B, L, E, X, Y):
    """Your answer is the time of the small batch. The question asks how much longer the large batch takes."""
    return all_gather_time(2 * E * E / Y, X, chip)


@exercise.misconception(of=mixed_layer_time)
def mixed_all_overlapped(**draw):
    """Either you overlapped the reduce-scatter as well, or you left it out. A whole reduce-scatter waits for its matmul, and the next matmul waits for the reduce-scatter: add both times."""
    return mixed(max, **draw)


@exercise.misconception(of=mixed_layer_time)
def mixed_all_bare(**draw):
    """Either you added all three times, or you left out the gather of W. The gather waits for nothing and uses the links of x, so it runs beside the matmul and the reduce-scatter of the layer before."""
    return mixed(lambda g, m, r: g + m + r, **draw)


@exercise.misconception(of=mixed_layer_time)
def mixed_beside_matmuls_alone(**draw):
    """You let the gather of W run beside matmuls alone. While C is scattered along y, the links of x are free for the gather."""
    return mixed(lambda g, m, r: max(g, m) + r, **draw)


@exercise.misconception(of=mixed_layer_time)
def mixed_whole_weights(**draw):
    """You gathered all of W. y cuts the rows of W, and these rows stay cut: V = 2·E²/Y bytes."""
    return mixed(lambda g, m, r: max(g, m + r), **draw, weights=draw["Y"])


@exercise.misconception(of=mixed_layer_time)
def mixed_whole_batch(**draw):
    """You scattered the whole batch. x cuts its rows: V = 2·B·E/X bytes."""
    return mixed(lambda g, m, r: max(g, m + r), **draw, activations=draw["X"])


exercise.scenario(
    mixed_layer_time,
    lambda chip, B, L, E, X, Y: Scenario(
        chip=chip, rings=(X, Y), mesh={"x": X, "y": Y},
        arrays=[((B, E), P("x", "y")), ((L, E), P("x", "y")), ((E, E), P("y", "x"))],
        branches=tuple(larger(
            gather=all_gather_time(2 * E * E / Y, X, chip),
            chain=matmul_time(2 * rows / X * E * E / Y, chip) + all_gather_time(2 * rows / X * E, Y, chip),
        ) for rows in (B, L)),
    ),
)  # fmt: skip
