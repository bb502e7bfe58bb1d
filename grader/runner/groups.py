"""Who talks to whom: groups of device numbers, the mesh axes they cross, and what a device sends in them.

Devices are numbered in mesh order, row-major.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir.dialects import sdy, stablehlo

from grader.common.observation import Interval

Groups = list[list[int]]
AxisPart = tuple[str, int, int | None]


def sent_bytes(kind: str, size: int, members: int) -> int:
    """Bytes one device sends on a ring of ``members`` for an input of ``size`` bytes (bandwidth-optimal)."""
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
    """The same over all devices of a group: the last one on the way of a broadcast passes nothing on."""
    most = sent_bytes(kind, size, members)
    return Interval(0 if kind == "broadcast" else most, most)


def senders(pairs: Groups) -> tuple[int, ...]:
    """The devices of a permute that send to another one."""
    return tuple(sorted({a for a, b in pairs if a != b}))


def axis_groups(sizes: Mapping[str, int], ids: Sequence[int], chosen: Sequence[AxisPart]) -> Groups:
    """The groups along axes, or along parts of axes, of a mesh whose devices are ``ids``.

    A part ``(axis, before, size)`` is the factor of ``size`` that has factors of product ``before`` in front of it;
    size None is all of the axis. The first one chosen is the major one within a group.

    Raises ValueError for parts that no axis has.
    """
    import numpy as np

    whole = [(a, before, sizes.get(a, 0) // before if size is None else size) for a, before, size in chosen]
    parts: list[tuple[str, int, int]] = []
    for axis, n in sizes.items():
        cuts = {1, n, *(c for a, before, size in whole if a == axis for c in (before, before * size))}
        if any(b % a for a, b in itertools.pairwise(sorted(cuts))) or max(cuts) != n:
            raise ValueError(f"axis {axis} of {n} has no such part")
        parts += [(axis, a, b // a) for a, b in itertools.pairwise(sorted(cuts))]
    places: list[int] = []
    for axis, before, size in whole:
        inside = [
            i for i, (a, start, n) in enumerate(parts) if a == axis and before <= start and start * n <= before * size
        ]
        if axis not in sizes or set(inside) & set(places):
            raise ValueError(f"no axis {axis}, or one named twice")
        places += inside
    rest = [i for i in range(len(parts)) if i not in places]
    grid = np.asarray(ids).reshape([n for *_, n in parts]).transpose(rest + places)
    return grid.reshape(-1, math.prod(parts[i][2] for i in places)).tolist()


def crossed_axes(groups: Groups, mesh: Mapping[str, int]) -> tuple[str, ...]:
    """Return the mesh axes that a group crosses: two of its members differ along them.

    Args:
        groups: device numbers, one list per group; of a permute one (source, target) pair per list.
        mesh: size of each mesh axis, in device order.

    Returns:
        Axis names in mesh order. Empty if no group has two members, so nothing moves.
    """
    found, stride = [], math.prod(mesh.values())
    for axis, size in mesh.items():
        stride //= size
        if any(len({device // stride % size for device in group}) > 1 for group in groups):
            found.append(axis)
    return tuple(found)


def are_partial(groups: Groups, axes: Sequence[str], mesh: Mapping[str, int]) -> bool:
    """Return whether a group holds only some of the devices along the axes that the groups cross."""
    return any(len(group) != math.prod(mesh[a] for a in axes) for group in groups)


def cyclic_shift(pairs: Groups, mesh: Mapping[str, int]) -> int | None:
    """By how many places every device sends round one and the same axis, the shorter way; None when not so.

    From -N/2 (left out) to N/2 on an axis of N: halfway round has no shorter way and counts as forwards.
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
    """A two-dimensional dense integer attribute of MLIR."""
    import numpy as np

    return np.array(attribute).tolist()


def replica_groups(attribute: Any, meshes: Mapping[str, Any], devices: int) -> Groups | None:
    """The groups of a collective, in either form that MLIR has; None for axes that no mesh of these devices has.

    Args:
        attribute: dense numbers (JAX 0.10), or axes of a mesh (0.12), which may be parts of axes.
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
