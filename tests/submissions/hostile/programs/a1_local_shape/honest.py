"""The reference solution."""


def local_shape(shape, spec, mesh_shape):
    """Return the shape of the block that one device holds.

    Args: shape is a tuple of ints, spec a PartitionSpec, mesh_shape the size of every axis, such as {"x": 4, "y": 2}.
    Returns: a tuple of ints.
    """
    local = list(shape)
    for dim, entry in enumerate(spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        for axis in axes:
            if local[dim] % mesh_shape[axis]:
                raise ValueError(f"a dimension of {shape[dim]} does not divide evenly over {axes}")
            local[dim] //= mesh_shape[axis]
    return tuple(local)
