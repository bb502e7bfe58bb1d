"""K3: checks, misconceptions and alternatives."""

import math

from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario
from grader.expect import expect_outcomes
from k3_dtensor import (
    axes_of,
    exercise,
    scattered_gradient,
    specs_without_a_list,
    to_dtensor,
    to_spec,
)

AXES = ["tp", "dp", "fsdp", "cp"]  # drawn in any order, so that the mesh's order differs from the alphabet's


def drawn(rng, count, *, cut, pending=0, one=False, turned=False, spare=False):
    """Draw specs: ``cut`` axes cut one dimension, ``pending`` axes are unreduced, and one more axis may cut another
    dimension.

    Args: one: a cutting axis has size 1. turned: the tuple is not in the mesh's order. spare: this dimension has
    unequal parts.
    """
    for _ in range(count):
        names = [AXES[i] for i in rng.permutation(len(AXES))]
        mesh = dict(zip(names, rng.permutation([2, 3, 4, 5]).tolist(), strict=True))
        chosen = [names[i] for i in rng.permutation(len(names))]
        first = sorted(chosen[:cut], key=names.index)
        if one:
            mesh[first[0]] = 1
        if turned:
            at = int(rng.integers(cut - 1))  # the first of three axes may still come before the last axis
            first[at : at + 2] = first[at + 1], first[at]
        second = chosen[cut : cut + int(rng.integers(0, 5 - cut - pending))][:1]
        entries = [None, tuple(first), *second]
        parts = [math.prod(mesh[axis] for axis in axes_of(entry)) for entry in entries]
        shape = [part * int(rng.integers(1, 7)) for part in parts]
        if spare:  # the first axis alone makes equal parts, all axes together do not
            shape[1] = mesh[first[0]] * (parts[1] // mesh[first[0]] + 1)
        yield {
            "spec": P(*entries, unreduced=set(chosen[len(chosen) - pending :]) if pending else set()),
            "shape": tuple(shape) + ((5,) if rng.integers(2) else ()),
            "mesh": mesh,
        }


def as_placements(cases):
    """Return the cases with a list of placements in place of the spec."""
    return [{**{k: v for k, v in case.items() if k != "spec"}, "placements": to_dtensor(**case)} for case in cases]


def several(*kinds, back=False):
    """Draw cases of each of these kinds."""

    def draw(rng):
        cases = [case for kind in kinds for case in drawn(rng, 60 // len(kinds), **kind)]
        return as_placements(cases) if back else cases

    return draw


MESH = {"dp": 2, "fsdp": 3, "tp": 4}
HERE = {"shape": (24, 8), "mesh": MESH}


def impossible(rng):
    """Draw specs with unequal parts, and with dimensions or axes that do not exist."""
    yield from drawn(rng, 40, cut=2, spare=True)
    yield from drawn(rng, 20, cut=3, spare=True)
    yield {**HERE, "spec": P("cp")}
    yield {**HERE, "spec": P("dp", unreduced={"cp"})}
    yield {**HERE, "spec": P("dp", "dp")}
    yield {**HERE, "spec": P("dp", ("fsdp", "dp"))}
    yield {**HERE, "spec": P("dp", None, "tp")}


def unspoken(rng):
    """Draw placements that no spec can express."""
    for case in as_placements([*drawn(rng, 20, cut=1), *drawn(rng, 20, cut=2)]):
        places, shape = case["placements"], case["shape"]
        at = next(i for i, place in enumerate(places) if place != "R")
        for strange in ["P(max)", "P(avg)", f"SS({places[at][2:-1]}, 2)", f"S({len(shape)})"]:
            yield {**case, "placements": [*places[:at], strange, *places[at + 1 :]]}
        yield {**case, "placements": [*places, "R"]}
        yield {**case, "placements": places[:-1]}
        size = list(case["mesh"].values())[at]
        cut = int(places[at][2:-1])
        yield {**case, "shape": (*shape[:cut], shape[cut] * size + 1, *shape[cut + 1 :])}
    for rows in (4, 12, 20):  # dp alone and tp alone make equal parts, both together do not
        yield {"mesh": MESH, "shape": (rows, 3), "placements": ["S(0)", "R", "S(0)"]}
        yield {"mesh": MESH, "shape": (6, rows), "placements": ["S(1)", "S(0)", "S(1)"]}
    for places in (["R", "R", "S(-1)"], ["S(-1)", "R", "R"], ["S(0)", "R", "S(-1)"], ["R", "R", "S(-2)"]):
        yield {**HERE, "placements": places}


cuts = exercise.cases(
    to_dtensor,
    public=[{**HERE, "spec": P(None, "tp")}, {**HERE, "spec": P(("dp", "fsdp"))}, {**HERE, "spec": P("fsdp", "dp")}],
    hidden=several({"cut": 1}, {"cut": 2}, {"cut": 3}),
)
pending = exercise.cases(
    to_dtensor,
    public=[{**HERE, "spec": P("fsdp", unreduced={"tp"})}, {**HERE, "spec": P(unreduced={"dp", "tp"})}],
    hidden=lambda rng: [
        {**HERE, "spec": P(unreduced=set(MESH))},
        *several({"cut": 1, "pending": 1}, {"cut": 2, "pending": 2}, {"cut": 2, "pending": 1})(rng),
    ],
)
ones = exercise.cases(
    to_dtensor,
    public=[{"spec": P(None, "dp"), "shape": (24, 8), "mesh": {"dp": 1, "tp": 4}}],
    hidden=several({"cut": 1, "one": True}, {"cut": 2, "one": True}),
)
order = exercise.cases(
    to_dtensor,
    public=[{**HERE, "spec": P(("fsdp", "dp"))}, {**HERE, "spec": P(("dp", "tp", "fsdp"))}],
    hidden=several(
        {"cut": 2, "turned": True}, {"cut": 3, "turned": True}, {"cut": 2, "one": True, "turned": True}, {"cut": 4, "turned": True}
    ),
)  # fmt: skip
uneven = exercise.cases(
    to_dtensor, public=[{**HERE, "spec": P(None, ("fsdp", "tp"))}, {**HERE, "spec": P("cp")}], hidden=impossible
)
back_cuts = exercise.cases(
    to_spec,
    public=[{**HERE, "placements": ["R", "R", "S(1)"]}, {**HERE, "placements": ["S(0)", "S(0)", "R"]}],
    hidden=several({"cut": 1}, {"cut": 2}, {"cut": 3}, {"cut": 2, "one": True}, back=True),
)
back_pending = exercise.cases(
    to_spec,
    public=[{**HERE, "placements": ["S(0)", "R", "P"]}],
    hidden=several({"cut": 1, "pending": 1}, {"cut": 1, "pending": 2}, {"cut": 1, "pending": 3}, back=True),
)
back_refused = exercise.cases(
    to_spec,
    public=[
        {**HERE, "placements": ["P(max)", "R", "R"]},
        {**HERE, "placements": ["R", "S(1)", "R"]},
        {"mesh": MESH, "shape": (12, 8), "placements": ["S(0)", "R", "S(0)"]},
    ],
    hidden=unspoken,
)


@exercise.check(cuts, points=0.5, public=True)
def dtensor_cuts(seen):
    """to_dtensor: axes that cut dimensions, alone and several together"""
    expect_outcomes(seen)


@exercise.check(pending, points=0.5, public=True)
def dtensor_pending(seen):
    """to_dtensor: unreduced axes"""
    expect_outcomes(seen)


@exercise.check(ones, points=0.25, public=True)
def dtensor_ones(seen):
    """to_dtensor: axes of size 1"""
    expect_outcomes(seen)


@exercise.check(order, points=0.5, public=True, after=dtensor_cuts)
def dtensor_order(seen):
    """to_dtensor: ValueError for a tuple that is not in the mesh's order"""
    expect_outcomes(seen)


@exercise.check(uneven, points=0.25, public=True, after=dtensor_cuts)
def dtensor_refused(seen):
    """to_dtensor: ValueError for unequal parts, missing dimensions and missing axes"""
    expect_outcomes(seen)


@exercise.check(back_cuts, points=0.5, public=True)
def spec_cuts(seen):
    """to_spec: placements that cut dimensions"""
    expect_outcomes(seen)


@exercise.check(back_pending, points=0.25, public=True)
def spec_pending(seen):
    """to_spec: partial sums"""
    expect_outcomes(seen)


@exercise.check(back_refused, points=0.25, public=True, after=spec_cuts)
def spec_refused(seen):
    """to_spec: ValueError for placements that no spec can express"""
    expect_outcomes(seen)


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(
    of=to_dtensor,
    fails=dtensor_order,
    breaks=["a tuple whose axes are not in the mesh's order", "Never return a layout that is only similar"],
)
def silently_reordered(spec, shape, mesh):
    """You put the axes of a tuple into the mesh's order. This changes the layout: the shapes agree, but devices hold
    each other's parts. Raise ValueError instead."""
    entries = [tuple(sorted(axes_of(entry), key=list(mesh).index)) or None for entry in spec.partitions]
    return to_dtensor(P(*entries, unreduced=set(spec.unreduced)), shape, mesh)


@exercise.misconception(of=to_dtensor, fails=dtensor_order, breaks="a tuple whose axes are not in the mesh's order")
def first_and_last_in_order(spec, shape, mesh):
    """You compared only the first and the last axis of a tuple. All its axes must be in the mesh's order."""
    order = list(mesh).index
    ends = [axes_of(entry) for entry in spec.partitions]
    entries = [
        tuple(sorted(axes, key=order)) if axes and order(axes[0]) <= order(axes[-1]) else axes or None for axes in ends
    ]
    return to_dtensor(P(*entries, unreduced=set(spec.unreduced)), shape, mesh)


@exercise.misconception(
    of=to_dtensor, fails=[dtensor_cuts, dtensor_pending, dtensor_ones], breaks="in the order of the mesh"
)
def alphabet_for_mesh(spec, shape, mesh):
    """You used the alphabetical order of the names. The mesh's order is the order in which it lists its axes."""
    by_name = dict(sorted(mesh.items()))
    found = dict(zip(by_name, to_dtensor(spec, shape, by_name), strict=True))
    return [found[axis] for axis in mesh]


@exercise.misconception(of=to_dtensor, fails=dtensor_pending, breaks="unreduced axes")
def debt_dropped(spec, shape, mesh):
    """You wrote "R" for an unreduced axis. Along this axis each device holds a summand, not the value: write "P"."""
    return ["R" if place == "P" else place for place in to_dtensor(spec, shape, mesh)]


@exercise.misconception(of=to_dtensor, fails=dtensor_ones, breaks="an axis of size 1 keeps its entry and name")
def axis_of_one_dropped(spec, shape, mesh):
    """You dropped an axis of size 1. It cuts nothing on this mesh, but it belongs to the layout: on another mesh its
    size may be 8."""
    found = to_dtensor(spec, shape, mesh)
    return ["R" if size == 1 and place != "P" else place for place, size in zip(found, mesh.values(), strict=True)]


@exercise.misconception(of=to_dtensor, fails=dtensor_ones, breaks="an axis of size 1 keeps its entry and name")
def axis_of_one_left_out(spec, shape, mesh):
    """You left an axis of size 1 out of the list. The list has a placement for every axis of the mesh."""
    found = to_dtensor(spec, shape, mesh)
    return [place for place, size in zip(found, mesh.values(), strict=True) if size > 1]


@exercise.misconception(of=to_dtensor, fails=dtensor_refused, breaks="parts that are not equal")
def uneven_accepted(spec, shape, mesh):
    """You accepted unequal parts. JAX's arrays have equal parts. Raise ValueError for layouts with shorter or padded
    parts."""
    return to_dtensor(spec, tuple(size * math.prod(mesh.values()) for size in shape), mesh)


@exercise.misconception(of=to_dtensor, fails=dtensor_refused, breaks="an axis that is used twice")
def axis_used_twice(spec, shape, mesh):
    """You accepted an axis that is used twice. An axis cuts at most one dimension of an array, and at most once. Raise
    ValueError."""
    used = [axis for entry in spec.partitions for axis in axes_of(entry)]
    if len(set(used)) == len(used):
        return to_dtensor(spec, shape, mesh)
    found = dict.fromkeys(mesh, "R")
    for dim, entry in enumerate(spec.partitions):
        found.update(dict.fromkeys(axes_of(entry), f"S({dim})"))
    return list(found.values())


@exercise.misconception(of=to_dtensor, fails=dtensor_refused, breaks="an axis that the mesh lacks")
def missing_axis_ignored(spec, shape, mesh):
    """You ignored an axis that the mesh lacks. A list of placements cannot express it: raise ValueError."""
    there = [tuple(axis for axis in axes_of(entry) if axis in mesh) for entry in spec.partitions]
    return to_dtensor(P(*there, unreduced=spec.unreduced & mesh.keys()), shape, mesh)


@exercise.misconception(of=to_dtensor, fails=dtensor_refused, breaks="parts that are not equal")
def each_axis_divides(spec, shape, mesh):
    """You tested each axis alone. Test the product of the sizes: the axes of a tuple together make that many parts."""
    for size, entry in zip(shape, spec.partitions, strict=False):
        if any(axis not in mesh or size % mesh[axis] for axis in axes_of(entry)):
            raise ValueError("uneven")
    wide = tuple(size * math.prod(mesh.values()) for size in shape)
    return to_dtensor(spec, wide, mesh)


@exercise.misconception(
    of=to_dtensor, fails=[dtensor_cuts, dtensor_pending, dtensor_ones], breaks="axes that cut dimensions"
)
def one_for_each_dimension(spec, shape, mesh):
    """You made an entry for each dimension of the array. A list of placements has an entry for each axis of the
    mesh."""
    to_dtensor(spec, shape, mesh)
    return [f"S({dim})" if entry else "R" for dim, entry in enumerate(spec.partitions)]


@exercise.misconception(of=to_spec, fails=spec_pending, breaks="unreduced axes")
def sum_forgotten(placements, shape, mesh):
    """You dropped the partial sum, so the spec treats a summand as the value. Name the axis of the partial sum in
    `unreduced`."""
    return to_spec(["R" if place == "P" else place for place in placements], shape, mesh)


@exercise.misconception(of=to_spec, fails=spec_cuts, breaks="alone and several together")
def last_axis_wins(placements, shape, mesh):
    """You kept one axis for each dimension. If several axes cut a dimension, write a tuple in the mesh's order."""
    entries = [None] * len(shape)
    spec = to_spec(placements, shape, mesh)
    for dim, entry in enumerate(spec.partitions):
        entries[dim] = axes_of(entry)[-1] if entry else None
    return P(*entries, unreduced=set(spec.unreduced))


@exercise.misconception(of=to_spec, fails=spec_cuts, breaks="alone and several together")
def innermost_first(placements, shape, mesh):
    """You listed the innermost axis first. Placements apply from left to right, so the leftmost axis makes the largest
    blocks and comes first in the tuple."""
    spec = to_spec(placements, shape, mesh)
    return P(*[axes_of(entry)[::-1] or None for entry in spec.partitions], unreduced=set(spec.unreduced))


@exercise.misconception(of=to_spec, fails=spec_cuts, breaks="an axis of size 1 keeps its entry and name")
def names_of_one_lost(placements, shape, mesh):
    """You dropped an axis of size 1 from the spec. Keep its name."""
    names = [place if size > 1 else "R" for place, size in zip(placements, mesh.values(), strict=True)]
    return to_spec(names, shape, mesh) if "P" not in placements else to_spec(placements, shape, mesh)


@exercise.misconception(of=to_spec, fails=spec_refused, breaks="other placements")
def every_partial_a_sum(placements, shape, mesh):
    """You treated a partial maximum or mean as a partial sum. `unreduced` means a sum, so no spec expresses a maximum or a mean."""
    return to_spec(["P" if place.startswith("P(") else place for place in placements], shape, mesh)


@exercise.misconception(of=to_spec, fails=spec_refused, breaks="other placements")
def strides_ignored(placements, shape, mesh):
    """You treated a strided shard as a plain shard. A strided shard cuts the dimension in a different order."""
    return to_spec([f"S({place[3]})" if place[:2] == "SS" else place for place in placements], shape, mesh)


@exercise.misconception(of=to_spec, fails=spec_refused, breaks="a dimension that the array lacks")
def counted_from_the_end(placements, shape, mesh):
    """You read "S(-1)" as the last dimension, as in a Python list. Dimensions are counted from 0: the array has no
    dimension -1."""
    from_the_front = {f"S({dim - len(shape)})": f"S({dim})" for dim in range(len(shape))}
    return to_spec([from_the_front.get(place, place) for place in placements], shape, mesh)


@exercise.misconception(of=to_spec, fails=spec_refused, breaks="parts that are not equal")
def uneven_spelt(placements, shape, mesh):
    """You accepted unequal parts. DTensor allows unequal parts, but JAX's arrays have equal parts."""
    return to_spec(placements, tuple(size * math.prod(mesh.values()) for size in shape), mesh)


@exercise.misconception(of=to_spec, fails=spec_refused, breaks="parts that are not equal")
def each_axis_divides_alone(placements, shape, mesh):
    """You divided the dimension by each axis alone. If several axes cut a dimension, the product of their sizes must
    divide the dimension's size."""
    for axis, place in zip(mesh, placements, strict=True):
        if place[:2] == "S(" and place[2:-1].isdigit() and int(place[2:-1]) < len(shape):
            to_spec([place if name == axis else "R" for name in mesh], shape, mesh)
    return to_spec(placements, tuple(size * math.prod(mesh.values()) for size in shape), mesh)


@exercise.misconception(of=to_spec, fails=spec_refused, breaks="a list with more or fewer placements than mesh axes")
def length_not_asked(placements, shape, mesh):
    """You accepted a list that is not as long as the mesh. The list needs exactly one placement for each axis."""
    padded = [*placements, *["R"] * len(mesh)][: len(mesh)]
    return to_spec(padded, shape, mesh)


@exercise.misconception(of=specs_without_a_list)
def all_specs(r, k):
    """You counted all specs. Subtract the specs that a list describes: a list has one of r + 2 placements for each
    axis."""
    return specs_without_a_list(r=r, k=k) + (r + 2) ** k


@exercise.misconception(of=specs_without_a_list)
def nothing_pending(r, k):
    """You left out the unreduced axes. An axis that cuts no dimension either makes copies or is unreduced: two
    choices."""
    return sum(math.perm(k, j) * math.comb(j + r - 1, j) for j in range(k + 1)) - (r + 1) ** k


@exercise.misconception(of=specs_without_a_list)
def all_axes_cut(r, k):
    """You counted only the specs in which every axis cuts a dimension. Count also the specs in which two or more axes share a dimension and other axes cut none."""
    return math.factorial(k) * math.comb(k + r - 1, k) - r**k


@exercise.misconception(of=scattered_gradient)
def in_mesh_order(rows, dim):
    """You wrote the tuple in the order of the mesh. Each device scatters the part that it holds, so the other axis cuts
    first and dp cuts last."""
    entries = [rows, "tp" if rows == "fsdp" else "fsdp"]
    entries[dim] = ("dp", entries[dim])
    return P(*entries)


@exercise.misconception(of=scattered_gradient)
def still_whole_along_dp(rows, dim):
    """You reduced without scattering. After psum_scatter each device along dp keeps only half of its part."""
    return P(rows, "tp" if rows == "fsdp" else "fsdp")


@exercise.misconception(of=scattered_gradient)
def dp_alone(rows, dim):
    """You left out the axis that already cut this dimension. After the scatter, this axis and dp cut the dimension."""
    entries = [rows, "tp" if rows == "fsdp" else "fsdp"]
    entries[dim] = "dp"
    return P(*entries)


exercise.scenario(specs_without_a_list, lambda r, k: Scenario(mesh={f"x{i}": 2 for i in range(k)}))
exercise.scenario(
    scattered_gradient,
    lambda rows, dim: Scenario(mesh=MESH | {"dp": 2}, arrays=[((48, 96), scattered_gradient(rows=rows, dim=dim))]),
)


# -- other styles ------------------------------------------------------------------------------


@exercise.alternative(of=to_dtensor)
def axis_by_axis(spec, shape, mesh):
    """Find each axis of the mesh in the spec, then convert the list back and compare the two specs."""
    entries = [axes_of(entry) for entry in spec.partitions]
    named = [axis for axes in entries for axis in axes] + list(spec.unreduced)
    if len(entries) > len(shape) or len(set(named)) < len(named) or any(axis not in mesh for axis in named):
        raise ValueError(str(spec))
    result = []
    again = [()] * len(entries)
    for axis in mesh:
        dims = [dim for dim, axes in enumerate(entries) if axis in axes]
        result.append(f"S({dims[0]})" if dims else "P" if axis in spec.unreduced else "R")
        for dim in dims:
            again[dim] += (axis,)
    if again != entries:
        raise ValueError("out of order")
    for size, axes in zip(shape, entries, strict=False):
        for axis in axes:
            size, rest = divmod(size, mesh[axis])
            if rest:
                raise ValueError("uneven")
    return tuple(result)


@exercise.alternative(of=to_spec)
def dimension_by_dimension(placements, shape, mesh):
    """Loop over the dimensions, and write a single axis without a tuple."""
    words = ["R", "P"] + [f"S({d})" for d in range(len(shape))]
    if len(placements) != len(mesh) or not all(place in words for place in placements):
        raise ValueError(str(placements))
    entries = []
    for d, size in enumerate(shape):
        axes = tuple(axis for axis, place in zip(mesh, placements, strict=False) if place == f"S({d})")
        for axis in axes:
            if size % mesh[axis]:
                raise ValueError("uneven")
            size //= mesh[axis]
        entries.append(axes[0] if len(axes) == 1 else axes or None)
    while entries and entries[-1] is None:
        entries.pop()
    unreduced = frozenset(axis for axis, place in zip(mesh, placements, strict=False) if place == "P")
    return P(*entries, unreduced=unreduced) if unreduced else P(*entries)
