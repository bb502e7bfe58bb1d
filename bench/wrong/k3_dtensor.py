# pyright: reportOptionalOperand=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false, reportArgumentType=false
import math
from math import prod

from jax.sharding import PartitionSpec as P

from k3_dtensor import axes_of


def listed(spec, shape, mesh, order=True, pending="P", uneven=False, twice=False, alone=False, lacking=False):
    out = {axis: "R" for axis in mesh}
    if len(spec.partitions) > len(shape):
        raise ValueError("too long")
    for axis in spec.unreduced:
        if axis in mesh:
            out[axis] = pending
        elif not lacking:
            raise ValueError(axis)
    for d, entry in enumerate(spec.partitions):
        names = axes_of(entry)
        for axis in names:
            if axis not in mesh:
                if lacking:
                    continue
                raise ValueError(axis)
            if out[axis] != "R" and not twice:
                raise ValueError("twice")
            out[axis] = f"S({d})"
        known = [axis for axis in names if axis in mesh]
        if order and known != sorted(known, key=list(mesh).index):
            raise ValueError("order")
        parts = [prod(mesh[axis] for axis in known)] if not alone else [mesh[axis] for axis in known]
        if not uneven and any(shape[d] % n for n in parts):
            raise ValueError("uneven")
    return list(out.values())


def any_order(spec, shape, mesh):
    """to_dtensor: silently_reordered"""
    return listed(spec, shape, mesh, order=False)


def sums_as_copies(spec, shape, mesh):
    """to_dtensor: debt_dropped"""
    return listed(spec, shape, mesh, pending="R")


def padded_parts(spec, shape, mesh):
    """to_dtensor: uneven_accepted"""
    return listed(spec, shape, mesh, uneven=True)


def used_twice(spec, shape, mesh):
    """to_dtensor: axis_used_twice"""
    return listed(spec, shape, mesh, twice=True)


def each_axis_by_itself(spec, shape, mesh):
    """to_dtensor: each_axis_divides"""
    return listed(spec, shape, mesh, alone=True)


def unknown_axes_skipped(spec, shape, mesh):
    """to_dtensor: missing_axis_ignored"""
    return listed(spec, shape, mesh, lacking=True)


def size_one_is_a_copy(spec, shape, mesh):
    """to_dtensor: axis_of_one_dropped"""
    return ["R" if mesh[axis] == 1 else place for axis, place in zip(mesh, listed(spec, shape, mesh))]


def size_one_not_listed(spec, shape, mesh):
    """to_dtensor: axis_of_one_left_out"""
    return [place for axis, place in zip(mesh, listed(spec, shape, mesh)) if mesh[axis] > 1]


def by_dimension(spec, shape, mesh):
    """to_dtensor: one_for_each_dimension"""
    listed(spec, shape, mesh)
    return [f"S({d})" if entry else "R" for d, entry in enumerate(spec.partitions)]


def spelt(
    placements, shape, mesh, turn=False, sums=True, one=True, uneven=False, length=True, negative=False, any_p=False
):
    if length and len(placements) != len(mesh):
        raise ValueError("length")
    entries, unreduced = [[] for _ in shape], []
    for axis, place in zip(mesh, placements):
        if place == "R" or (not one and mesh[axis] == 1):
            continue
        if place == "P" or (any_p and place[0] == "P"):
            unreduced.append(axis)
        elif place[:2] == "S(" and place[2:-1].lstrip("-").isdigit():
            d = int(place[2:-1])
            if not -len(shape) * negative <= d < len(shape):
                raise ValueError(place)
            entries[d].append(axis)
        else:
            raise ValueError(place)
    for size, axes in zip(shape, entries):
        if not uneven and size % prod(mesh[axis] for axis in axes):
            raise ValueError("uneven")
    entries = [tuple(axes[::-1] if turn else axes) or None for axes in entries]
    return P(*entries, unreduced=frozenset(unreduced if sums else []))


def sums_lost(placements, shape, mesh):
    """to_spec: sum_forgotten"""
    return spelt(placements, shape, mesh, sums=False)


def inner_axis_first(placements, shape, mesh):
    """to_spec: innermost_first"""
    return spelt(placements, shape, mesh, turn=True)


def names_of_size_one_lost(placements, shape, mesh):
    """to_spec: names_of_one_lost"""
    return spelt(placements, shape, mesh, one=False)


def padding_accepted(placements, shape, mesh):
    """to_spec: uneven_spelt"""
    return spelt(placements, shape, mesh, uneven=True)


def short_lists_accepted(placements, shape, mesh):
    """to_spec: length_not_asked"""
    return spelt(placements, shape, mesh, length=False)


def python_indices(placements, shape, mesh):
    """to_spec: counted_from_the_end"""
    return spelt(placements, shape, mesh, negative=True)


def maximum_as_sum(placements, shape, mesh):
    """to_spec: every_partial_a_sum"""
    return spelt(placements, shape, mesh, any_p=True)


def _list(spec, shape, mesh, *, order=True, sums=True, even=True):
    parts = list(spec.partitions)
    if len(parts) > len(shape):
        raise ValueError("too many dimensions")
    names, found = list(mesh), dict.fromkeys(mesh, "R")
    for d, entry in enumerate(parts):
        axes = axes_of(entry)
        n = 1
        for axis in axes:
            if axis not in mesh or found[axis] != "R":
                raise ValueError(axis)
            found[axis] = f"S({d})"
            n *= mesh[axis]
        if order and [names.index(a) for a in axes] != sorted(names.index(a) for a in axes):
            raise ValueError("order")
        if even and shape[d] % n:
            raise ValueError("unequal parts")
    for axis in spec.unreduced:
        if axis not in mesh or found[axis] != "R":
            raise ValueError(axis)
        if sums:
            found[axis] = "P"
    return list(found.values())


def any_order_of_axes(spec, shape, mesh):
    """to_dtensor: silently_reordered"""
    return _list(spec, shape, mesh, order=False)


def pending_sums_are_copies(spec, shape, mesh):
    """to_dtensor: debt_dropped"""
    return _list(spec, shape, mesh, sums=False)


def unequal_parts_accepted(spec, shape, mesh):
    """to_dtensor: uneven_accepted"""
    return _list(spec, shape, mesh, even=False)


def _spec(placements, shape, mesh, *, inner_first=False, sums=True, ones=True):
    if len(placements) != len(mesh):
        raise ValueError("one placement for each axis")
    cut, pending = [[] for _ in shape], set()
    for axis, place in zip(mesh, placements):
        if place == "R" or (not ones and mesh[axis] == 1):
            continue
        if place == "P":
            pending.add(axis)
            continue
        if not (place.startswith("S(") and place.endswith(")") and place[2:-1].isdigit()):
            raise ValueError(place)
        d = int(place[2:-1])
        if d >= len(shape):
            raise ValueError("no such dimension")
        cut[d].append(axis)
    for d, axes in enumerate(cut):
        n = 1
        for axis in axes:
            n *= mesh[axis]
        if shape[d] % n:
            raise ValueError("unequal")
    if inner_first:
        cut = [axes[::-1] for axes in cut]
    entries = [None if not axes else axes[0] if len(axes) == 1 else tuple(axes) for axes in cut]
    return P(*entries, unreduced=pending) if sums and pending else P(*entries)


def last_axis_first(placements, shape, mesh):
    """to_spec: innermost_first"""
    return _spec(placements, shape, mesh, inner_first=True)


def sums_left_out_of_the_spec(placements, shape, mesh):
    """to_spec: sum_forgotten"""
    return _spec(placements, shape, mesh, sums=False)


def trivial_axes_left_out(placements, shape, mesh):
    """to_spec: names_of_one_lost"""
    return _spec(placements, shape, mesh, ones=False)


def every_spec(r, k):
    """specs_without_a_list: all_specs"""

    def ways(j):
        return math.factorial(j) * math.comb(j + r - 1, r - 1)

    return sum(math.comb(k, j) * 2 ** (k - j) * ways(j) for j in range(k + 1))


def new_axis_outside(rows, dim):
    """scattered_gradient: in_mesh_order"""
    entries = [rows, "tp" if rows == "fsdp" else "fsdp"]
    entries[dim] = ("dp", entries[dim])
    return P(*entries)


def only_reduced(rows, dim):
    """scattered_gradient: still_whole_along_dp"""
    return P(rows, "tp" if rows == "fsdp" else "fsdp")
