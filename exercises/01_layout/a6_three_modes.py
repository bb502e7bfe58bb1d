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

Check your work: shardlings check a6_three_modes
For all exercises of this module: README.md, or shardlings show 01_layout
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jax.sharding import AxisType, Mesh, NamedSharding


def explicit(mesh):
    """The same devices and axes, in Explicit mode."""
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Explicit,) * len(mesh.axis_names))


def matmul_auto(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Auto mode, with jax.lax.with_sharding_constraint.

    Args: a is float32[I, J] sharded P('x', None); b is float32[J, K] sharded P(None, 'y'); mesh has the axes 'x' and 'y'.
    Returns: float32[I, K] sharded P('x', None).
    """
    # TODO: write this function
    raise NotImplementedError("matmul_auto")


def matmul_explicit(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Explicit mode, with jax.sharding.reshard on explicit(mesh).

    Args: as for matmul_auto.
    Returns: float32[I@x, K].
    """
    # TODO: write this function
    raise NotImplementedError("matmul_explicit")


def matmul_manual(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Manual mode, with jax.shard_map.

    Args and Returns: as for matmul_auto.
    """
    # TODO: write this function
    raise NotImplementedError("matmul_manual")


# Question gather_of_c_bytes [MB]
# In float32, with I=8192, J=2816, K=6144 on the mesh x=4, y=6: how many MB does each device send
# in `C[I_X, K_Y] → C[I_X, K]`?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring of y: Y - 1 steps; 1 MB is 10^6 bytes.
gather_of_c_bytes = None  # TODO: your answer


# Question flops_of_one_constraint [GFLOP]
# With I=8192, J=5120, K=6144 on the mesh x=4, y=6, only `C[I_X, K]` was asked for: the compiler
# gathers `B`, then multiplies. How many GFLOP does each device spend?
#
# Answer in GFLOP (a bare number), or with a unit.
# Model: 2 FLOPs per term.
flops_of_one_constraint = None  # TODO: your answer
