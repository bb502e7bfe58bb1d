import re
from math import prod

import numpy as np

from l3_global_shapes import axes, parameters


def by_size(groups, mesh):
    """axes: axes_by_size
    Row: the axis is found by the group's size, so equal sizes are not told apart."""
    n, left = len(groups[0]), []
    for name, size in mesh.items():
        if n > 1 and n % size == 0:
            left.append(name)
            n //= size
    return left


def one_device_is_traffic(groups, mesh):
    """axes: axes_of_one_device
    Row: groups of one device count as traffic over all axes."""
    places = np.array([np.unravel_index(d, tuple(mesh.values())) for d in groups[0]])
    if len(groups[0]) == 1:
        return list(mesh)
    return [name for i, name in enumerate(mesh) if len(set(places[:, i])) > 1]


def differ_between_groups(groups, mesh):
    """axes: axes_between_groups
    Row: the axes along which the groups differ, not the devices of one group."""
    places = [np.unravel_index(group[0], tuple(mesh.values())) for group in groups]
    return [name for i, name in enumerate(mesh) if len({int(p[i]) for p in places}) > 1]


def first_two_devices(groups, mesh):
    """axes: axes_of_two_devices
    Row: only the first stride counts, so a group over two axes gets one."""
    if len(groups[0]) == 1:
        return []
    gap, stride, found = groups[0][1] - groups[0][0], 1, []
    for name, size in list(mesh.items())[::-1]:
        if stride <= gap < stride * size:
            found = [name]
        stride *= size
    return found


def table(sharding):
    text = re.findall(r"devices=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", sharding)
    if not text:
        return None
    shape, dims, order = ([int(n) for n in part.split(",") if n] for part in text[0])
    return np.arange(prod(dims)).reshape(dims).transpose(order or range(len(dims))).reshape(shape)


def cuts(grid, dimension, mesh, inner_first=False):
    line = np.moveaxis(grid, dimension, 0).reshape(grid.shape[dimension], -1)[:, 0]
    found, step = [], 1
    while step < len(line):
        [name] = axes([[int(line[0]), int(line[step])]], mesh)
        found.insert(len(found) if inner_first else 0, name)
        step *= mesh[name]
    return found


def by_devices(n, axes, mesh):
    return n * prod(mesh[axis] for axis in axes)


def shapes(hlo, mesh, whole=by_devices, grid_of=table, inner_first=False):
    found = []
    for shape, sharding in parameters(hlo):
        grid = grid_of(sharding)
        names = [cuts(grid, i, mesh, inner_first) if grid is not None else [] for i in range(len(shape))]
        found.append(([whole(n, of, mesh) for n, of in zip(shape, names, strict=True)], names))
    return found


def local_is_global(hlo, mesh):
    """global_shapes: local_is_whole
    Row: local shapes are taken as whole shapes."""
    return shapes(hlo, mesh, whole=lambda n, axes, mesh: n)


def times_all_devices(hlo, mesh):
    """global_shapes: times_all_devices
    Row: every cut dimension is multiplied by the number of all devices."""
    return shapes(hlo, mesh, whole=lambda n, axes, mesh: n * prod(mesh.values()) if axes else n)


def axis_by_its_size(hlo, mesh):
    """global_shapes: axes_by_the_number_of_parts
    Row: axes are found by their sizes, so equal sizes are not told apart."""
    found = []
    for shape, sharding in parameters(hlo):
        grid = table(sharding)
        parts = grid.shape[: len(shape)] if grid is not None else (1,) * len(shape)
        names = [by_matmul(n, mesh) for n in parts]
        found.append(([n * p for n, p in zip(shape, parts, strict=True)], names))
    return found


def by_matmul(n, mesh):
    for name, size in mesh.items():
        if n == size > 1:
            return [name]
    return [] if n == 1 else list(mesh)


def transpose_unread(hlo, mesh):
    """global_shapes: grid_not_transposed
    Row: T(...) is not applied: the grid's devices are read in order."""
    return shapes(hlo, mesh, grid_of=lambda sharding: table(re.sub(r"T\([\d,]+\)", "", sharding)))


def inner_axis_first(hlo, mesh):
    """global_shapes: axes_innermost_first
    Row: the inner axis of two comes first."""
    return shapes(hlo, mesh, inner_first=True)


def innermost_axis_first(groups, mesh):
    """axes: axes_innermost_named_first"""
    sizes = list(mesh.values())
    places = np.array(np.unravel_index(groups[0], sizes))
    found = [n for n, row in zip(mesh, places) if len(set(row.tolist())) > 1]
    return found[::-1]


def axes_that_the_group_shares(groups, mesh):
    """axes: axes_between_groups"""
    left = []
    for at, name in enumerate(mesh):
        inner = 1
        for size in list(mesh.values())[at + 1 :]:
            inner *= size
        if len({d // inner % mesh[name] for d in groups[0]}) == 1:
            left.append(name)
    return left


def copies_counted_as_parts(hlo, mesh):
    """global_shapes: copies_as_a_part, axes_in_mesh_order"""
    out = []
    for local, sharding in parameters(hlo):
        m = re.search(r"devices=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", sharding)
        if not m:
            out.append((local, [[] for _ in local]))
            continue
        tiles, dims = ([int(n) for n in m[i].split(",")] for i in (1, 2))
        grid = np.arange(np.prod(dims)).reshape(dims)
        if m[3]:
            grid = grid.transpose([int(n) for n in m[3].split(",")])
        grid = grid.reshape(tiles)
        names = [_names(np.moveaxis(grid, d, -1).reshape(-1, tiles[d])[0], mesh) for d in range(len(tiles))]
        shape = list(local)
        for d, n in enumerate(tiles):
            shape[min(d, len(local) - 1)] *= n
        extra = [name for more in names[len(local) - 1 :] for name in more]
        out.append((shape, names[: len(local) - 1] + [extra]))
    return out


def _names(devices, mesh):
    places = np.array(np.unravel_index(devices, list(mesh.values())))
    return [n for n, row in zip(mesh, places) if len(set(row.tolist())) > 1]


def mesh_order_in_a_dimension(hlo, mesh):
    """global_shapes: axes_in_mesh_order"""
    out = []
    for local, sharding in parameters(hlo):
        m = re.search(r"devices=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", sharding)
        if not m:
            out.append((local, [[] for _ in local]))
            continue
        tiles, dims = ([int(n) for n in m[i].split(",")] for i in (1, 2))
        order = [int(n) for n in m[3].split(",")] if m[3] else list(range(len(dims)))
        grid = np.arange(np.prod(dims)).reshape(dims).transpose(order).reshape(tiles)
        lines = [np.moveaxis(grid, d, -1).reshape(-1, tiles[d])[0] for d in range(len(local))]
        out.append(([n * t for n, t in zip(local, tiles)], [_names(line, mesh) for line in lines]))
    return out


def _where(device, mesh, reverse=False):
    at = {}
    for name in mesh if reverse else reversed(mesh):
        device, at[name] = divmod(device, mesh[name])
    return at


def _grid(sharding, transpose):
    found = re.match(r"\{devices=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", sharding)
    if not found:
        return None
    tile = [int(n) for n in found[1].split(",")]
    dims = [int(n) for n in found[2].split(",")]
    ids = np.arange(np.prod(dims)).reshape(dims)
    if found[3] and transpose:
        ids = ids.transpose([int(n) for n in found[3].split(",")])
    return ids.reshape(tile)


def _shapes(hlo, mesh, *, transpose=True, by_size=False, inner_first=False):
    result = []
    for shape, sharding in parameters(hlo):
        grid = _grid(sharding, transpose)
        if grid is None:
            result.append((list(shape), [[] for _ in shape]))
            continue
        cuts, whole = [], []
        for d, n in enumerate(shape):
            line = np.moveaxis(grid, d, 0).reshape(grid.shape[d], -1)[:, 0]
            if by_size:
                names = [a for a in mesh if mesh[a] == len(line)][:1] if len(line) > 1 else []
            else:
                at = [_where(int(i), mesh) for i in line]
                names = [a for a in mesh if len({p[a] for p in at}) > 1]
                changes = {a: sum(p[a] != q[a] for p, q in zip(at, at[1:])) for a in names}
                names.sort(key=lambda a: changes[a], reverse=inner_first)
            cuts.append(names)
            whole.append(n * len(line))
        result.append((whole, cuts))
    return result


def two_devices_of_the_first_group(groups, mesh):
    """axes: axes_of_two_devices"""
    if len(groups[0]) < 2:
        return []
    a, b = (_where(d, mesh) for d in groups[0][:2])
    return [name for name in mesh if a[name] != b[name]]


def first_axis_runs_fastest(groups, mesh):
    """axes: axes_columns_first"""
    at = [_where(d, mesh, reverse=True) for d in groups[0]]
    return [name for name in mesh if len({p[name] for p in at}) > 1]


def axis_as_large_as_the_group(groups, mesh):
    """axes: axes_by_size"""
    return [name for name, n in mesh.items() if n == len(groups[0])][:1]


def grid_as_it_is(hlo, mesh):
    """global_shapes: grid_not_transposed"""
    return _shapes(hlo, mesh, transpose=False)


def names_by_size(hlo, mesh):
    """global_shapes: axes_by_the_number_of_parts, cut_by_size"""
    return _shapes(hlo, mesh, by_size=True)


def inner_axis_first_again(hlo, mesh):
    """global_shapes: axes_innermost_first"""
    return _shapes(hlo, mesh, inner_first=True)


def matmul_of_one_device(B, K, F, X, Y, Z):
    """whole_matmul: matmul_of_one_device"""
    return 2 * B * K * F


def all_axes_multiplied(B, K, F, X, Y, Z):
    """whole_matmul: matmul_of_all_devices"""
    return 2 * B * K * F * X * Y * Z


def summed_dimension_local(B, K, F, X, Y, Z):
    """whole_matmul: matmul_of_rows_only"""
    return 2 * B * X * K * F
