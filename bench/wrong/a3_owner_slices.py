import itertools
import math


def x_first(I, X, Y, device):
    """first_row: first_row_x_major"""
    return device * (I / X / Y)


def coordinates_the_other_way(I, X, Y, device):
    """first_row: first_row_x_major"""
    y, x = divmod(device, X)
    return (y * X + x) * I / (X * Y) if x < X else 0


def only_y(I, X, Y, device):
    """first_row: first_row_of_group"""
    return device % Y * (I / Y)


def block_not_row(I, X, Y, device):
    """first_row: first_row_as_block"""
    x, y = divmod(device, Y)
    return y * X + x


def all_blocks_move(I, J, X, Y):
    """reorder_bytes: reorder_everything"""
    return I * J * 4


def only_the_first_stays(I, J, X, Y):
    """reorder_bytes: reorder_one_stays"""
    return 4 * I * J * (X * Y - 1) / (X * Y)


def one_device(I, J, X, Y):
    """reorder_bytes: reorder_of_one_device"""
    return 4 * I * J / (X * Y)


def _axes(entry):
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def tuple_in_mesh_order(shape, spec, mesh_shape):
    """owner_slices: owner_in_mesh_order"""
    found = {}
    places = itertools.product(*(range(n) for n in mesh_shape.values()))
    for device, place in enumerate(places):
        parts = []
        for d, size in enumerate(shape):
            named = _axes(spec[d]) if d < len(spec) else ()
            block, blocks = 0, 1
            for axis, at in zip(mesh_shape, place):
                if axis in named:
                    block, blocks = block * mesh_shape[axis] + at, blocks * mesh_shape[axis]
            n = size // blocks
            parts.append(slice(block * n, (block + 1) * n))
        found[device] = tuple(parts)
    return found


def first_axis_fastest_in_the_mesh(shape, spec, mesh_shape):
    """owner_slices: owner_columns_first"""
    found = {}
    names = list(mesh_shape)
    for device in range(math.prod(mesh_shape.values())):
        rest, at = device, {}
        for axis in names:
            at[axis] = rest % mesh_shape[axis]
            rest //= mesh_shape[axis]
        parts = []
        for size, entry in itertools.zip_longest(shape, spec):
            block, blocks = 0, 1
            for axis in _axes(entry):
                block, blocks = block * mesh_shape[axis] + at[axis], blocks * mesh_shape[axis]
            parts.append(slice(size // blocks * block, size // blocks * (block + 1)))
        found[device] = tuple(parts)
    return found


def first_axis_fastest_in_a_tuple(shape, spec, mesh_shape):
    """owner_slices: owner_minor_first"""
    found = {}
    for device, place in enumerate(itertools.product(*(range(n) for n in mesh_shape.values()))):
        at = dict(zip(mesh_shape, place))
        parts = []
        for i, size in enumerate(shape):
            axes = _axes(spec[i]) if i < len(spec) else ()
            stride, block = 1, 0
            for axis in axes:
                block += at[axis] * stride
                stride *= mesh_shape[axis]
            n = size // stride
            parts.append(slice(block * n, block * n + n))
        found[device] = tuple(parts)
    return found


def no_bounds_where_nothing_cuts(shape, spec, mesh_shape):
    """owner_slices: owner_without_numbers"""
    found = {}
    for device, place in enumerate(itertools.product(*(range(n) for n in mesh_shape.values()))):
        at = dict(zip(mesh_shape, place))
        parts = []
        for i, size in enumerate(shape):
            axes = _axes(spec[i]) if i < len(spec) else ()
            if not axes:
                parts.append(slice(None))
                continue
            block = 0
            for axis in axes:
                block = block * mesh_shape[axis] + at[axis]
            n = size // math.prod(mesh_shape[axis] for axis in axes)
            parts.append(slice(block * n, block * n + n))
        found[device] = tuple(parts)
    return found


def dimensions_of_the_spec_only(shape, spec, mesh_shape):
    """owner_slices: owner_of_the_entries_alone"""
    found = {}
    for device, place in enumerate(itertools.product(*(range(n) for n in mesh_shape.values()))):
        at = dict(zip(mesh_shape, place))
        parts = []
        for size, entry in zip(shape, spec):
            block, blocks = 0, 1
            for axis in _axes(entry):
                block = block * mesh_shape[axis] + at[axis]
                blocks *= mesh_shape[axis]
            n = size // blocks
            parts.append(slice(block * n, block * n + n))
        found[device] = tuple(parts)
    return found
