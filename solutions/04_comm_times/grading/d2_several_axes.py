"""Checks and misconceptions of D2."""

import itertools
import math

from jax.sharding import PartitionSpec as P

from d2_several_axes import (
    axes_time,
    cutting_axes,
    exercise,
    gather_cut_elsewhere_time,
    gather_two_axes_time,
    reduce_cut_elsewhere_time,
)
from grader.exercise import Scenario
from grader.expect import expect_outcomes
from grader.hardware import latency

SPECS = [P("x", "y"), P(("x", "y"), "z"), P("z", ("y", "x")), P(None, "y"), P(("z", "x")), P("y", "z")]
OVER = [("x",), ("y",), ("z",), ("x", "y"), ("z", "x"), ("z", "y", "x")]


def example(kind, spec, over, mesh_shape, rows=3, columns=5):
    return {
        "kind": kind, "shape": (768 * rows, 768 * columns), "itemsize": 2, "spec": spec, "over": over,
        "mesh_shape": dict(zip("xyz", mesh_shape, strict=True)), "one_way_bandwidth": 4.5e10,
    }  # fmt: skip


def drawn(rng, kinds, admit, sizes=(2, 3, 4, 8, 16), repeats=8):
    """Return every kind, spec and set of communicating axes that ``admit(cuts that communicate, cuts that do not, over)`` accepts."""
    for kind, spec, over in itertools.product(kinds, SPECS * repeats, OVER):
        silent = [axis for axis in cutting_axes(spec) if axis not in over]
        if admit(len(cutting_axes(spec)) - len(silent), len(silent), len(over)):
            mesh_shape = rng.choice(sizes, 3, replace=False).tolist()
            yield example(kind, spec, over, mesh_shape, *rng.integers(1, 30, 2).tolist()) | {
                "itemsize": int(rng.choice([1, 2, 4])), "one_way_bandwidth": float(rng.choice([4.5e10, 9e10]))
            }  # fmt: skip


REDUCTIONS = ["reduce_scatter", "all_reduce"]
one_axis = exercise.cases(
    axes_time,
    public=[example("all_gather", P("x", "y"), over, (4, 8, 2)) for over in [("x",), ("y",)]],
    hidden=lambda rng: drawn(rng, ["all_gather"], lambda talk, silent, n: talk == n == 1 and silent),
)
many_axes = exercise.cases(
    axes_time,
    public=[example("all_gather", spec, ("x", "y"), (4, 8, 2)) for spec in [P(("x", "y")), P(("x", "y"), "z")]],
    hidden=lambda rng: drawn(rng, ["all_gather"], lambda talk, silent, n: talk == n > 1),
)
reductions = exercise.cases(
    axes_time,
    public=[example(kind, P("x", "y"), ("z",), (4, 8, 2)) for kind in REDUCTIONS],
    hidden=lambda rng: drawn(rng, REDUCTIONS, lambda talk, silent, n: talk == 0),
)
thin = exercise.cases(
    axes_time,
    public=[example("all_gather", P(("x", "y"), "z"), ("x", "y"), (1, 8, 4))],
    hidden=lambda rng: drawn(rng, ["all_gather"], lambda talk, silent, n: talk == n, (1, 1, 1, 4, 8), 5),
)
misplaced = exercise.cases(
    axes_time,
    public=[
        example("all_gather", P("x"), ("y",), (4, 8, 2)),
        example("all_reduce", P("x", "y"), ("x",), (4, 8, 2)),
        example("reduce_scatter", P("x", "y"), ("x",), (4, 8, 2)),
        example("all_gather", P("x"), ("x", "y"), (4, 8, 2)),
        example("all_gather", P("x"), ("y",), (4, 1, 2)),
        example("all_reduce", P("x", "y"), ("x",), (1, 8, 2)),
    ],
    hidden=lambda rng: itertools.chain(
        drawn(rng, ["all_gather"], lambda talk, silent, n: talk < n, (1, 1, 2, 4, 8), 2),
        drawn(rng, REDUCTIONS, lambda talk, silent, n: talk, (1, 1, 2, 4, 8), 2),
    ),
)


@exercise.check(one_axis, points=0.5, public=True)
def axes_cut_elsewhere(seen):
    """axes_time: an all-gather over one axis, while other axes cut the array too"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(many_axes, points=0.5)
def axes_together(seen):
    """axes_time: an all-gather over two or three axes at once"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(reductions, points=0.5, public=True)
def axes_reduced(seen):
    """axes_time: reduce-scatter and all-reduce of an array that other axes cut"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(thin, points=0.25)
def axes_of_one(seen):
    """axes_time: an axis of one chip has no links"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(misplaced, points=0.25, public=True, after=axes_cut_elsewhere)
def axes_misplaced(seen):
    """axes_time: a gather over an axis that does not cut the array, or a reduction over an axis that cuts it, raises ValueError"""
    expect_outcomes(seen)


TIMES = [axes_cut_elsewhere, axes_together, axes_reduced]


@exercise.misconception(
    of=axes_time, fails=[*TIMES, axes_of_one], breaks="an all-gather over one axis, while other axes cut the array too"
)
def axes_whole_array(spec, over, mesh_shape, **rest):
    """You sent the whole array over each ring. Divide by the axes that cut the array and are not in `over`."""
    right = axes_time(spec=spec, over=over, mesh_shape=mesh_shape, **rest)
    return right * math.prod(mesh_shape[axis] for axis in cutting_axes(spec) if axis not in over)


@exercise.misconception(of=axes_time, fails=[*TIMES, axes_of_one], breaks="the sizes of all *other* axes that cut it")
def axes_divided_by_talking(spec, over, mesh_shape, **rest):
    """You divided by the axes in `over`. The collective joins the parts along these axes. Divide by the axes that cut the array and are not in `over`."""
    right = axes_time(spec=spec, over=over, mesh_shape=mesh_shape, **rest)
    silent = math.prod(mesh_shape[axis] for axis in cutting_axes(spec) if axis not in over)
    return right * silent / math.prod(mesh_shape[axis] for axis in over)


@exercise.misconception(form_of=axes_divided_by_talking)
def axes_divided_by_talking_cuts(spec, over, mesh_shape, **rest):
    """You divided by the axes in `over` that cut the array. For a reduction you divided by no axis."""
    right = axes_time(spec=spec, over=over, mesh_shape=mesh_shape, **rest)
    cuts = cutting_axes(spec)
    silent = math.prod(mesh_shape[axis] for axis in cuts if axis not in over)
    return right * silent / math.prod(mesh_shape[axis] for axis in cuts if axis in over)


@exercise.misconception(
    of=axes_time,
    fails=[axes_together, axes_reduced, axes_of_one],
    breaks="an all-gather over two or three axes at once",
)
def axes_one_ring(over, mesh_shape, **rest):
    """You used the links of one axis only. All axes in `over` carry data at the same time: n·W."""
    right = axes_time(over=over, mesh_shape=mesh_shape, **rest)
    return right * sum(mesh_shape[axis] > 1 for axis in over)


@exercise.misconception(of=axes_time, fails=[*TIMES, axes_of_one], breaks="V / (n·W)")
def axes_all_rings(over, mesh_shape, **rest):
    """You counted the links of every mesh axis. Only the axes in `over` carry the collective's data."""
    right = axes_time(over=over, mesh_shape=mesh_shape, **rest)
    rings = sum(mesh_shape[axis] > 1 for axis in over)
    return right * rings / max(1, sum(size > 1 for size in mesh_shape.values()))


@exercise.misconception(of=axes_time, fails=axes_of_one, breaks="an axis of one chip has no links")
def axes_ring_of_one(over, mesh_shape, **rest):
    """You counted links along an axis of one chip. An axis of one chip has no links."""
    right = axes_time(over=over, mesh_shape=mesh_shape, **rest)
    return right * sum(mesh_shape[axis] > 1 for axis in over) / len(over)


@exercise.misconception(form_of=axes_ring_of_one)
def axes_rings_of_one(over, mesh_shape, **rest):
    """You counted links along axes of one chip, even if all axes in `over` have one chip. An axis of one chip has no links."""
    longer = {axis: max(size, 2) if axis in over else size for axis, size in mesh_shape.items()}
    return axes_time(over=over, mesh_shape=longer, **rest)


@exercise.misconception(of=axes_time, fails=axes_of_one)
def axes_divided_by_zero(over, mesh_shape, **rest):
    """You divided by n = 0. If all axes in `over` have one chip, return 0 before you divide."""
    return axes_time(over=over, mesh_shape=mesh_shape, **rest) / min(1, sum(mesh_shape[axis] > 1 for axis in over))


@exercise.misconception(of=axes_time, fails=[*TIMES, axes_of_one])
def axes_in_elements(itemsize, **rest):
    """You counted elements, not bytes. Multiply by `itemsize`."""
    return axes_time(itemsize=1, **rest)


@exercise.misconception(of=axes_time, fails=[*TIMES, axes_of_one])
def axes_one_direction(**call):
    """You used one direction of the links. On a ring data flows both ways round at once: W = 2·W1."""
    return 2 * axes_time(**call)


@exercise.misconception(of=axes_time, fails=axes_reduced)
def axes_scatter_result(kind, over, mesh_shape, **rest):
    """You took the bytes that a chip has after the reduce-scatter. V is what the chips along `over` reduce together, so `over` does not cut it."""
    right = axes_time(kind=kind, over=over, mesh_shape=mesh_shape, **rest)
    return right / (math.prod(mesh_shape[axis] for axis in over) if kind == "reduce_scatter" else 1)


@exercise.misconception(of=axes_time, fails=axes_reduced)
def axes_reduced_on_one_ring(kind, over, mesh_shape, **rest):
    """You used the links of one axis for a reduction. All axes in `over` carry data at the same time, in reductions too: n·W."""
    right = axes_time(kind=kind, over=over, mesh_shape=mesh_shape, **rest)
    return right * (1 if kind == "all_gather" else sum(mesh_shape[axis] > 1 for axis in over))


@exercise.misconception(of=axes_time, fails=axes_reduced)
def axes_all_reduced_on_one_ring(kind, over, mesh_shape, **rest):
    """Either you used the links of one axis for an all-reduce, or you counted two passes for each axis. All axes in `over` carry data at the same time, and an all-reduce over several axes is two passes: 2·V / (n·W)."""
    right = axes_time(kind=kind, over=over, mesh_shape=mesh_shape, **rest)
    return right * (sum(mesh_shape[axis] > 1 for axis in over) if kind == "all_reduce" else 1)


@exercise.misconception(of=axes_time, fails=axes_reduced)
def axes_all_reduced_in_turn(kind, over, mesh_shape, **rest):
    """You added the time of an all-reduce over each axis. All axes in `over` carry data at the same time: divide by n·W once."""
    right = axes_time(kind=kind, over=over, mesh_shape=mesh_shape, **rest)
    return right * (sum(mesh_shape[axis] > 1 for axis in over) ** 2 if kind == "all_reduce" else 1)


@exercise.misconception(of=axes_time, fails=axes_reduced, breaks="an all-reduce takes twice as long")
def axes_reduced_once(kind, **rest):
    """You counted the all-reduce as one pass. An all-reduce is a reduce-scatter and an all-gather."""
    right = axes_time(kind=kind, **rest)
    return right / 2 if kind == "all_reduce" else right


@exercise.misconception(
    of=axes_time,
    fails=axes_misplaced,
    breaks="a gather over an axis that does not cut the array, or a reduction over an axis that cuts it, raises `ValueError`",
)
def axes_anywhere(**call):
    """You returned a time for a collective that is impossible. Raise ValueError: a gather needs axes that cut the array, a reduction needs axes that do not."""
    return time_anywhere(**call)


def time_anywhere(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """Return the time, without a check of the axes in ``over``."""
    others = math.prod(mesh_shape[axis] for axis in cutting_axes(spec) if axis not in over)
    rings = sum(mesh_shape[axis] > 1 for axis in over)
    passes = 2 if kind == "all_reduce" else 1
    return passes * math.prod(shape) * itemsize / others / (max(rings, 1) * 2 * one_way_bandwidth) * (rings > 0)


@exercise.misconception(of=axes_time, fails=[axes_cut_elsewhere, axes_together, axes_of_one])
def axes_divided_by_all_cuts(spec, over, mesh_shape, **rest):
    """You divided by every axis that cuts the array. The collective joins the parts along `over`: divide by the other axes only."""
    right = axes_time(spec=spec, over=over, mesh_shape=mesh_shape, **rest)
    return right / math.prod(mesh_shape[axis] for axis in cutting_axes(spec) if axis in over)


@exercise.misconception(of=axes_time, fails=axes_reduced)
def axes_of_reduced_shards(kind, over, mesh_shape, **rest):
    """You counted one part of a reduction's result. Every device starts with a partial sum of its whole block: V counts this block."""
    right = axes_time(kind=kind, over=over, mesh_shape=mesh_shape, **rest)
    return right if kind == "all_gather" else right / math.prod(mesh_shape[axis] for axis in over)


@exercise.misconception(of=axes_time, fails=[*TIMES, axes_of_one])
def axes_divided_by_the_mesh(spec, over, mesh_shape, **rest):
    """You divided by every mesh axis that is not in `over`. Divide only by the axes that cut the array."""
    right = axes_time(spec=spec, over=over, mesh_shape=mesh_shape, **rest)
    whole = [axis for axis in mesh_shape if axis not in (*over, *cutting_axes(spec))]
    return right / math.prod(mesh_shape[axis] for axis in whole)


@exercise.misconception(of=axes_time, fails=[*TIMES, axes_of_one])
def axes_exact(over, mesh_shape, **rest):
    """You used (N-1)/N of V. This function's model is V / (n·W)."""
    group = math.prod(mesh_shape[axis] for axis in over)
    return axes_time(over=over, mesh_shape=mesh_shape, **rest) * (group - 1) / group


@exercise.misconception(of=axes_time, fails=[axes_together, axes_reduced, axes_of_one])
def axes_one_after_another(over, mesh_shape, **rest):
    """You added the time of each axis. All axes in `over` carry data at the same time: divide by n·W once."""
    right = axes_time(over=over, mesh_shape=mesh_shape, **rest)
    return right * sum(mesh_shape[axis] > 1 for axis in over) ** 2


@exercise.misconception(form_of=axes_one_after_another)
def axes_one_after_another_on_parts(over, mesh_shape, **rest):
    """Like `axes_one_after_another`, but each axis cuts V for the next axis."""
    right = axes_time(over=over, mesh_shape=mesh_shape, **rest)
    rings = [mesh_shape[axis] for axis in over if mesh_shape[axis] > 1]
    return right * len(rings) * sum(1 / math.prod(rings[:n]) for n in range(len(rings)))


@exercise.misconception(of=axes_time, fails=axes_reduced)
def axes_scattered_twice(kind, **rest):
    """You counted the reduce-scatter as two passes. Only an all-reduce has two passes."""
    return axes_time(kind=kind, **rest) * (2 if kind == "reduce_scatter" else 1)


def raised_if(refuse, kind, spec, over, **rest):
    """Return the time, or raise ValueError if ``refuse(kind, impossible axes of over)`` is true."""
    wrong = [axis for axis in over if (axis in cutting_axes(spec)) != (kind == "all_gather")]
    if wrong and refuse(kind, wrong):
        raise ValueError("gather over axes that cut the array, reduce over axes that do not")
    return time_anywhere(kind=kind, spec=spec, over=over, **rest)


@exercise.misconception(of=axes_time, fails=axes_misplaced)
def axes_gathers_checked_only(kind, spec, over, mesh_shape, **rest):
    """You refused impossible gathers, but not impossible reductions. Raise ValueError if a reduction runs over an axis that cuts the array."""
    return raised_if(lambda kind, wrong: kind == "all_gather", kind, spec, over, mesh_shape=mesh_shape, **rest)


@exercise.misconception(of=axes_time, fails=axes_misplaced)
def axes_reductions_checked_only(kind, spec, over, mesh_shape, **rest):
    """You refused impossible reductions, but not impossible gathers. Raise ValueError if a gather runs over an axis that does not cut the array."""
    return raised_if(lambda kind, wrong: kind != "all_gather", kind, spec, over, mesh_shape=mesh_shape, **rest)


@exercise.misconception(of=axes_time, fails=axes_misplaced)
def axes_one_reduction_checked(kind, spec, over, mesh_shape, **rest):
    """You accepted a reduce-scatter over axes that cut the array. Like an all-reduce, it needs axes that do not cut the array."""
    return raised_if(lambda kind, wrong: kind != "reduce_scatter", kind, spec, over, mesh_shape=mesh_shape, **rest)


@exercise.misconception(of=axes_time, fails=axes_misplaced)
def axes_scatters_checked_only(kind, spec, over, mesh_shape, **rest):
    """You did not check the axes of an all-reduce. Like a reduce-scatter, it needs axes that do not cut the array."""
    return raised_if(lambda kind, wrong: kind != "all_reduce", kind, spec, over, mesh_shape=mesh_shape, **rest)


@exercise.misconception(of=axes_time, fails=axes_misplaced)
def axes_some_may_cut(kind, spec, over, mesh_shape, **rest):
    """You accepted a gather if some of its axes cut the array. Each axis in `over` has to cut it."""
    return raised_if(
        lambda kind, wrong: kind != "all_gather" or len(wrong) == len(over),
        kind,
        spec,
        over,
        mesh_shape=mesh_shape,
        **rest,
    )


@exercise.misconception(of=axes_time, fails=axes_misplaced)
def axes_of_one_unchecked(kind, spec, over, mesh_shape, **rest):
    """You skipped axes of one chip before you checked them. Check them too: a gather may run over an axis of one chip only if this axis cuts the array."""
    return raised_if(
        lambda kind, wrong: any(mesh_shape[axis] > 1 for axis in wrong), kind, spec, over, mesh_shape=mesh_shape, **rest
    )


@exercise.misconception(of=gather_cut_elsewhere_time)
def gather_cut_ignored(Y, **rest):
    """You gathered all of A. y has already cut A: each ring along x joins 1/Y of the array."""
    return Y * gather_cut_elsewhere_time(Y=Y, **rest)


@exercise.misconception(of=gather_cut_elsewhere_time)
def gather_cut_by_its_own_axis(X, Y, **rest):
    """You divided by x, the axis of the all-gather. Divide by y, which cuts the array and does not communicate."""
    return Y / X * gather_cut_elsewhere_time(X=X, Y=Y, **rest)


@exercise.misconception(of=gather_cut_elsewhere_time)
def gather_cut_twice(X, **rest):
    """You took one chip's shard as V. V is the part of the array on the whole ring along x."""
    return gather_cut_elsewhere_time(X=X, **rest) / X


@exercise.misconception(of=gather_cut_elsewhere_time)
def gather_cut_one_way(**params):
    """Your answer is too large by a factor of two. Both directions of a ring carry data (W = 2·W1). An all-gather is one pass. A bfloat16 has 2 bytes."""
    return 2 * gather_cut_elsewhere_time(**params)


@exercise.misconception(of=gather_cut_elsewhere_time)
def gather_cut_elements(**params):
    """Your answer is too small by a factor of two. A bfloat16 has 2 bytes, and one ring carries W, not 2·W."""
    return gather_cut_elsewhere_time(**params) / 2


@exercise.misconception(of=gather_two_axes_time)
def gather_two_on_one(**params):
    """Your answer is too large by a factor of two. x and y both carry data, in both directions (2·W). An all-gather is one pass. A float32 has 4 bytes."""
    return 2 * gather_two_axes_time(**params)


@exercise.misconception(of=gather_two_axes_time)
def gather_two_on_three(**params):
    """You counted the links of z too. Only x and y communicate."""
    return 2 / 3 * gather_two_axes_time(**params)


@exercise.misconception(of=gather_two_axes_time)
def gather_two_ignoring_z(Z, **rest):
    """You gathered all of A. z has already cut A: each group joins 1/Z of the array."""
    return Z * gather_two_axes_time(Z=Z, **rest)


@exercise.misconception(of=gather_two_axes_time)
def gather_two_by_their_own(X, Y, Z, **rest):
    """You divided by x and y, the axes of the all-gather. Divide by z, which cuts the array and does not communicate."""
    return Z / (X * Y) * gather_two_axes_time(X=X, Y=Y, Z=Z, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_ignored(X, Y, **rest):
    """You reduced all of C. x and y have already cut C: each ring along z adds 1/(X·Y) of C."""
    return X * Y * reduce_cut_elsewhere_time(X=X, Y=Y, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_by_z(X, Y, Z, **rest):
    """You divided by z. Every chip along z holds a partial sum of the same block: divide by x and y, which cut C."""
    return X * Y / Z * reduce_cut_elsewhere_time(X=X, Y=Y, Z=Z, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_once(**params):
    """Your answer is too small by a factor of two. An all-reduce is a reduce-scatter and an all-gather, and a float32 has 4 bytes."""
    return reduce_cut_elsewhere_time(**params) / 2


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_one_way(**params):
    """Your answer is too large by a factor of two. Both directions of a ring carry data (W = 2·W1). An all-reduce is two passes. A float32 has 4 bytes."""
    return 2 * reduce_cut_elsewhere_time(**params)


@exercise.misconception(of=gather_cut_elsewhere_time)
def gather_cut_by_z(Z, **rest):
    """You divided by z too. z does not cut A: chips along z hold equal copies."""
    return gather_cut_elsewhere_time(Z=Z, **rest) / Z


@exercise.misconception(of=gather_cut_elsewhere_time)
def gather_cut_by_z_alone(Y, Z, **rest):
    """You divided by z in place of y. y cuts A. z does not: chips along z hold equal copies."""
    return Y / Z * gather_cut_elsewhere_time(Y=Y, Z=Z, **rest)


@exercise.misconception(of=gather_cut_elsewhere_time)
def gather_cut_exact(X, **rest):
    """You used (N-1)/N of V. This question's model is V/W."""
    return (X - 1) / X * gather_cut_elsewhere_time(X=X, **rest)


@exercise.misconception(of=gather_two_axes_time)
def gather_two_half(**params):
    """Your answer is too small by a factor of two. A float32 has 4 bytes, and W already counts both directions: two rings carry 2·W, not 4·W."""
    return gather_two_axes_time(**params) / 2


@exercise.misconception(of=gather_two_axes_time)
def gather_two_on_one_whole(Z, **rest):
    """You gathered all of A on one ring. z has already cut A, and both x and y carry data."""
    return 2 * Z * gather_two_axes_time(Z=Z, **rest)


@exercise.misconception(of=gather_two_axes_time)
def gather_two_by_x(X, Z, **rest):
    """You divided by x in place of z. The all-gather joins the parts along x and y. z cuts the columns, and does not communicate."""
    return Z / X * gather_two_axes_time(X=X, Z=Z, **rest)


@exercise.misconception(of=gather_two_axes_time)
def gather_two_by_y(Y, Z, **rest):
    """You divided by y in place of z. The all-gather joins the parts along x and y. z cuts the columns, and does not communicate."""
    return Z / Y * gather_two_axes_time(Y=Y, Z=Z, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_by_x(Y, **rest):
    """You divided by x only. y cuts C too: each ring along z adds 1/(X·Y) of C."""
    return Y * reduce_cut_elsewhere_time(Y=Y, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_by_y(X, **rest):
    """You divided by y only. x cuts C too: each ring along z adds 1/(X·Y) of C."""
    return X * reduce_cut_elsewhere_time(X=X, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_by_x_and_z(Y, Z, **rest):
    """You divided by x and z. x and y cut C. Chips along z hold partial sums of the same block."""
    return Y / Z * reduce_cut_elsewhere_time(Y=Y, Z=Z, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_by_y_and_z(X, Z, **rest):
    """You divided by y and z. x and y cut C. Chips along z hold partial sums of the same block."""
    return X / Z * reduce_cut_elsewhere_time(X=X, Z=Z, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_exact(Z, **rest):
    """You used (N-1)/N of V. This question's model is 2 · V/W."""
    return (Z - 1) / Z * reduce_cut_elsewhere_time(Z=Z, **rest)


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_by_all(Z, **rest):
    """You divided by z too. Each chip along z holds a partial sum of its whole block."""
    return reduce_cut_elsewhere_time(Z=Z, **rest) / Z


@exercise.misconception(of=reduce_cut_elsewhere_time)
def reduce_cut_on_three(**params):
    """You used the links of three axes. Only z carries this all-reduce."""
    return reduce_cut_elsewhere_time(**params) / 3


def about(spec, over, passes=1):
    """Return a three-axis slice, an array cut by ``spec``, and the hops along the communicating axes."""

    def facts(chip, X, Y, Z, I, J):
        mesh = {"x": X, "y": Y, "z": Z}
        hops = latency([mesh[axis] for axis in over])
        return Scenario(
            chip=chip, slice=(X, Y, Z), rings=(X, Y, Z), mesh=mesh, arrays=[((I, J), spec)], least=passes * hops
        )

    return facts


PUBLISHED = [11.6, 23, 46, 186, 190]  # answers to question 2 of the book
exercise.scenario(gather_cut_elsewhere_time, about(P("x", "y"), "x"), published=PUBLISHED)
exercise.scenario(gather_two_axes_time, about(P(("x", "y"), "z"), "xy"), published=PUBLISHED)
exercise.scenario(reduce_cut_elsewhere_time, about(P("x", "y"), "z", passes=2), published=PUBLISHED)
