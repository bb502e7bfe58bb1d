"""# A6 Auto, Explicit, Manual

JAX has three modes in which a program says where arrays live. You write one matmul in each mode and see where the
collective comes from.

```
   A[I_X, J] · B[J, K_Y]  =  C[I_X, K_Y]  --all-gather over y--> C[I_X, K]
```

| mode | your function sees | the sharding of a value | why there is a collective |
|---|---|---|---|
| Auto | whole arrays | the compiler chooses it, except at `with_sharding_constraint` | two constraints name different layouts |
| Explicit | whole arrays | part of its type: `float32[24@x,40]` | you wrote `reshard` |
| Manual | one device's block | `in_specs` and `out_specs` say it | you wrote the collective |

**Write** `matmul_auto`, `matmul_explicit` and `matmul_manual` (with `jax.shard_map`). For `matmul_explicit` the grader
sets a mesh with Explicit axes.

| | shape | layout |
|---|---|---|
| `a` | float32[I, J] | `P("x", None)` |
| `b` | float32[J, K] | `P(None, "y")` |
| returns | float32[I, K] | `P("x", None)` |

**What is checked**, for each function

| check | rule, per device | small case |
|---|---|---|
| C equals A @ B | | |
| one all-gather of C over y gives C[I_X, K] | no other collective; a device sends at most (Y − 1) blocks of `C[I_X, K_Y]` | 480 bytes |
| 1/XY of the FLOPs | at most 2·I·J·K / (X·Y) | 7680 FLOPs |
| Auto, Explicit: the compiler inserts the all-gather, you write none | | |
| Manual: you write the all-gather in `shard_map`, the compiler adds nothing | | |

In Auto mode, a constraint says where a value lives, not how the value gets there. If you ask only for `C[I_X, K]`, the
compiler gathers `B`. So constrain `a @ b` to `C[I_X, K_Y]` first. In Explicit mode the types of `a`, `b` and `a @ b`
say how these arrays are cut. In this mode a constraint to another layout is an error: use `reshard` to move a value.

**Symbols.** I, J, K: dimensions. X, Y: sizes of the mesh axes.

**Small case.** I=24, J=32, K=40, float32, x=4, y=2. A block of `C[I_X, K_Y]` is [6, 20]: 480 bytes. If the compiler
gathers `B`, each device sends its block [32, 20], 2560 bytes, and then spends 15,360 FLOPs.

## Going further

**JAX.** In Explicit mode JAX derives the type of each result from the types of the operands. If it cannot, JAX raises
an error at the line of the operation. A collective also appears where you pass `out_sharding`, or where a matmul sums
over a dimension that is cut in only one of its operands. `jax.typeof(c)` shows the type of a value. If you build a mesh
yourself, give it Explicit axes: for Auto axes, `reshard` raises an error.

**In real systems.** One model can mix the modes: Auto for most of the model, Explicit where an unexpected collective is
expensive, Manual for kernels.

**Read on.** JAX documentation, "Distributed arrays and automatic parallelization", "Explicit sharding", "Manual
parallelism with shard_map"; E. Z. Yang, "The JAX sharding type system".
"""

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}], stars=2)


@exercise.task(
    hints=[
        "Multiply first, then state the layout that C must have. Which layout does A @ B have before anything moves?",
        "Write two constraints, one after the other: first the layout that a @ b has without communication, then the wanted layout.",
        "jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P('x', 'y'))), and again with P('x', None).",
    ]
)
def matmul_auto(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Auto mode, with jax.lax.with_sharding_constraint.

    Args: a is float32[I, J] sharded P('x', None); b is float32[J, K] sharded P(None, 'y'); mesh has the axes 'x' and 'y'.
    Returns: float32[I, K] sharded P('x', None).
    """
    c = jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", "y")))
    return jax.lax.with_sharding_constraint(c, NamedSharding(mesh, P("x", None)))


@exercise.task(
    axis_types="explicit",
    hints=[
        "The operands have shardings in their types. Which type does a @ b then have? jax.typeof shows it.",
        "a @ b is [I@x, K@y], without communication. Then move it to the layout that you want.",
        "jax.sharding.reshard(a @ b, P('x', None))",
    ],
)
def matmul_explicit(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Explicit mode, with jax.sharding.reshard.

    Args: a is float32[I@x, J]; b is float32[J, K@y]; mesh has the Explicit axes 'x' and 'y', and
    jax.set_mesh has made it the current mesh.
    Returns: float32[I@x, K].
    """
    return jax.sharding.reshard(a @ b, P("x", None))


@exercise.task(
    hints=[
        "You see blocks [I/X, J] and [J, K/Y]. Which block does their matmul give, and what does the device lack?",
        "The local matmul gives your block of C[I_X, K_Y]: gather it along dimension 1 over y.",
        "jax.lax.all_gather(a @ b, 'y', axis=1, tiled=True), with out_specs=P('x', None) and check_vma=False.",
    ]
)
def matmul_manual(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Manual mode, with jax.shard_map.

    Args and Returns: as for matmul_auto.
    """

    def local(a, b):
        return jax.lax.all_gather(a @ b, "y", axis=1, tiled=True)

    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma=False)(a, b)


question = {
    "params": {"I": [8192, 24576], "J": [2816, 5120], "K": [6144, 12288], "X": [4, 8], "Y": [4, 16]},
    "where": lambda I, J, K, X, Y: X != Y,
}


@exercise.number(
    points=0.5,
    unit="MB",
    model="one-way ring of y: Y - 1 steps; 1 MB is 10^6 bytes",
    **question,
    hints=[
        "How large is the block that travels, and how many blocks does a device send?",
        "A block of `C[I_X, K_Y]` has 4 · I · K / (X · Y) bytes. A one-way ring sends one block in each step.",
        "bytes that a device sends = (bytes of the block) · (Y − 1) steps",
    ],
)
def gather_of_c_bytes(I, J, K, X, Y):
    """In float32, with I={{ I }}, J={{ J }}, K={{ K }} on the mesh x={{ X }}, y={{ Y }}: how many MB does each device send in
    the all-gather `C[I_X, K_Y] → C[I_X, K]`?"""
    return 4 * I * K / (X * Y) * (Y - 1)


@exercise.number(
    points=0.25,
    unit="GFLOP",
    model="2 FLOPs per term",
    **question,
    hints=[
        "Which shapes does each device multiply after the gather?",
        "`B` is whole after the gather. x cuts the rows of the result, and no axis cuts its columns.",
        "FLOPs of a device = 2 · (I / X) rows · J · K",
    ],
)
def flops_of_one_constraint(I, J, K, X, Y):
    """With I={{ I }}, J={{ J }}, K={{ K }} on the mesh x={{ X }}, y={{ Y }}, the program asks only for `C[I_X, K]`. The compiler gathers
    `B`, then multiplies. How many GFLOP does each device spend?"""
    return 2 * I * J * K / X
