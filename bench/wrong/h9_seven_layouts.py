import jax
from jax.sharding import PartitionSpec as P

from grader.hardware import CHIPS
from h9_seven_layouts import SCHEMES


def layers(a, ws, mesh, scheme, before=None, after=None, weights=None):
    # the stack with other steps for some schemes
    act, weight = SCHEMES[scheme]
    whole = {2: 0, 3: 1, 7: 1}

    def prepared(w):
        return jax.lax.all_gather(w, "x", axis=whole[scheme], tiled=True) if scheme in whole else w

    def first(a):
        return jax.lax.all_gather(a, "x", axis=1, tiled=True) if scheme == 6 else a

    def last(c):
        if scheme == 4:
            return jax.lax.all_gather(c, "y", axis=1, tiled=True)
        return jax.lax.psum_scatter(c, act[1], scatter_dimension=1, tiled=True) if scheme in (5, 7) else c

    def local(a, ws):
        for w in ws:
            w = (weights or {}).get(scheme, prepared)(w)
            a = (after or {}).get(scheme, last)((before or {}).get(scheme, first)(a) @ w)
        return a

    specs = {"in_specs": (act, P(None, *weight)), "out_specs": act, "check_vma": False}
    return jax.shard_map(local, mesh=mesh, **specs)(a, ws)


def own_columns(c, axis):
    width = c.shape[1] // jax.lax.axis_size(axis)
    return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index(axis) * width, width, 1)


def hidden(act, weight, hops, between):
    # `between` names the place of a collective of A or C
    rows, cols = act
    found = [("all_gather", "W", rows, "other layers")] if rows and rows in weight else []
    if cols and cols == weight[0]:
        found.append(("reduce_scatter", "C", cols, between("C", hops)))
    elif cols:
        found.append(("all_gather", "A", cols, between("A", hops)))
    elif weight[1] and weight[1] != rows:
        found.append(("all_gather", "C", weight[1], between("G", hops)))
    return found


def scheme_6_is_hidden(act, weight, hops):
    """overlaps_with: gathered_activations_called_overlapped
    Row: calls scheme 6 overlapped: its gather of A goes ahead like a gather of W."""
    place = lambda array, hops: "other layers" if array == "A" else "own matmul" if hops else "nothing"  # noqa: E731
    return hidden(act, weight, hops, place)


def gather_of_a_beside_its_matmul(act, weight, hops):
    """overlaps_with: whole_beside_its_matmul
    Row: calls the gather of A overlapped with its own matmul even if it is whole."""
    return hidden(act, weight, hops, lambda array, hops: "own matmul" if hops or array == "A" else "nothing")


def all_beside_other_layers(act, weight, hops):
    """overlaps_with: gathered_activations_called_overlapped, sums_called_overlapped
    Row: compares times, not dependence: every collective overlaps other layers."""
    return hidden(act, weight, hops, lambda array, hops: "other layers")


def all_beside_their_own(act, weight, hops):
    """overlaps_with: whole_beside_its_matmul
    Row: compares times, not dependence: every collective of A or C overlaps its own matmul, whole or not."""
    return hidden(act, weight, hops, lambda array, hops: "own matmul")


def hops_make_no_difference(act, weight, hops):
    """overlaps_with: hops_thought_useless
    Row: hops are not seen: a collective of A or C overlaps nothing."""
    return hidden(act, weight, hops, lambda array, hops: "nothing")


def weight_gathered_over_both(a, ws, *, mesh, scheme):
    """stack: everything_gathered, everything_gathered_in_7, weights_gathered_whole
    Row: in scheme 7 the weight is gathered over both axes, and all chips along y do equal work."""

    def both(w):
        w = jax.lax.all_gather(w, "x", axis=1, tiled=True)
        return jax.lax.all_gather(w, "y", axis=0, tiled=True)

    def whole(a):
        return jax.lax.all_gather(a, "y", axis=1, tiled=True)

    after = {7: lambda c: own_columns(c, "y")}
    return layers(a, ws, mesh, scheme, before={7: whole}, after=after, weights={7: both})


def weight_gathered_in_5(a, ws, *, mesh, scheme):
    """stack: everything_gathered_in_5
    Row: in scheme 5 the weight and A are gathered, and every chip does all the work."""

    def w_whole(w):
        return jax.lax.all_gather(w, "x", axis=0, tiled=True)

    def a_whole(a):
        return jax.lax.all_gather(a, "x", axis=1, tiled=True)

    after = {5: lambda c: own_columns(c, "x")}
    return layers(a, ws, mesh, scheme, before={5: a_whole}, after=after, weights={5: w_whole})


def all_reduced_and_cut(a, ws, *, mesh, scheme):
    """stack: all_reduced_and_cut
    Row: an all-reduce and a slice in schemes 5 and 7."""

    def cut(c):
        axis = SCHEMES[scheme][0][1]
        return own_columns(jax.lax.psum(c, axis), axis)

    return layers(a, ws, mesh, scheme, after={5: cut, 7: cut})


def output_left_whole(a, ws, *, mesh, scheme):
    """stack: ended_whole
    Row: an all-reduce in scheme 5, and the output spec changed: the last C stays whole."""
    if scheme != 5:
        return layers(a, ws, mesh, scheme)

    def local(a, ws):
        for i, w in enumerate(ws):
            if i:
                width = w.shape[0]
                a = jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index("x") * width, width, 1)
            a = jax.lax.psum(a @ w, "x")
        return a

    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P(None, "x")), out_specs=P(), check_vma=False)(a, ws)


def _layer(scheme, a, w):
    gather, scatter = jax.lax.all_gather, jax.lax.psum_scatter
    if scheme == 1:
        return a @ w
    if scheme == 2:
        return a @ gather(w, "x", axis=0, tiled=True)
    if scheme == 3:
        return a @ gather(w, "x", axis=1, tiled=True)
    if scheme == 4:
        return gather(a @ w, "y", axis=1, tiled=True)
    if scheme == 5:
        return scatter(a @ w, "x", scatter_dimension=1, tiled=True)
    if scheme == 6:
        return gather(a, "x", axis=1, tiled=True) @ w
    return scatter(a @ gather(w, "x", axis=1, tiled=True), "y", scatter_dimension=1, tiled=True)


def _stack(a, ws, mesh, scheme, layer):
    act, weight = SCHEMES[scheme]

    def body(a, ws):
        for n in range(ws.shape[0]):
            a = layer(scheme, a, ws[n])
        return a

    spec = P(None, *weight)
    return jax.shard_map(body, mesh=mesh, in_specs=(act, spec), out_specs=act, check_vma=False)(a, ws)


def all_reduce_then_own_columns(a, ws, *, mesh, scheme):
    """stack: all_reduced_and_cut"""

    def layer(scheme, a, w):
        if scheme != 5:
            return _layer(scheme, a, w)
        c = jax.lax.psum(a @ w, "x")
        wide = c.shape[1] // jax.lax.axis_size("x")
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * wide, wide, 1)

    return _stack(a, ws, mesh, scheme, layer)


def gathers_rows_for_columns(a, ws, *, mesh, scheme):
    """stack: gathered_along_the_other_dimension"""

    def layer(scheme, a, w):
        if scheme == 3:
            return a @ jax.lax.all_gather(w, "x", axis=0, tiled=True)
        return _layer(scheme, a, w)

    return _stack(a, ws, mesh, scheme, layer)


def moves_activations_in_fsdp(a, ws, *, mesh, scheme):
    """stack: activations_sent_in_2"""

    def layer(scheme, a, w):
        if scheme != 2:
            return _layer(scheme, a, w)
        rows = w.shape[0]
        full = jax.lax.all_gather(a, "x", axis=0, tiled=True)
        part = jax.lax.dynamic_slice_in_dim(full, jax.lax.axis_index("x") * rows, rows, 1)
        return jax.lax.psum_scatter(part @ w, "x", scatter_dimension=0, tiled=True)

    return _stack(a, ws, mesh, scheme, layer)


def weights_gathered_in_layout_4(a, ws, *, mesh, scheme):
    """stack: same_rows_twice"""

    def layer(scheme, a, w):
        if scheme == 4:
            return a @ jax.lax.all_gather(w, "y", axis=1, tiled=True)
        return _layer(scheme, a, w)

    return _stack(a, ws, mesh, scheme, layer)


def hops_do_not_help(act, weight, hops):
    """overlaps_with: hops_thought_useless"""
    found = []
    batch, inner = act
    if batch is not None and batch in weight:
        found.append(("all_gather", "W", batch, "other layers"))
    if inner is not None:
        if weight[0] == inner:
            found.append(("reduce_scatter", "C", inner, "nothing"))
        else:
            found.append(("all_gather", "A", inner, "nothing"))
    else:
        rest = [axis for axis in weight if axis is not None and axis != batch]
        if rest:
            found.append(("all_gather", "C", rest[0], "nothing"))
    return found


def weights_beside_their_own_matmul(act, weight, hops):
    """overlaps_with: hops_of_weights_beside_their_matmul"""
    found = []
    batch, inner = act
    near = "own matmul" if hops else "nothing"
    if batch is not None and batch in weight:
        found.append(("all_gather", "W", batch, "own matmul" if hops else "other layers"))
    if inner is not None:
        if weight[0] == inner:
            found.append(("reduce_scatter", "C", inner, near))
        else:
            found.append(("all_gather", "A", inner, near))
    else:
        rest = [axis for axis in weight if axis is not None and axis != batch]
        if rest:
            found.append(("all_gather", "C", rest[0], near))
    return found


def _parts(chip, B, E, X, Y):
    c = CHIPS[chip]
    W = 2 * c.ici
    return 2 * B * E * E / (X * Y) / c.bf16, 2 * B / X * E / W, 2 * E * E / Y / W


def everything_in_turn(chip, B, L, E, X, Y):
    """mixed_layer_time: mixed_all_bare"""
    small, large = (sum(_parts(chip, rows, E, X, Y)) for rows in (B, L))
    return large - small


def everything_at_once(chip, B, L, E, X, Y):
    """mixed_layer_time: mixed_all_overlapped"""
    small, large = (max(_parts(chip, rows, E, X, Y)) for rows in (B, L))
    return large - small


def whole_weights_gathered(chip, B, L, E, X, Y):
    """mixed_layer_time: mixed_whole_weights"""
    times = []
    for rows in (B, L):
        matmul, scatter, gather = _parts(chip, rows, E, X, Y)
        times.append(max(matmul + scatter, gather * Y))
    return times[1] - times[0]
