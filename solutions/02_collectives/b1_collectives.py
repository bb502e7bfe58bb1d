"""# B1 The four collectives

**Task.** Write four bodies for `shard_map`: functions of the block of one device. They are wrapped for you, with
`check_vma=False`. The mesh axis is `x`; gathered arrays have two or three dimensions.

| body | block you get | block you return | what the group does |
|---|---|---|---|
| `all_gather_body(a, dim)` | a shard of `A`, cut along `dim` | the whole `A` | join the shards |
| `all_reduce_body(a)` | one partial sum, `A{U_X}` | the whole `A` | add |
| `reduce_scatter_body(a)` | one partial sum, `A[I, J]{U_X}` | `A[I, J_X]` | add, keep your columns |
| `all_to_all_body(a)` | a shard of `A[I_X, J]` | a shard of `A[I, J_X]` | trade |

**Budget.** In each body one collective over x, of the kind its name says, and no other.

```
      all-gather   all-reduce   reduce-scatter   all-to-all
  x0  a -> abc     p -> p+q+r   p -> (p+q+r)_0   a0 a1 a2 -> a0 b0 c0
  x1  b -> abc     q -> p+q+r   q -> (p+q+r)_1   b0 b1 b2 -> a1 b1 c1
  x2  c -> abc     r -> p+q+r   r -> (p+q+r)_2   c0 c1 c2 -> a2 b2 c2
```

**Small case.** x=4, a partial sum of [2, 40] on each device. The reduce-scatter returns [2, 10] and sends 3/4 of the
block; the all-reduce returns [2, 40] and sends twice that, because it is a reduce-scatter and then an all-gather. The
all-to-all sends a chunk only as far as the one device that wants it: on a ring, a quarter of an all-gather's time.

**In real systems.** All-gather: FSDP weights. All-reduce: data-parallel gradients. Reduce-scatter: ZeRO gradients.
All-to-all: tokens on their way to experts.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; `jax.lax` parallel operators.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_to_all_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8}], stars=1)


@exercise.body(
    out_specs=P(),
    hints=[
        "Joining shards is one call of jax.lax.",
        "jax.lax.all_gather needs to know the axis of the mesh, the dimension, and that shards are joined, not stacked.",
        "jax.lax.all_gather(a, 'x', axis=dim, tiled=True)",
    ],
)
def all_gather_body(a, *, dim):
    """A shard of A, cut along `dim` over x -> the whole A."""
    return jax.lax.all_gather(a, "x", axis=dim, tiled=True)


@exercise.body(
    out_specs=P(), hints=["Which function of jax.lax adds?", "A parallel sum over the axis.", "jax.lax.psum(a, 'x')"]
)
def all_reduce_body(a):
    """A partial sum [I, J] on every device of x -> their sum [I, J]."""
    return jax.lax.psum(a, "x")


@exercise.body(
    out_specs=P(None, "x"),
    hints=[
        "One function of jax.lax adds and cuts at once.",
        "jax.lax.psum_scatter; its scatter_dimension is 0 unless you say otherwise, and it has `tiled` too.",
        "jax.lax.psum_scatter(a, 'x', scatter_dimension=1, tiled=True)",
    ],
)
def reduce_scatter_body(a):
    """A partial sum [I, J] on every device of x -> their sum [I, J_X]."""
    return jax.lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True)


@exercise.body(
    out_specs=P(None, "x"),
    hints=[
        "Every device sends a piece of its block to every other. Along which dimension do you cut, along which join?",
        "jax.lax.all_to_all: split the dimension that shall be cut, concatenate the one that was.",
        "jax.lax.all_to_all(a, 'x', split_axis=1, concat_axis=0, tiled=True)",
    ],
)
def all_to_all_body(a):
    """A shard of A[I_X, J] -> a shard of A[I, J_X]."""
    return jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=0, tiled=True)


@exercise.number(
    points=1,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 6144, 8192], "J": [8192, 14336], "X": [8, 16]},
    model="ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both directions of one link",
)
def all_to_all_on_ring(chip, I, J, X):
    """`A` is bfloat16[{{ I }}, {{ J }}] on a ring of {{ X }} {{ chip }} chips. How long does `A[I_X, J] → A[I, J_X]`
    take?"""
    return all_to_all_time(2 * I * J, X, chip)
