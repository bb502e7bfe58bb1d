import jax
from jax.sharding import PartitionSpec as P

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
    """hides_behind: gathered_activations_called_hidden
    Row: calls scheme 6 overlapped: its gather of A goes ahead like a gather of W."""
    place = lambda array, hops: "other layers" if array == "A" else "own product" if hops else "nothing"  # noqa: E731
    return hidden(act, weight, hops, place)


def gather_of_a_beside_its_matmul(act, weight, hops):
    """hides_behind: whole_beside_its_matmul
    Row: calls the gather of A overlapped with its own matmul even if it is whole."""
    return hidden(act, weight, hops, lambda array, hops: "own product" if hops or array == "A" else "nothing")


def all_beside_other_layers(act, weight, hops):
    """hides_behind: gathered_activations_called_hidden, sums_called_hidden
    Row: compares times, not dependence: every collective overlaps other layers."""
    return hidden(act, weight, hops, lambda array, hops: "other layers")


def all_beside_their_own(act, weight, hops):
    """hides_behind: whole_beside_its_matmul
    Row: compares times, not dependence: every collective of A or C overlaps its own matmul, whole or not."""
    return hidden(act, weight, hops, lambda array, hops: "own product")


def hops_make_no_difference(act, weight, hops):
    """hides_behind: hops_thought_useless
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
