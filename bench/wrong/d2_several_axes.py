import math

from d2_several_axes import cutting_axes
from grader.hardware import CHIPS


def whole_array(chip, X, Y, Z, I, J):
    """gather_cut_elsewhere_time: gather_cut_ignored"""
    return 2 * I * J / CHIPS[chip].ici_both


def cut_by_x(chip, X, Y, Z, I, J):
    """gather_cut_elsewhere_time: gather_cut_by_its_own_axis"""
    return 2 * I * J / X / CHIPS[chip].ici_both


def one_axis(chip, X, Y, Z, I, J):
    """gather_two_axes_time: gather_two_on_one"""
    return 4 * I * J / Z / CHIPS[chip].ici_both


def one_phase(chip, X, Y, Z, I, J):
    """reduce_cut_elsewhere_time: reduce_cut_once"""
    return 4 * I * J / (X * Y) / CHIPS[chip].ici_both


def not_cut(chip, X, Y, Z, I, J):
    """reduce_cut_elsewhere_time: reduce_cut_ignored"""
    return 2 * 4 * I * J / CHIPS[chip].ici_both


def _checked(kind, spec, over):
    cutting = cutting_axes(spec)
    for axis in over:
        if (axis in cutting) != (kind == "all_gather"):
            raise ValueError("no")
    return cutting


def whole_array_of_bytes(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_whole_array"""
    _checked(kind, spec, over)
    n = sum(mesh_shape[a] > 1 for a in over)
    if not n:
        return 0.0
    t = math.prod(shape) * itemsize / (2 * one_way_bandwidth * n)
    return 2 * t if kind == "all_reduce" else t


def one_direction(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_one_direction"""
    cutting = _checked(kind, spec, over)
    n = sum(mesh_shape[a] > 1 for a in over)
    if not n:
        return 0.0
    v = math.prod(shape) * itemsize / math.prod(mesh_shape[a] for a in cutting if a not in over)
    return v / (n * one_way_bandwidth) * (1 + (kind == "all_reduce"))


def own_shard(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_divided_by_all_cuts"""
    cutting = _checked(kind, spec, over)
    rings = len([a for a in over if mesh_shape[a] > 1])
    if rings == 0:
        return 0.0
    v = math.prod(shape) * itemsize
    for a in cutting:
        v /= mesh_shape[a]
    return v / (rings * 2 * one_way_bandwidth) * {"all_reduce": 2}.get(kind, 1)


def reduce_once(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_reduced_once"""
    cutting = _checked(kind, spec, over)
    rings = len([a for a in over if mesh_shape[a] > 1])
    v = math.prod(shape) * itemsize / math.prod(mesh_shape[a] for a in cutting if a not in over)
    return v / (rings * 2 * one_way_bandwidth) if rings else 0.0


def small_axes_counted(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_ring_of_one"""
    cutting = _checked(kind, spec, over)
    if all(mesh_shape[a] == 1 for a in over):
        return 0.0
    v = math.prod(shape) * itemsize / math.prod(mesh_shape[a] for a in cutting if a not in over)
    return (2 if kind == "all_reduce" else 1) * v / (2 * one_way_bandwidth * len(over))


def reductions_never_refused(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_gathers_checked_only"""
    cutting = cutting_axes(spec)
    if kind == "all_gather" and not all(a in cutting for a in over):
        raise ValueError("not cut")
    rings = sum(mesh_shape[a] > 1 for a in over)
    v = math.prod(shape) * itemsize / math.prod(mesh_shape[a] for a in cutting if a not in over)
    return (2 if kind == "all_reduce" else 1) * v / (2 * one_way_bandwidth * rings) if rings else 0.0


def one_ring_at_a_time(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_one_ring"""
    cutting = _checked(kind, spec, over)
    if all(mesh_shape[a] == 1 for a in over):
        return 0.0
    v = math.prod(shape) * itemsize / math.prod(mesh_shape[a] for a in cutting if a not in over)
    return (2 if kind == "all_reduce" else 1) * v / (2 * one_way_bandwidth)


def _group(kind, shape, itemsize, spec, over, mesh_shape):
    cutting = _checked(kind, spec, over)
    v = math.prod(shape) * itemsize / math.prod(mesh_shape[a] for a in cutting if a not in over)
    return v, [mesh_shape[a] for a in over if mesh_shape[a] > 1]


def all_reduces_in_turn(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_all_reduced_in_turn"""
    v, rings = _group(kind, shape, itemsize, spec, over, mesh_shape)
    w = 2 * one_way_bandwidth
    if kind == "all_reduce":
        return float(sum(2 * v / w for _ in rings))
    return v / (len(rings) * w) if rings else 0.0


def all_reduce_on_one_ring(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_all_reduced_on_one_ring"""
    v, rings = _group(kind, shape, itemsize, spec, over, mesh_shape)
    if not rings:
        return 0.0
    w = 2 * one_way_bandwidth
    return 2 * v / w if kind == "all_reduce" else v / (len(rings) * w)


def two_passes_for_each_axis(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_all_reduced_on_one_ring"""
    v, rings = _group(kind, shape, itemsize, spec, over, mesh_shape)
    passes = 2 * len(rings) if kind == "all_reduce" else 1
    return passes * v / (len(rings) * 2 * one_way_bandwidth) if rings else 0.0


def reductions_in_turn(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_one_after_another"""
    v, rings = _group(kind, shape, itemsize, spec, over, mesh_shape)
    passes = 2 if kind == "all_reduce" else 1
    return float(sum(passes * v / (2 * one_way_bandwidth) for _ in rings))


def reductions_on_one_ring(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_reduced_on_one_ring"""
    v, rings = _group(kind, shape, itemsize, spec, over, mesh_shape)
    if not rings:
        return 0.0
    if kind == "all_gather":
        return v / (len(rings) * 2 * one_way_bandwidth)
    return (2 if kind == "all_reduce" else 1) * v / (2 * one_way_bandwidth)


def cut_by_z(chip, X, Y, Z, I, J):
    """gather_cut_elsewhere_time: gather_cut_by_z_alone"""
    return 2 * I * J / Z / CHIPS[chip].ici_both


def cut_by_y_not_z(chip, X, Y, Z, I, J):
    """gather_two_axes_time: gather_two_by_y"""
    return 4 * I * J / Y / (2 * CHIPS[chip].ici_both)


def cut_by_x_not_z(chip, X, Y, Z, I, J):
    """gather_two_axes_time: gather_two_by_x"""
    return 4 * I * J / X / (2 * CHIPS[chip].ici_both)


def cut_by_x_and_z(chip, X, Y, Z, I, J):
    """reduce_cut_elsewhere_time: reduce_cut_by_x_and_z"""
    return 2 * 4 * I * J / (X * Z) / CHIPS[chip].ici_both


def cut_by_y_and_z(chip, X, Y, Z, I, J):
    """reduce_cut_elsewhere_time: reduce_cut_by_y_and_z"""
    return 2 * 4 * I * J / (Y * Z) / CHIPS[chip].ici_both


def one_axis_and_then_the_next(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """axes_time: axes_one_after_another"""
    v, rings = _group(kind, shape, itemsize, spec, over, mesh_shape)
    total = 0.0
    for ring in rings:
        total += (2 if kind == "all_reduce" else 1) * v / (2 * one_way_bandwidth)
        v /= ring
    return total
