"""# A6 Auto, Explicit, Manual

JAX has three ways to say where arrays live. The same product in each of them:

| mode | your function sees | the sharding is | a collective appears because |
|---|---|---|---|
| Auto | whole arrays | the compiler's affair, but for `with_sharding_constraint` | two constraints do not agree |
| Explicit | whole arrays | part of the type: `jax.typeof(c)` is `float32[24@x,40]` | you wrote `reshard` or `out_sharding`, or one operand alone is cut where a matmul sums |
| Manual | one device's block | what `in_specs` and `out_specs` say | you wrote it |

**Task.** `A[I_X, J] · B[J, K_Y] → C[I_X, K]`, three times: `matmul_auto`, `matmul_explicit` (on `explicit(mesh)`, which is
given: the same devices with Explicit axes) and `matmul_manual` (with `jax.shard_map`).

**Budget**, the same for all: one all-gather over y, of `C`, and 2·I·J·K / (X·Y) FLOPs on each device. In the first two
modes the compiler puts the all-gather in; in the third you do. The grader reads the compiled program, which has no Explicit
types any more: `jax.typeof(c)` shows you whether yours has.

```
   A[I_X, J] · B[J, K_Y]  =  C[I_X, K_Y]  --all-gather over y--> C[I_X, K]
```

A constraint says *where* a value lives, not *how* it gets there. Asked only for `C[I_X, K]`, the compiler gathers `B`
instead, and along y every device computes the same. So name the stop on the way, `C[I_X, K_Y]`, too.

**Small case.** I=24, J=32, K=40, float32, x=4, y=2. A device's block of `C[I_X, K_Y]` is [6, 20]: it sends 480 bytes and
spends 7680 FLOPs. Gathering `B` sends a block of [32, 20], 2560 bytes, and spends 15360 FLOPs.

**JAX.** An array that comes in on Auto axes has no sharding in its type; `reshard` to the explicit mesh gives it one.
In Explicit mode each result's type follows from the operands' types, or you get an error at the line where it does not.

**In real systems** one model mixes them: Auto for most of it, Explicit where surprises are dear, Manual for kernels.

**Read on.** JAX documentation, "Distributed arrays and automatic parallelization", "Explicit sharding", "Manual
parallelism with shard_map"; E. Z. Yang, "The JAX sharding type system".
"""

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}], stars=2)


@exercise.given
def explicit(mesh):
    """The same devices and axes, in Explicit mode."""
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Explicit,) * len(mesh.axis_names))


@exercise.task(
    hints=[
        "Multiply first, then say where C shall live. Which layout does the product have before anything moves?",
        "Two constraints, one after the other: the layout that costs nothing, then the one you want.",
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
    hints=[
        "First the operands need their shardings in their types. What is the type of their product then?",
        "reshard a and b to what they are, on explicit(mesh). Their product is [I@x, K@y]: reshard that.",
        "jax.sharding.reshard(a, NamedSharding(explicit(mesh), P('x', None))), b likewise, then reshard(a @ b, ...).",
    ]
)
def matmul_explicit(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Explicit mode, with jax.sharding.reshard on explicit(mesh).

    Args: as for matmul_auto.
    Returns: float32[I@x, K].
    """
    typed = explicit(mesh)
    a = jax.sharding.reshard(a, NamedSharding(typed, P("x", None)))
    b = jax.sharding.reshard(b, NamedSharding(typed, P(None, "y")))
    return jax.sharding.reshard(a @ b, NamedSharding(typed, P("x", None)))


@exercise.task(
    hints=[
        "You see blocks [I/X, J] and [J, K/Y]. What is their product, and what does the device lack?",
        "The product is your block of C[I_X, K_Y]: gather it along dimension 1 over y.",
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


question = {"params": {"I": [8192, 24576], "J": [2816, 5120], "K": [6144, 12288], "X": [4, 8], "Y": [3, 6]}}


@exercise.number(points=0.5, unit="MB", model="one-way ring of y: Y - 1 steps; 1 MB is 10^6 bytes", **question)
def gather_of_c_bytes(I, J, K, X, Y):
    """In float32, with I={{ I }}, J={{ J }}, K={{ K }} on the mesh x={{ X }}, y={{ Y }}: how many MB does each device send in
    `C[I_X, K_Y] → C[I_X, K]`?"""
    return 4 * I * K / (X * Y) * (Y - 1)


@exercise.number(points=0.25, unit="GFLOP", model="2 FLOPs per term", **question)
def flops_of_one_constraint(I, J, K, X, Y):
    """With I={{ I }}, J={{ J }}, K={{ K }} on the mesh x={{ X }}, y={{ Y }}, only `C[I_X, K]` was asked for: the compiler gathers
    `B`, then multiplies. How many GFLOP does each device spend?"""
    return 2 * I * J * K / X
