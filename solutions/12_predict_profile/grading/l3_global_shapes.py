"""L3: checks, misconceptions and alternatives."""

import re
from itertools import permutations
from math import prod
from pathlib import Path

import numpy as np

from grader.exercise import Scenario
from grader.expect import Failure, expect_outcomes
from l3_global_shapes import axes, exercise, global_shapes, grid, parameters, whole_matmul

LAYOUTS = Path(__file__).with_name("hlo")
WIDE, TALL, CUBE = {"x": 2, "y": 4}, {"x": 4, "y": 2}, {"x": 2, "z": 2, "y": 2}


def case(name, mesh):
    return {"hlo": (LAYOUTS / f"{name}.txt").read_text(), "mesh": mesh}


def named(mesh, rng):
    """Rename the axes of the mesh."""
    names = rng.permutation(["dp", "tp", "pp", "x", "y", "z"])[: len(mesh)].tolist()
    return dict(zip(names, mesh.values(), strict=True))


def larger(hlo, rng):
    """Change the sizes of the parameters."""
    factor = int(rng.integers(2, 9))
    line = r"(= \w+\[)([\d,]+)(\]\S* parameter\(\d+\), sharding=)"

    def times(sizes):
        return ",".join(str(int(n) * (factor + i)) for i, n in enumerate(sizes.split(",")))

    return re.sub(line, lambda found: found[1] + times(found[2]) + found[3], hlo)


def drawn_texts(*cases):
    def drawn(rng):
        for name, mesh in cases:
            for _ in range(3):
                one = case(name, named(mesh, rng))
                yield one | {"hlo": larger(one["hlo"], rng)}

    return drawn


def fibres(mesh, over):
    """Return the groups that communicate over these axes."""
    ids = np.arange(prod(mesh.values())).reshape(tuple(mesh.values()))
    last = [i for i, axis in enumerate(mesh) if axis in over]
    rest = [i for i in range(len(mesh)) if i not in last]
    return ids.transpose(rest + last).reshape(-1, prod(ids.shape[i] for i in last)).tolist()


def drawn_groups(rng):
    for sizes in ((2, 4), (4, 2), (2, 2, 2), (3, 3), (2, 3, 4), (3, 1, 5)):
        mesh = named(dict(enumerate(sizes)), rng)
        for count in range(len(sizes) + 1):
            over = list(mesh)[: count or None][-count:] if count else []
            yield {"groups": fibres(mesh, over), "mesh": mesh}
        for axis in mesh:
            yield {"groups": fibres(mesh, [axis]), "mesh": mesh}
        yield {"groups": fibres(mesh, [next(iter(mesh)), list(mesh)[-1]]), "mesh": mesh}


grouped = exercise.cases(
    axes,
    public=[
        {"groups": [[0, 4], [1, 5], [2, 6], [3, 7]], "mesh": WIDE},
        {"groups": [[n] for n in range(8)], "mesh": WIDE},
        {"groups": [[0, 2], [1, 3], [4, 6], [5, 7]], "mesh": CUBE},
        {"groups": [[0, 1, 4, 5], [2, 3, 6, 7]], "mesh": CUBE},
    ],
    hidden=drawn_groups,
)
unequal = exercise.cases(
    global_shapes,
    public=[case("layouts-cpu", WIDE), case("layouts-tpu", TALL)],
    hidden=drawn_texts(("layouts-cpu-2", TALL), ("layouts-cpu", WIDE), ("prefetch-tpu", WIDE), ("layers-tpu-2", TALL)),
)
equal = exercise.cases(
    global_shapes,
    public=[case("layouts-cube", CUBE)],
    hidden=drawn_texts(("layouts-tpu-2", CUBE), ("layouts-cube", CUBE)),
)


@exercise.check(grouped, points=0.5, public=True)
def axes_of_groups(seen):
    """axes: groups along one axis, several axes, no axis"""
    expect_outcomes(seen)


@exercise.check(unequal, points=1, public=True, after=axes_of_groups)
def shapes_on_unequal_axes(seen):
    """global_shapes: programs on two axes of unequal sizes"""
    expect_outcomes(seen, ints=True)


@exercise.check(equal, points=0.5, public=True, after=axes_of_groups)
def shapes_on_equal_axes(seen):
    """global_shapes: three axes of equal size, which only their strides distinguish"""
    expect_outcomes(seen, ints=True)


# -- what goes wrong -------------------------------------------------------------------------------------


def replaced(hlo, right, shape=None, cut=None):
    """Return the right answer with changed shapes or axes."""
    lines = zip(parameters(hlo), right, strict=True)
    return [
        (shape(local, sharding, names) if shape else whole, cut(sharding, names) if cut else names)
        for (local, sharding), (whole, names) in lines
    ]


def tiles(sharding):
    """Return the number of parts along each dimension of the grid."""
    found = re.search(r"devices=([^ }]+)", sharding)
    return list(grid(found[1]).shape) if found else []


def axes_for_one_device(seen):
    """Require at least one axis for a group of one device, and the right axes for every larger group."""
    for args, got, due in seen.outcomes:
        alone = len(args["groups"][0]) == 1
        if not (isinstance(got.value, list) and got.value if alone else got.value == due.value):
            raise Failure("this mistake returns other axes")


def of_the_size(seen):
    """For `gives`: require an axis of the group's size. Without such an axis, require no axis, all axes, or axes that
    divide the size."""
    for args, got, _ in seen.outcomes:
        mesh, size, dividing = args["mesh"], len(args["groups"][0]), []
        same = [[axis] for axis in mesh if mesh[axis] == size]
        for axis in mesh:
            if size > 1 and size % mesh[axis] == 0:
                dividing, size = [*dividing, axis], size // mesh[axis]
        if got.value not in [*(same or [[], list(mesh)]), dividing]:
            raise Failure("this mistake returns other axes")


@exercise.misconception(of=axes, fails=axes_of_groups, gives=of_the_size, breaks="groups over one axis or several")
def axes_by_size(groups, mesh):
    """You looked for an axis with the size of the group. Two axes may have equal sizes, and a group may run over
    several axes: look at the stride from one device to the next."""
    size = len(groups[0])
    return next(([axis] for axis in mesh if mesh[axis] == size), list(mesh) if size > 1 else [])


@exercise.misconception(
    of=axes,
    fails=axes_of_groups,
    gives=axes_for_one_device,
    breaks="groups of one device: `[]`",
)
def axes_of_one_device(groups, mesh):
    """You named an axis for groups of one device. Such a group has no communication: name no axis."""
    return axes(groups, mesh) or list(mesh)[-1:]


@exercise.misconception(of=axes, fails=axes_of_groups, breaks="along which a group's devices differ")
def axes_between_groups(groups, mesh):
    """You named the axes along which the groups differ. Name the axes along which the devices of one group differ."""
    within = axes(groups, mesh)
    return [axis for axis in mesh if mesh[axis] > 1 and axis not in within]


@exercise.misconception(form_of=axes_between_groups)
def axes_that_agree(groups, mesh):
    """Like `axes_between_groups`, with axes of size 1."""
    within = axes(groups, mesh)
    return [axis for axis in mesh if axis not in within]


@exercise.misconception(of=axes, fails=axes_of_groups, breaks="in the mesh's order")
def axes_innermost_named_first(groups, mesh):
    """You named the innermost axis first. Name the axes in the mesh's order."""
    return axes(groups, mesh)[::-1]


@exercise.misconception(of=axes, fails=axes_of_groups, breaks="groups over one axis or several")
def axes_of_two_devices(groups, mesh):
    """You compared only the first two devices of a group. A group may run over several axes: compare all its
    devices."""
    return axes([groups[0][:2]], mesh)


@exercise.misconception(of=axes, fails=axes_of_groups, breaks="numbers its devices row by row")
def axes_columns_first(groups, mesh):
    """You numbered the devices with the first axis fastest. The mesh numbers them row by row, with the last axis
    fastest."""
    names = axes(groups, dict(reversed(mesh.items())))
    return [axis for axis in mesh if axis in names]


@exercise.misconception(
    of=global_shapes,
    fails=[shapes_on_unequal_axes, shapes_on_equal_axes],
    breaks="programs on two axes of unequal sizes",
)
def local_is_whole(hlo, mesh):
    """You returned the local shapes. A compiled program has the shapes of one device: multiply each dimension by the
    sizes of the axes that cut it."""
    return replaced(hlo, global_shapes(hlo, mesh), shape=lambda local, sharding, names: local)


@exercise.misconception(form_of=local_is_whole)
def local_and_uncut(hlo, mesh):
    """Like `local_is_whole`, and no axis cuts a dimension."""
    return [(shape, [[] for _ in shape]) for shape, _ in parameters(hlo)]


@exercise.misconception(
    of=global_shapes,
    fails=[shapes_on_unequal_axes, shapes_on_equal_axes],
    breaks="programs on two axes of unequal sizes",
)
def times_all_devices(hlo, mesh):
    """You multiplied every cut dimension by the number of devices. Multiply a dimension only by the sizes of the axes
    that cut it."""
    n = prod(mesh.values())
    return replaced(
        hlo,
        global_shapes(hlo, mesh),
        lambda local, sharding, names: [d * n if a else d for d, a in zip(local, names, strict=True)],
    )


def with_copies(local, sharding, names):
    """Return a whole shape in which the copies enlarge the last dimension."""
    cut = tiles(sharding)
    extra = cut[-1] if "replicate" in sharding and cut else 1
    whole = [d * n for d, n in zip(local, cut, strict=False)] or list(local)
    return [*whole[:-1], whole[-1] * extra]


@exercise.misconception(
    of=global_shapes, fails=[shapes_on_unequal_axes, shapes_on_equal_axes], breaks="which runs over copies"
)
def copies_as_a_part(hlo, mesh):
    """You also multiplied by the dimension of copies. With `last_tile_dim_replicate` the last dimension of the grid
    cuts nothing."""
    return replaced(hlo, global_shapes(hlo, mesh), with_copies)


@exercise.misconception(form_of=copies_as_a_part)
def copies_as_a_cut(hlo, mesh):
    """Like `copies_as_a_part`, and the axes of copies cut the last dimension."""

    def cut(sharding, names):
        used = {axis for own in names for axis in own}
        copies = [axis for axis in mesh if axis not in used] if "replicate" in sharding and tiles(sharding) else []
        return [*names[:-1], names[-1] + copies]

    return replaced(hlo, global_shapes(hlo, mesh), with_copies, cut)


def untransposed(hlo):
    """Return the program without T(...) in its shardings."""
    return re.sub(r"(<=\[[\d,]+\])T\([\d,]+\)", r"\1", hlo)


def by_steps(line, mesh):
    """Return the axes of a line of devices, found by the steps between neighbours, the outer axis first."""
    found, step = [], 1
    while step < len(line) and len(found) < len(mesh):
        name, *_ = axes([[int(line[0]), int(line[step])]], mesh)
        found, step = [name, *found], step * mesh[name]
    return found


def axes_of_the_plain_grid(seen):
    """For `gives`: for each grid with T(...), require the axes that the grid without T(...) has."""
    for args, got, want in seen.outcomes:
        mesh, plain = args["mesh"], untransposed(args["hlo"])
        every = zip(parameters(args["hlo"]), got.value, want.value, global_shapes(plain, mesh), strict=True)
        for (_, sharding), found, right, (_, read) in every:
            if "T(" not in sharding:
                same = [list(part) for part in found] == [list(part) for part in right]
            else:
                devices = grid(re.search(r"devices=([^ }]+)", sharding)[1].split("T")[0])
                cut = range(len(right[1]))
                lines = [np.moveaxis(devices, i, 0).reshape(devices.shape[i], -1)[:, 0] for i in cut]
                same = all(
                    names in (of, by_steps(line, mesh)) or set(names) == set(axes([line], mesh))
                    for names, of, line in zip(found[1], read, lines, strict=True)
                )
            if not same:
                raise Failure("this mistake returns other shapes or axes")


@exercise.misconception(
    of=global_shapes,
    fails=[shapes_on_unequal_axes, shapes_on_equal_axes],
    gives=axes_of_the_plain_grid,
    breaks="is a grid of devices",
)
def grid_not_transposed(hlo, mesh):
    """You read the grid's devices in their order. T(1,0) transposes the grid before the array is cut."""
    return global_shapes(untransposed(hlo), mesh)


@exercise.misconception(of=global_shapes, fails=shapes_on_equal_axes, breaks="only their strides differ")
def cut_by_size(hlo, mesh):
    """You found axes by their sizes. These axes have equal sizes. Distinguish them by the stride from one device to the
    next in the grid."""

    def cut(sharding, names):
        left, found = list(mesh), []
        for own in names:
            mine = []
            for axis in own:
                pick = next(a for a in left if mesh[a] == mesh[axis])
                left.remove(pick)
                mine.append(pick)
            found.append(mine)
        return found

    return replaced(hlo, global_shapes(hlo, mesh), cut=cut)


def by_parts(hlo, mesh, right, other):
    """Return the right shapes. The axis of a cut dimension is the first axis with the dimension's number of parts, or
    ``other`` if no axis has this number."""

    def cut(sharding, names):
        first = {size: [axis] for axis, size in reversed(mesh.items())}
        parts = tiles(sharding)[: len(names)] or [1] * len(names)
        return [first.get(n, other) if n > 1 else [] for n in parts]

    return replaced(hlo, right, cut=cut)


@exercise.misconception(
    of=global_shapes, fails=[shapes_on_unequal_axes, shapes_on_equal_axes], breaks="only their strides differ"
)
def axes_by_the_number_of_parts(hlo, mesh):
    """You took the axis whose size is the number of parts of a dimension. Axes of equal size have equal numbers of parts, and two axes
    may cut a dimension in either order. Find each axis by the stride from one device to the next in the grid."""

    return by_parts(hlo, mesh, global_shapes(hlo, mesh), list(mesh))


@exercise.misconception(form_of=axes_by_the_number_of_parts)
def axes_by_the_number_of_parts_or_none(hlo, mesh):
    """Like `axes_by_the_number_of_parts`, but a dimension has no axis if no axis has its number of parts."""
    return by_parts(hlo, mesh, global_shapes(hlo, mesh), [])


@exercise.misconception(
    of=global_shapes, fails=[shapes_on_unequal_axes, shapes_on_equal_axes], breaks="the outer axis comes first"
)
def axes_in_mesh_order(hlo, mesh):
    """You listed the axes of a dimension in the mesh's order. P(("y", "x")) is not P(("x", "y")): the axis that changes
    last along the grid is the outer axis."""
    return replaced(
        hlo, global_shapes(hlo, mesh), cut=lambda sharding, names: [[a for a in mesh if a in own] for own in names]
    )


@exercise.misconception(
    of=global_shapes, fails=[shapes_on_unequal_axes, shapes_on_equal_axes], breaks="the outer axis comes first"
)
def axes_innermost_first(hlo, mesh):
    """You listed the innermost axis first. A PartitionSpec names the outer axis first."""
    return replaced(hlo, global_shapes(hlo, mesh), cut=lambda sharding, names: [own[::-1] for own in names])


@exercise.misconception(of=whole_matmul)
def matmul_of_one_device(X, Y, **rest):
    """You counted the FLOPs of one device. x cuts the rows of the matmul, and y cuts K."""
    return whole_matmul(X=1, Y=1, **rest)


@exercise.misconception(of=whole_matmul)
def matmul_of_all_devices(Z, X, **rest):
    """You multiplied by the number of all devices. Devices along z repeat a matmul, because the last dimension of the
    grid runs over copies."""
    return whole_matmul(Z=1, X=X * Z, **rest)


@exercise.misconception(of=whole_matmul)
def matmul_of_rows_only(Y, **rest):
    """You used the whole rows but the local K. The all-reduce over y shows that y cuts K, so each device has a partial
    sum."""
    return whole_matmul(Y=1, **rest)


@exercise.misconception(of=whole_matmul)
def matmul_of_contraction_only(X, **rest):
    """You used the whole K but the local rows. The first dimension of the grid cuts the rows by x."""
    return whole_matmul(X=1, **rest)


@exercise.misconception(of=whole_matmul)
def matmul_without_additions(**params):
    """You counted only multiplications. Count an addition for each multiplication."""
    return whole_matmul(**params) / 2


exercise.scenario(
    whole_matmul,
    lambda B, K, F, X, Y, Z: Scenario(
        mesh={"x": X, "y": Y, "z": Z}, arrays=[((B * X, K * Y), ("x", "y")), ((K * Y, F), ("y", None))]
    ),
)


# -- in other styles ------------------------------------------------------------------------------------


@exercise.alternative(of=axes)
def axes_by_stride(groups, mesh):
    """Use arithmetic on device numbers: a group uses an axis if the coordinates of its devices along this axis
    differ."""
    found, stride = [], 1
    for axis, size in reversed(mesh.items()):
        if any(device // stride % size != groups[0][0] // stride % size for device in groups[0]):
            found.append(axis)
        stride *= size
    return found[::-1]


@exercise.alternative(of=global_shapes)
def shapes_by_trial(hlo, mesh):
    """For each dimension, try every order of axes until one gives the devices along that dimension of the grid."""
    ids = np.arange(prod(mesh.values())).reshape(tuple(mesh.values()))
    answer = []
    for local, sharding in parameters(hlo):
        names = [[] for _ in local]
        if sharding != "{replicated}":
            devices = grid(sharding[len("{devices=") : -1].split(" ")[0])
            for i in range(len(local)):
                line = devices[tuple(slice(None) if j == i else 0 for j in range(devices.ndim))].tolist()
                for n in range(len(mesh) + 1):
                    for some in permutations(mesh, n):
                        at = tuple(slice(None) if axis in some else 0 for axis in mesh)
                        kept = [axis for axis in mesh if axis in some]
                        made = ids[at].transpose([kept.index(axis) for axis in some]).reshape(-1).tolist()
                        if made == line and all(mesh[axis] > 1 for axis in some):
                            names[i] = list(some)
        answer.append([[d * prod(mesh[a] for a in own) for d, own in zip(local, names, strict=True)], names])
    return answer
