"""# A1 Heat on a grid that is cut both ways

A device that holds a block of a grid needs its neighbours' edges for each step: the halo. On a grid that is cut along two axes a block has
four neighbours. For this stencil the corners are not needed.

```
            up            each device sends its top row up, its bottom row
          +----+          down, its left column left, its right column right
     left |    | right
          +----+
           down
```

**Write** `heat(u, *, mesh, k)`, one step on a grid that is closed both ways (after the last row comes the first):
`out[i, j] = u[i, j] + k (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] - 4 u[i, j])`. The grader runs it three times, each time on its last result.

| | shape | layout |
|---|---|---|
| `u` | float32[I, J] | `P("y", "x")` |
| returns | float32[I, J] | `P("y", "x")` |

**What is checked**

| check | rule |
|---|---|
| value | after each of three steps |
| communication | two permutes over y and two over x, one edge each way, and no other collective |

**Symbols.** I, J: rows and columns. k: a number. Axis y cuts rows, axis x cuts columns.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, like, normal
from grader.expect import expect_close, expect_collectives, expect_spec, expect_traffic, needed

exercise = Exercise(meshes=[{"y": 2, "x": 4}, {"y": 4, "x": 2}])
GRID = exercise.given(P("y", "x"))


@exercise.task(
    hints=[
        "Which rows and columns of other devices does a block need?",
        "ppermute with the pairs (i, (i + 1) % n) brings the edge of the device before; the pairs (i, (i - 1) % n) the other one.",
        "above = jax.lax.ppermute(block[-1:], 'y', [(i, (i + 1) % n) for i in range(n)]), with n = jax.lax.axis_size('y').",
    ]
)
def heat(u, *, mesh, k):
    """One step of the heat equation on a grid that is closed both ways.

    Args: u is float32[I, J] sharded P('y', 'x'); mesh has the axes 'y' and 'x'; k is a number.
    Returns: float32[I, J] sharded P('y', 'x').
    """

    def local(block):
        padded = around(block)
        rows = padded[:-2, 1:-1] + padded[2:, 1:-1]
        columns = padded[1:-1, :-2] + padded[1:-1, 2:]
        return block + k * (rows + columns - 4 * block)

    return jax.shard_map(local, mesh=mesh, in_specs=GRID, out_specs=GRID)(u)


def edge(part, axis, step):
    """The part of the device that is `step` places before, along an axis."""
    n = jax.lax.axis_size(axis)
    return jax.lax.ppermute(part, axis, [(i, (i + step) % n) for i in range(n)])


def around(block):
    """The block with one row and one column of its neighbours on each side, without corners."""
    rows = jnp.concatenate([edge(block[-1:], "y", 1), block, edge(block[:1], "y", -1)])
    left, right = edge(block[:, -1:], "x", 1), edge(block[:, :1], "x", -1)
    return jnp.concatenate([jnp.pad(left, ((1, 1), (0, 0))), rows, jnp.pad(right, ((1, 1), (0, 0)))], axis=1)


SIZES, HIDDEN = {"I": 12, "J": 20}, {"I": 20, "J": 28}
steps = exercise.call(
    heat,
    u=normal("I", "J", spec=GRID),
    returns=like("u"),
    steps=3,
    static={"k": 0.125},
    hidden_static={"k": 0.2},
    dims=SIZES,
    hidden_dims=HIDDEN,
)


@exercise.check(steps, points=2, public=True)
def heat_value(seen):
    """heat: three steps, each on the result of the one before"""
    for step in seen.steps:
        u = step.u
        around = [np.roll(u, shift, axis) for shift in (1, -1) for axis in (0, 1)]
        expect_close(step.out, u + seen.k * (sum(around) - 4 * u), terms=6)


@exercise.check(steps, points=1, after=heat_value)
def heat_layout(seen):
    """heat: cut as before"""
    expect_spec(seen.out, GRID)


@exercise.check(steps, points=1, after=heat_layout)
def heat_traffic(seen):
    """heat: four permutes, one edge each way"""
    expect_collectives(seen, permute={"y": 2, "x": 2})
    rows, columns = seen.dims["I"] // seen.mesh["y"], seen.dims["J"] // seen.mesh["x"]
    expect_traffic(seen, at_most=needed(2 * 4 * (rows + columns), 4 * 4 * rows * columns))  # wrong: whole blocks


@exercise.code(
    of=heat,
    points=1,
    rubric={
        "names": (0.5, "names and shapes are clear: a reader sees which edge goes where"),
        "once": (0.5, "the exchange along an axis is written once, not copied for the other axis"),
    },
    title="Is the code of heat clear?",
)
def heat_clear():
    """Write `heat` so that another student understands it without your help."""
    return "One function exchanges the edges along an axis, and is called for each axis. Few comments, which say why."


@exercise.misconception(fails=heat_value, breaks="after each of three steps")
def heat_of_blocks(u, *, mesh, k):
    """Each block was closed on itself: its edges need the neighbours' edges."""

    def local(block):
        around = [jnp.roll(block, shift, axis) for shift in (1, -1) for axis in (0, 1)]
        return block + k * (sum(around) - 4 * block)

    return jax.shard_map(local, mesh=mesh, in_specs=GRID, out_specs=GRID)(u)


@exercise.misconception(fails=heat_value)
def heat_open(u, *, mesh, k):
    """The first and last devices got zeros: a device that no pair names as a target receives zeros, and no error."""

    def line(part, axis, step):
        n = jax.lax.axis_size(axis)
        return jax.lax.ppermute(part, axis, [(i, i + step) for i in range(n) if 0 <= i + step < n])

    def local(block):
        up = jnp.concatenate([line(block[-1:], "y", 1), block[:-1]])
        down = jnp.concatenate([block[1:], line(block[:1], "y", -1)])
        left = jnp.concatenate([line(block[:, -1:], "x", 1), block[:, :-1]], axis=1)
        right = jnp.concatenate([block[:, 1:], line(block[:, :1], "x", -1)], axis=1)
        return block + k * (up + down + left + right - 4 * block)

    return jax.shard_map(local, mesh=mesh, in_specs=GRID, out_specs=GRID)(u)


@exercise.misconception(fails=heat_value)
def heat_other_way(u, *, mesh, k):
    """Each edge came from the wrong side: a block's last row belongs above the block of the next device."""

    def local(block):
        up = jnp.concatenate([edge(block[-1:], "y", -1), block[:-1]])
        down = jnp.concatenate([block[1:], edge(block[:1], "y", 1)])
        left = jnp.concatenate([edge(block[:, -1:], "x", -1), block[:, :-1]], axis=1)
        right = jnp.concatenate([block[:, 1:], edge(block[:, :1], "x", 1)], axis=1)
        return block + k * (up + down + left + right - 4 * block)

    return jax.shard_map(local, mesh=mesh, in_specs=GRID, out_specs=GRID)(u)


@exercise.misconception(fails=heat_traffic, breaks="and no other collective")
def heat_gathered(u, *, mesh, k):
    """You gathered the whole grid: a block needs one edge of each neighbour."""

    def local(block):
        whole = jax.lax.all_gather(jax.lax.all_gather(block, "x", axis=1, tiled=True), "y", axis=0, tiled=True)
        around = [jnp.roll(whole, shift, axis) for shift in (1, -1) for axis in (0, 1)]
        out = whole + k * (sum(around) - 4 * whole)
        start = jax.lax.axis_index("y") * block.shape[0], jax.lax.axis_index("x") * block.shape[1]
        return jax.lax.dynamic_slice(out, start, block.shape)

    return jax.shard_map(local, mesh=mesh, in_specs=GRID, out_specs=GRID, check_vma=False)(u)


@exercise.misconception(fails=heat_traffic)
def heat_whole_blocks(u, *, mesh, k):
    """You sent whole blocks: the edge is enough."""

    def local(block):
        up = jnp.concatenate([edge(block, "y", 1)[-1:], block[:-1]])
        down = jnp.concatenate([block[1:], edge(block, "y", -1)[:1]])
        left = jnp.concatenate([edge(block, "x", 1)[:, -1:], block[:, :-1]], axis=1)
        right = jnp.concatenate([block[:, 1:], edge(block, "x", -1)[:, :1]], axis=1)
        return block + k * (up + down + left + right - 4 * block)

    return jax.shard_map(local, mesh=mesh, in_specs=GRID, out_specs=GRID)(u)


@exercise.misconception(fails=heat_layout)
def heat_on_every_device(u, *, mesh, k):
    """The result is whole on every device: keep the layout of the argument."""
    out = heat(u, mesh=mesh, k=k)
    return jax.lax.with_sharding_constraint(out, jax.sharding.NamedSharding(mesh, P()))
