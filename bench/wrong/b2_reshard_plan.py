import itertools

from b2_reshard_plan import run_plan


def cheapest(steps, src, unreduced, shape, mesh_shape):
    best, least = list(steps), None
    for order in itertools.permutations(steps):
        try:
            sent = run_plan(order, src, unreduced, shape, mesh_shape)[2]
        except ValueError:
            continue
        if least is None or sent < least:
            best, least = list(order), sent
    return best


def everything_whole_first(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_through_the_whole_array"""
    plan = [("all_reduce", axis) for axis in unreduced]
    plan += [("all_gather", axis, d) for d, axis in enumerate(src) if axis]
    return plan + [("slice", axis, d) for d, axis in enumerate(dst) if axis]


def whole_where_it_changes(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_through_the_whole_array"""
    plan = [("all_gather", axis, d) for d, axis in enumerate(src) if axis and dst[d] != axis]
    plan += [("all_reduce", axis) for axis in unreduced]
    return plan + [("slice", axis, d) for d, axis in enumerate(dst) if axis and src[d] != axis]


def cheap_order_of_whole_steps(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_gathers_to_move, plan_reduces_everywhere, plan_through_the_whole_array"""
    steps = [("all_reduce", axis) for axis in unreduced]
    steps += [("all_gather", axis, d) for d, axis in enumerate(src) if axis and dst[d] != axis]
    steps += [("slice", axis, d) for d, axis in enumerate(dst) if axis and src[d] != axis]
    return cheapest(steps, src, unreduced, shape, mesh_shape)


def needed(src, unreduced, dst, moves=True, scatters=True):
    steps = []
    for axis in {*filter(None, src), *filter(None, dst), *unreduced}:
        here = src.index(axis) if axis in src else None
        there = dst.index(axis) if axis in dst else None
        if axis in unreduced and there is not None and scatters:
            steps.append(("reduce_scatter", axis, there))
        elif axis in unreduced:
            steps += [("all_reduce", axis)] + ([("slice", axis, there)] if there is not None else [])
        elif here is None:
            steps.append(("slice", axis, there))
        elif there is None:
            steps.append(("all_gather", axis, here))
        elif here != there and moves:
            steps.append(("all_to_all", axis, here, there))
        elif here != there:
            steps += [("all_gather", axis, here), ("slice", axis, there)]
    return sorted(steps, key=str)


def moved_by_gathering(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_gathers_to_move"""
    return cheapest(needed(src, unreduced, dst, moves=False), src, unreduced, shape, mesh_shape)


def summed_then_cut(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_reduces_everywhere"""
    return cheapest(needed(src, unreduced, dst, scatters=False), src, unreduced, shape, mesh_shape)


def sums_not_seen(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_forgets_sums"""
    return cheapest(needed(src, (), dst), src, unreduced, shape, mesh_shape)


def first_order_that_works(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_first_order_that_works, plan_gathers_first"""
    for order in itertools.permutations(needed(src, unreduced, dst)):
        try:
            run_plan(order, src, unreduced, shape, mesh_shape)
        except ValueError:
            continue
        return list(order)


def frees_dimensions_first(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_gathers_first"""
    kinds = ["all_gather", "all_to_all", "reduce_scatter", "all_reduce", "slice"]
    return sorted(needed(src, unreduced, dst), key=lambda step: kinds.index(step[0]))


def each_axis_in_turn(src, unreduced, dst, shape, mesh_shape):
    """reshard_plan: plan_axis_by_axis"""
    plan = []
    for axis in mesh_shape:
        plan += [step for step in needed(src, unreduced, dst) if step[1] == axis]
    return plan


def bytes_in_bfloat16(I, J, X, Y):
    """reshard_bytes: reshard_in_bfloat16"""
    return 2 * I * J / Y * (X - 1) / X


def bytes_of_the_whole_array(I, J, X, Y):
    """reshard_bytes: reshard_scatter_first"""
    return 4 * I * J * (X - 1) / X


def bytes_of_both_phases(I, J, X, Y):
    """reshard_bytes: reshard_all_reduce"""
    return 8 * I * J * (X - 1) / (X * Y)


def bytes_of_what_arrives(I, J, X, Y):
    """reshard_bytes: none"""
    return 4 * I * J / (X * Y)
