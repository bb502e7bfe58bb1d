"""The reference solution."""

import math


def cutting_axes(spec):
    """Return a list of the axes that a spec names."""
    named = []
    for entry in spec:
        if entry is not None:
            named.extend([entry] if isinstance(entry, str) else entry)
    return named


def axes_time(kind, shape, itemsize, spec, over, mesh_shape, one_way_bandwidth):
    """Return the seconds of a collective over one or more axes: bandwidth only, V / (n·W). Every axis is a ring.

    Args:
        kind: "all_gather", "reduce_scatter" or "all_reduce".
        shape: shape of the whole array. itemsize: bytes of one element.
        spec: PartitionSpec of the array *before* the collective.
        over: tuple of the collective's axes. mesh_shape: size of each axis, such as {"x": 4, "y": 2}.
        one_way_bandwidth: W1, bytes/s of one link in one direction.
    """
    cuts = cutting_axes(spec)
    if any((axis in cuts) != (kind == "all_gather") for axis in over):
        raise ValueError("gather over axes that cut the array, reduce over axes that do not")
    silent = math.prod(mesh_shape[axis] for axis in cuts if axis not in over)
    rings = sum(mesh_shape[axis] > 1 for axis in over)
    passes = 2 if kind == "all_reduce" else 1
    group_bytes = math.prod(shape) * itemsize / silent
    return passes * group_bytes / (rings * 2 * one_way_bandwidth) if rings else 0.0
