"""# B3 Every collective backwards

A collective is a linear map T from the blocks u of all devices to new blocks. Its backward pass is the transpose Tᵀ. Tᵀ
maps the cotangent blocks y of all devices to new cotangent blocks:

    ⟨T u, y⟩ = ⟨u, Tᵀ y⟩    with ⟨a, b⟩ summed over all devices and elements

```
   all-gather, x=3      forward                   backward
                        x0: a                     x0: p q r       x0: p+s+v
                        x1: b  --> a b c          x1: s t u  -->  x1: q+t+w
                        x2: c      everywhere     x2: v w z       x2: r+u+z
```

**Write** five transposes by hand, as bodies over mesh axis `x`. The grader wraps them in `shard_map` with
`check_vma=False`, so the devices' cotangents may differ.

| forward pass, on the block of one device | body | cotangent in → out, float32 |
|---|---|---|
| all-gather of `A[I_X, J]` along dimension 0 | `all_gather_t(y)` | [I, J] → [I/X, J] |
| reduce-scatter of `A[I, J]{U_X}` to `A[I_X, J]` | `reduce_scatter_t(y)` | [I/X, J] → [I, J] |
| all-reduce | `all_reduce_t(y)` | [I, J] → [I, J] |
| all-to-all `A[I_X, J] → A[I, J_X]` | `all_to_all_t(y)` | [I, J/X] → [I/X, J] |
| device i sends to i + 1; device 0 receives zeros | `shift_t(y)` | [I, J] → [I, J] |

**What is checked**, for each body

| check | rule |
|---|---|
| value | ⟨T u, y⟩ = ⟨u, Tᵀ y⟩ |
| communication | one collective over x, of the right kind, and no other |
| your own collective | you call the collective yourself; you do not let `jax.vjp`, `jax.linear_transpose` or a gradient call it |

- If the forward pass copies an element to many devices, the element gets the *sum* of the copies' cotangents.
- If the forward pass adds an element to other elements, the element gets the cotangent of the sum, unchanged.
- If the forward pass moves an element, its cotangent comes back from the element's new device.

**Symbols.** I, J: rows and columns. X: devices along x. `{U_X}`: partial sums over x. D, F: dimensions of a weight.

**Small case.** Two devices each hold one number of u = (3, 5) and of y = (10, 1). The all-reduce gives (8, 8): ⟨T u, y⟩
= 80 + 8 = 88. Its transpose gives (11, 11): ⟨u, Tᵀ y⟩ = 33 + 55 = 88. If the transpose took the mean of the cotangents,
(5.5, 5.5), ⟨u, Tᵀ y⟩ would be 44.

## Going further

**JAX.** `jax.vjp` does this for you. With `check_vma=True` JAX knows more: the result of `psum` is equal on all
devices, so it has *one* cotangent, not X of them. Then the transpose is a copy, without any collective.

**In real systems.** FSDP gathers weights in the forward pass and reduce-scatters gradients in the backward pass. In the
backward pass, a pipeline's shift goes in the opposite direction.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; E. Z. Yang, "The JAX sharding type
system".
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 8}, {"x": 3}], stars=2)


@exercise.body(
    out_specs=P("x"),
    hints=[
        "A shard was copied to every device. Each copy has a cotangent. How does the owner get one cotangent from these X cotangents?",
        "The owner adds the cotangents of its own rows. One collective adds blocks and leaves each device its part of the sum.",
        "jax.lax.psum_scatter(y, 'x', scatter_dimension=0, tiled=True)",
    ],
)
def all_gather_t(y):
    """The transpose of jax.lax.all_gather(a, 'x', axis=0, tiled=True): [I, J] -> [I/X, J]."""
    return jax.lax.psum_scatter(y, "x", scatter_dimension=0, tiled=True)


@exercise.body(
    out_specs=P("x"),
    hints=[
        "Row block i of every device was added into device i's result. Which cotangent does this block get, and from which device?",
        "Row block i gets device i's cotangent, unchanged. So every device needs the cotangents of all devices, in order.",
        "jax.lax.all_gather(y, 'x', axis=0, tiled=True)",
    ],
)
def reduce_scatter_t(y):
    """The transpose of jax.lax.psum_scatter(a, 'x', scatter_dimension=0, tiled=True): [I/X, J] -> [I, J]."""
    return jax.lax.all_gather(y, "x", axis=0, tiled=True)


@exercise.body(
    out_specs=P("x"),
    hints=[
        "A device's block was added into the result of every device. Each of these results has a cotangent.",
        "Each device gets the sum of the cotangents of all devices.",
        "jax.lax.psum(y, 'x')",
    ],
)
def all_reduce_t(y):
    """The transpose of jax.lax.psum(a, 'x'): [I, J] -> [I, J]."""
    return jax.lax.psum(y, "x")


@exercise.body(
    out_specs=P("x"),
    hints=[
        "Nothing is added or copied here: every chunk moves to one other device. Where must its cotangent go?",
        "The cotangent goes back to the chunk's device. Swap the dimension that was split and the dimension that was joined.",
        "jax.lax.all_to_all(y, 'x', split_axis=0, concat_axis=1, tiled=True)",
    ],
)
def all_to_all_t(y):
    """The transpose of jax.lax.all_to_all(a, 'x', split_axis=1, concat_axis=0, tiled=True): [I, J/X] -> [I/X, J]."""
    return jax.lax.all_to_all(y, "x", split_axis=0, concat_axis=1, tiled=True)


@exercise.body(
    out_specs=P("x"),
    hints=[
        "Device i's block went to i + 1. Which device sends back the cotangent of this block? What does the last device's block get?",
        "Reverse every pair (source, target). The last device sent nothing, so the cotangent of its block is zero.",
        "jax.lax.ppermute(y, 'x', [(i + 1, i) for i in range(jax.lax.axis_size('x') - 1)])",
    ],
)
def shift_t(y):
    """The transpose of jax.lax.ppermute(a, 'x', [(i, i + 1) for i in range(X - 1)]): [I, J] -> [I, J]."""
    return jax.lax.ppermute(y, "x", [(i + 1, i) for i in range(jax.lax.axis_size("x") - 1)])


@exercise.number(
    points=0.5,
    unit="MB",
    params={"D": [4096, 6144, 8192], "F": [14336, 20480, 28672], "X": [4, 8, 32]},
    model="one-way ring: X - 1 steps; 1 MB is 10^6 bytes",
    hints=[
        "Which collective is the transpose of an all-gather?",
        "The transpose is a reduce-scatter of the cotangent of all of W. This cotangent has 4 bytes per number.",
        "bytes that a device sends = (bytes of the float32 cotangent) · (X − 1) / X",
    ],
)
def fsdp_backward_bytes(D, F, X):
    """FSDP on {{ X }} devices: the forward pass gathers `W[D_X, F]` in bfloat16, D={{ D }}, F={{ F }}. The cotangent of `W` is
    float32. How many MB does each device send in the transpose of this all-gather?"""
    return 4 * D * F * (X - 1) / X
