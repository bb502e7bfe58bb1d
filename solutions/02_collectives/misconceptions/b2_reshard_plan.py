"""What goes wrong in B2."""

from b2_reshard_plan import exercise, plan_arrives, plan_moves, plan_order, plan_sums, reshard_bytes, reshard_plan


@exercise.misconception(fails=[plan_moves, plan_order])
def plan_gathers_to_move(src, unreduced, dst, shape, mesh_shape):
    """You moved an axis to another dimension by all-gather and slice. An all-to-all sends only what each device keeps, 1/n of it."""
    plan = []
    for kind, axis, *dims in reshard_plan(src, unreduced, dst, shape, mesh_shape):
        by_hand = [("all_gather", axis, *dims[:1]), ("slice", axis, *dims[1:])]
        plan += by_hand if kind == "all_to_all" else [(kind, axis, *dims)]
    return plan


@exercise.misconception(fails=[plan_sums, plan_order])
def plan_reduces_everywhere(src, unreduced, dst, shape, mesh_shape):
    """You reduced by all-reduce and slice. A reduce-scatter sends half as much and leaves each device what it keeps."""
    plan = []
    for kind, axis, *dims in reshard_plan(src, unreduced, dst, shape, mesh_shape):
        by_hand = [("all_reduce", axis), ("slice", axis, *dims)]
        plan += by_hand if kind == "reduce_scatter" else [(kind, axis, *dims)]
    return plan


@exercise.misconception(fails=plan_order)
def plan_gathers_first(src, unreduced, dst, shape, mesh_shape):
    """You gathered first. Everything after it moves larger blocks: cut early, gather late, unless a dimension must become free."""
    return sorted(reshard_plan(src, unreduced, dst, shape, mesh_shape), key=lambda step: step[0] != "all_gather")


@exercise.misconception(fails=plan_arrives)
def plan_axis_by_axis(src, unreduced, dst, shape, mesh_shape):
    """You took the axes in the order of the mesh. A dimension must be free before another axis can cut it."""
    return sorted(
        reshard_plan(src, unreduced, dst, shape, mesh_shape), key=lambda step: list(mesh_shape).index(step[1])
    )


@exercise.misconception(fails=plan_arrives)
def plan_forgets_sums(src, unreduced, dst, shape, mesh_shape):
    """You looked at src and dst only. Over the axes in `unreduced` devices hold partial sums, which somebody has to add."""
    return reshard_plan(src, (), dst, shape, mesh_shape)


@exercise.misconception(of=reshard_bytes)
def reshard_scatter_first(I, J, X, Y):
    """You reduce-scattered all of C. Slice along y first: it is free, and leaves 1/Y to be reduced."""
    return 4 * I * J * (X - 1) / X


@exercise.misconception(of=reshard_bytes)
def reshard_all_reduce(I, J, X, Y):
    """You all-reduced, or counted both halves of one. The reduce-scatter alone leaves every device its rows."""
    return 2 * 4 * I * J / Y * (X - 1) / X


@exercise.misconception(of=reshard_bytes)
def reshard_own_chunk_too(I, J, X, Y):
    """You sent all X chunks of the block. One of them stays: X - 1 travel."""
    return 4 * I * J / Y
