"""An honest program."""

import math

from jax.sharding import PartitionSpec as P


def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def to_dtensor(spec, shape, mesh):
    """Return the placements of the layout that a PartitionSpec describes.

    Args: spec, perhaps with unreduced axes; shape of the whole array; mesh is a dict from axis to size, in the mesh's order.
    Returns: a list with "R", "S(d)" or "P" for each axis of the mesh. Raises ValueError if no such list describes the
    layout.
    """
    found = dict.fromkeys(mesh, "R")
    if len(spec.partitions) > len(shape) or not spec.unreduced <= mesh.keys():
        raise ValueError("more entries than dimensions, or an axis that the mesh has not")
    found.update(dict.fromkeys(spec.unreduced, "P"))
    for dim, entry in enumerate(spec.partitions):
        axes = axes_of(entry)
        if any(found.get(axis) != "R" for axis in axes):
            raise ValueError("an axis is used twice, or the mesh has it not")
        if list(axes) != [axis for axis in mesh if axis in axes]:
            raise ValueError("placements are carried out in the order of the mesh")
        if shape[dim] % math.prod(mesh[axis] for axis in axes):
            raise ValueError("the parts are not equal")
        found.update(dict.fromkeys(axes, f"S({dim})"))
    return list(found.values())


def to_spec(placements, shape, mesh):
    """Return the PartitionSpec of the layout that a list of placements describes.

    Args: placements, one for each axis of the mesh; shape and mesh as in to_dtensor.
    Returns: a PartitionSpec. Raises ValueError if no spec describes the layout.
    """
    cuts = {f"S({dim})": [] for dim in range(len(shape))}
    pending = set()
    for axis, place in zip(mesh, placements, strict=True):
        if place == "P":
            pending.add(axis)
        elif place in cuts:
            cuts[place].append(axis)
        elif place != "R":
            raise ValueError(f"no spec says {place}")
    if any(size % math.prod(mesh[axis] for axis in axes) for size, axes in zip(shape, cuts.values(), strict=True)):
        raise ValueError("the parts are not equal")
    return P(*map(tuple, cuts.values()), unreduced=pending)  # P treats an empty tuple as None
