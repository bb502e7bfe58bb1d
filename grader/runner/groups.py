"""Groups of devices that communicate, the mesh axes along which they communicate, and the bytes that a device sends.

Devices are numbered in mesh order, row-major.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import sdy, stablehlo

from grader.common.intervals import Interval

Groups = list[list[int]]
AxisPart = tuple[str, int, int | None]


def sent_bytes(kind: str, size: int, members: int) -> int:
    """Return the bytes that a device sends in a bandwidth-optimal algorithm on a ring of ``members`` devices.

    In an all-to-all, data that a device only passes on do not count. ``size``: bytes of the input on one device.
    """
    if members < 2:
        return 0
    return {
        "all_gather": size * (members - 1),
        "reduce_scatter": size * (members - 1) // members,
        "all_reduce": 2 * size * (members - 1) // members,
        "all_to_all": size * (members - 1) // members,
        "permute": size,
        "broadcast": size,
    }[kind]


def sent_in_group(kind: str, size: int, members: int) -> Interval:
    """Return the least and the most bytes that a device of a group sends, as an interval.

    A broadcast passes the data along a chain of devices, so the last device sends nothing.
    """
    most = sent_bytes(kind, size, members)
    return Interval(0 if kind == "broadcast" else most, most)


def some_senders(pairs: Groups, devices: int) -> tuple[int, ...] | None:
    """Return the devices of a permute that send to another device; None if all ``devices`` devices do."""
    found = tuple(sorted({a for a, b in pairs if a != b}))
    return found if len(found) < devices else None


def axis_groups(sizes: Mapping[str, int], ids: Sequence[int], chosen: Sequence[AxisPart]) -> Groups:
    """Divide the devices of a mesh into groups whose devices differ only along the chosen axes or parts of axes.

    Args:
        sizes: size of each mesh axis.
        ids: the numbers of the mesh's devices, row-major.
        chosen: the axes or parts of axes, as tuples ``(axis, before, size)``. Within a group, the first axis varies
            slowest, the last fastest. For a whole axis, ``before`` is 1 and ``size`` is None. A part is a factor of the
            axis's size: ``size`` is this factor, and ``before`` is the product of the factors before it.

    Raises:
        ValueError: an axis has no such part, or a part is chosen twice.
    """
    whole = [(a, before, sizes.get(a, 0) // before if size is None else size) for a, before, size in chosen]
    parts = [part for axis, n in sizes.items() for part in _cut_axis(axis, n, whole)]
    places: list[int] = []
    for part in whole:
        inside = [place for place, small in enumerate(parts) if _is_inside(small, part)]
        if part[0] not in sizes or set(inside) & set(places):
            raise ValueError(f"axis {part[0]} does not exist, or is named twice")
        places += inside
    rest = [i for i in range(len(parts)) if i not in places]
    grid = np.asarray(ids).reshape([n for *_, n in parts]).transpose(rest + places)
    return grid.reshape(-1, math.prod(parts[i][2] for i in places)).tolist()


def _is_inside(small: tuple[str, int, int], part: tuple[str, int, int]) -> bool:
    (axis, at, n), (whole_axis, before, size) = small, part
    return axis == whole_axis and before <= at and at * n <= before * size


def _cut_axis(axis: str, size: int, chosen: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Split an axis into factors. Each chosen part is a factor, or several successive factors."""
    borders = sorted({1, size, *(b for a, before, n in chosen if a == axis for b in (before, before * n))})
    pairs = list(itertools.pairwise(borders))
    if borders[-1] != size or any(end % start for start, end in pairs):
        raise ValueError(
            f"axis {axis} of size {size} cannot be split at {borders}: each border must divide the next one"
        )
    return [(axis, start, end // start) for start, end in pairs]


def crossed_axes(groups: Groups, mesh: Mapping[str, int]) -> tuple[str, ...]:
    """Return the mesh axes that the groups *cross*: the axes along which two members of a group differ.

    The axes are in mesh order. The result is empty if no group has two members, so that no data moves.

    Args:
        groups: device numbers, one list per group; for a permute, one (source, target) pair per list.
        mesh: size of each mesh axis, in device order.
    """
    found, stride = [], math.prod(mesh.values())
    for axis, size in mesh.items():
        stride //= size
        if any(len({device // stride % size for device in group}) > 1 for group in groups):
            found.append(axis)
    return tuple(found)


def are_partial(groups: Groups, axes: Sequence[str], mesh: Mapping[str, int]) -> bool:
    """Return whether a group lacks some of the devices along ``axes``, the mesh axes that the groups cross."""
    return any(len(group) != math.prod(mesh[a] for a in axes) for group in groups)


def cyclic_shift(pairs: Groups, mesh: Mapping[str, int]) -> int | None:
    """Return by how many devices a permute shifts all data along one axis.

    Return None if the permute is not a cyclic shift along one axis. On an axis of N devices, the result is above -N/2
    and at most N/2. A negative result is a shift backwards.
    """
    axes = crossed_axes(pairs, mesh)
    if len(axes) != 1 or {a for a, _ in pairs} != set(range(math.prod(mesh.values()))):
        return None
    place, size = list(mesh).index(axes[0]), mesh[axes[0]]
    points = list(itertools.product(*(range(n) for n in mesh.values())))
    steps = {(points[b][place] - points[a][place]) % size for a, b in pairs}
    if len(steps) != 1:
        return None
    step = steps.pop()
    return step if 2 * step <= size else step - size


def numbers(attribute: Any) -> Groups:
    """Return a two-dimensional dense integer attribute of MLIR as lists."""
    return np.array(attribute).tolist()


def replica_groups(attribute: Any, meshes: Mapping[str, Any], devices: int) -> Groups | None:
    """Return the groups of a collective.

    Return None if the collective's mesh is unknown, lacks one of the named axes, or does not have ``devices`` devices.

    Args:
        attribute: the attribute ``replica_groups``. JAX 0.10 writes device numbers; JAX 0.12 writes a mesh and axes or
            parts of axes.
        meshes: the module's ``sdy.mesh`` attributes by name.
    """
    if not stablehlo.ReplicaGroupMeshAxesAttr.isinstance(attribute):
        return numbers(attribute)
    named: Any = stablehlo.ReplicaGroupMeshAxesAttr(attribute)
    mesh: Any
    if stablehlo.MeshAttr.isinstance(named.mesh):
        mesh = stablehlo.MeshAttr(named.mesh)
        axes = [stablehlo.MeshAxisAttr(a) for a in mesh.axes]
        ids = [] if mesh.device_ids is None else [int(i) for i in mesh.device_ids]
    elif named.mesh.value in meshes:
        mesh = sdy.MeshAttr(meshes[named.mesh.value])
        axes, ids = [sdy.MeshAxisAttr(a) for a in mesh.axes], list(mesh.device_ids)
    else:
        return None
    sizes = {a.name: a.size for a in axes}
    if math.prod(sizes.values()) != devices:
        return None
    try:
        return axis_groups(sizes, ids or range(devices), [_part(a) for a in named.axes])
    except ValueError:
        return None


def _part(reference: Any) -> AxisPart:
    axis: Any = stablehlo.AxisRefAttr(reference)
    if axis.sub_axis_info is None:
        return axis.name, 1, None
    part = stablehlo.SubAxisInfoAttr(axis.sub_axis_info)
    return axis.name, part.pre_size, part.size
