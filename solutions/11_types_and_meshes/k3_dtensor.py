"""# K3 Two ways to write a layout

JAX lists for every *dimension* the mesh axes that cut it. PyTorch's DTensor lists for every *mesh axis*, in the order
of the mesh, what this axis does to the array. DTensor's entries apply from left to right. Each notation can express
layouts that the other cannot.

| | mesh dp=2, fsdp=3, tp=4, array of shape (24, 8) |
|---|---|
| JAX | `P(("dp", "fsdp"), None, unreduced={"tp"})` |
| DTensor | `["S(0)", "S(0)", "P"]` |

```
   12 rows, dp=2, fsdp=3           ("dp", "fsdp")      ("fsdp", "dp")
                                   S(0), S(0)          no list says this
   dp=0, fsdp=0 1 2                01  23  45          01  45  89
   dp=1, fsdp=0 1 2                67  89  ab          23  67  ab
```

`"S(d)"` cuts dimension d into equal parts. If earlier entries cut dimension d, `"S(d)"` cuts each of their parts. `"R"`
makes copies, and `"P"` means partial sums. In a tuple, the first axis makes the largest blocks.

**Write** two functions. `axes_of` is given.

| | given | return |
|---|---|---|
| `to_dtensor(spec, shape, mesh)` | a `PartitionSpec`; `mesh` is a dict from axis to size | one placement per mesh axis |
| `to_spec(placements, shape, mesh)` | one placement per mesh axis | the `PartitionSpec` |

Read a spec by `spec.partitions` (its entries) and `spec.unreduced` (axes with pending sums). JAX refuses to iterate
a spec with unreduced axes.

**What is checked**

| check | rule |
|---|---|
| both: cuts | axes that cut dimensions, each alone and several together |
| both: partial sums | unreduced axes |
| both: size 1 | an axis of size 1 keeps its entry and name |
| `to_dtensor`: order | `ValueError`: a tuple whose axes are not in the mesh's order |
| both: refused | `ValueError`: parts that are not equal, or an axis that is used twice |
| | a dimension that the array lacks (0 is the first; −1 is invalid), an axis that the mesh lacks |
| | a list with more or fewer placements than mesh axes; other placements, such as `"P(max)"` or `"SS(0, 3)"` |

Never return a layout that is only similar to the given one.

**Symbols.** In the questions an array has r dimensions and a mesh has k axes.

**Small case.** On the mesh above, `P(None, "tp")` is equivalent to `["R", "R", "S(1)"]`. For `P(("fsdp", "dp"))` the
function raises `ValueError`, because no list is equivalent. `["S(0)", "S(0)", "R"]` gives blocks of the right shapes,
but it cuts by dp first. So four of the six parts are on the wrong devices.

## Going further

**In real systems.** Programs convert checkpoints between the two notations. FSDP with tensor parallelism makes a tuple
that is not in the mesh's order, because tp cuts the weight before fsdp does. For this case DTensor has its own
placement, the strided shard.

**Read on.** E. Z. Yang's posts on the two views of sharding; the pages on `PartitionSpec` and on DTensor's
placements.
"""

import math

from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise

exercise = Exercise(stars=2)


@exercise.given
def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


@exercise.function(
    hints=[
        "The list has one placement for each axis of the mesh. What can an entry of the spec say that such a list cannot?",
        "Start with R everywhere. For each dimension d, check that DTensor can cut it: are its axes in the mesh's order, and does the product of their sizes divide the dimension's size? Then write S(d) at each of these axes.",
        "order = [list(mesh).index(axis) for axis in axes]; raise ValueError if order != sorted(order) or shape[dim] % parts",
    ]
)
def to_dtensor(spec, shape, mesh):
    """Return the placements of the layout that a PartitionSpec describes.

    Args: spec, perhaps with unreduced axes; shape of the whole array; mesh is a dict from axis to size, in the mesh's order.
    Returns: a list with "R", "S(d)" or "P" for each axis of the mesh. Raises ValueError if no such list describes the
    layout.
    """
    found = dict.fromkeys(mesh, "R")
    if len(spec.partitions) > len(shape) or not spec.unreduced <= mesh.keys():
        raise ValueError("more entries than dimensions, or an axis that the mesh lacks")
    found.update(dict.fromkeys(spec.unreduced, "P"))
    for dim, entry in enumerate(spec.partitions):
        axes = axes_of(entry)
        if any(found.get(axis) != "R" for axis in axes):
            raise ValueError("an axis is used twice, or the mesh lacks it")
        if list(axes) != [axis for axis in mesh if axis in axes]:
            raise ValueError("placements apply in the order of the mesh")
        if shape[dim] % math.prod(mesh[axis] for axis in axes):
            raise ValueError("the parts are not equal")
        found.update(dict.fromkeys(axes, f"S({dim})"))
    return list(found.values())


@exercise.function(
    hints=[
        "Collect for each dimension the axes that cut it, in the order of the mesh. Which placements can a spec not express?",
        "Also collect the unreduced axes. At the end, check that each dimension divides into equal parts.",
        "P(*[tuple(axes) or None for axes in cuts], unreduced=pending)",
    ]
)
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
            raise ValueError(f"no spec expresses {place}")
    if any(size % math.prod(mesh[axis] for axis in axes) for size, axes in zip(shape, cuts.values(), strict=True)):
        raise ValueError("the parts are not equal")
    return P(*map(tuple, cuts.values()), unreduced=pending)  # an empty tuple means the same as None


@exercise.number(
    points=0.5,
    unit="",
    params={"r": [2, 3, 4], "k": [3, 4, 5]},
    model="count the layouts that specs can express; tuples in different orders are different specs",
    hints=[
        "How many specs are there, and how many lists?",
        "A list chooses one of r + 2 placements for each axis. A spec also orders the axes that cut one dimension. Every other axis is unreduced or makes copies.",
        "k! / (k − j)! · C(j + r − 1, j) · 2^(k − j), summed over the number j of axes that cut dimensions, minus (r + 2)^k",
    ],
)
def specs_without_a_list(r, k):
    """An array of rank {{ r }} is on a mesh of {{ k }} axes, all larger than 1. Each axis cuts one dimension, is
    unreduced, or makes copies. Take all PartitionSpecs that describe such layouts. How many of them cannot be
    described by any list of `"R"`, `"S(d)"`, `"P"`?"""
    ordered = (math.perm(k, j) * math.comb(j + r - 1, j) * 2 ** (k - j) for j in range(k + 1))
    return sum(ordered) - (r + 2) ** k


@exercise.spec(
    points=0.5,
    axes=["dp", "fsdp", "tp"],
    params={"rows": ["fsdp", "tp"], "dim": [0, 1]},
    hints=[
        'What does `psum_scatter` do to the axis `"dp"`?',
        "psum_scatter adds over dp, so the gradient is no longer unreduced. It also cuts the given dimension of the local block by dp.",
        'if an axis already cuts the dimension, the entry becomes a tuple: that axis first, then "dp"',
    ],
)
def scattered_gradient(rows, dim):
    """On a mesh dp=2, fsdp=3, tp=4 the gradient of a weight of shape (48, 96) is `P("{{ rows }}", "{{ "tp" if rows == "fsdp" else "fsdp" }}",
    unreduced={"dp"})`. In `shard_map` each device calls `jax.lax.psum_scatter(g, "dp", scatter_dimension={{ dim }}, tiled=True)` on its part
    `g`. Which PartitionSpec does the gradient have then?"""
    entries = [rows, "tp" if rows == "fsdp" else "fsdp"]
    entries[dim] = (entries[dim], "dp")
    return P(*entries)
