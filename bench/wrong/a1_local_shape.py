import math

HBM = {"v5e": 8.1e11, "v5p": 2.8e12}


def divided_with_a_slash(shape, spec, mesh_shape):
    """local_shape: local_shape_in_floats"""
    sizes = list(shape)
    for i, entry in enumerate(spec):
        names = [] if entry is None else [entry] if isinstance(entry, str) else list(entry)
        cut = math.prod(mesh_shape[name] for name in names)
        if sizes[i] % cut != 0:
            raise ValueError("does not divide")
        sizes[i] = sizes[i] / cut
    return tuple(sizes)


def zipped_with_the_spec(shape, spec, mesh_shape):
    """local_shape: local_shape_of_entries"""
    result = []
    for size, entry in zip(shape, spec):
        for name in () if entry is None else (entry,) if isinstance(entry, str) else entry:
            if size % mesh_shape[name]:
                raise ValueError
            size //= mesh_shape[name]
        result.append(size)
    return tuple(result)


def never_refused(shape, spec, mesh_shape):
    """local_shape: local_shape_rounded"""
    sizes = list(shape)
    for i, entry in enumerate(spec):
        for name in [entry] if isinstance(entry, str) else entry or []:
            sizes[i] //= mesh_shape[name]
    return tuple(sizes)


def rounded_up(shape, spec, mesh_shape):
    """local_shape: local_shape_rounded"""
    sizes = list(shape)
    for i, entry in enumerate(spec):
        for name in [entry] if isinstance(entry, str) else entry or []:
            sizes[i] = -(-sizes[i] // mesh_shape[name])
    return tuple(sizes)


def whole_mesh(shape, spec, mesh_shape):
    """local_shape: local_shape_by_every_axis"""
    devices = 1
    for size in mesh_shape.values():
        devices *= size
    out = []
    for i, size in enumerate(shape):
        named = i < len(spec) and spec[i] is not None
        if named and size % devices:
            raise ValueError("uneven")
        out.append(size // devices if named else size)
    return tuple(out)


def all_three_axes(chip, I, J, X, Y, Z):
    """local_load_time: load_cut_by_z"""
    return 4 * I * J / (X * Y * Z) / HBM[chip]


def rows_by_x(chip, I, J, X, Y, Z):
    """local_load_time: load_cut_by_x_only"""
    return 4 * (I / X) * J / HBM[chip]
