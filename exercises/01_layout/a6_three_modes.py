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

Check your work: shardlings check a6_three_modes
Notes on all exercises of this module: see README.md, or run shardlings show 01_layout
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def matmul_auto(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Auto mode, with jax.lax.with_sharding_constraint.

    Args: a is float32[I, J] sharded P('x', None); b is float32[J, K] sharded P(None, 'y'); mesh has the axes 'x' and 'y'.
    Returns: float32[I, K] sharded P('x', None).
    """
    # TODO: write this function
    raise NotImplementedError("matmul_auto")


def matmul_explicit(a, b, *, mesh):
    """Multiply A[I_X, J] by B[J, K_Y] into C[I_X, K] in Explicit mode, with jax.sharding.reshard.

    Args: a is float32[I@x, J]; b is float32[J, K@y]; mesh has the Explicit axes 'x' and 'y', and
    jax.set_mesh has made it the current mesh.
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
# In float32, with I=8192, J=5120, K=12288 on the mesh x=4, y=16: how many MB does each device
# send in the all-gather `C[I_X, K_Y] → C[I_X, K]`?
#
# Answer in MB (a bare number), or with a unit.
# Model: one-way ring of y: Y - 1 steps; 1 MB is 10^6 bytes.
gather_of_c_bytes = None  # TODO: your answer


# Question flops_of_one_constraint [GFLOP]
# With I=8192, J=5120, K=12288 on the mesh x=4, y=16, the program asks only for `C[I_X, K]`. The
# compiler gathers `B`, then multiplies. How many GFLOP does each device spend?
#
# Answer in GFLOP (a bare number), or with a unit.
# Model: 2 FLOPs per term.
flops_of_one_constraint = None  # TODO: your answer


# ## Going further
#
# **JAX.** In Explicit mode JAX derives the type of each result from the types of the operands. If it cannot, JAX raises
# an error at the line of the operation. A collective also appears where you pass `out_sharding`, or where a matmul sums
# over a dimension that is cut in only one of its operands. `jax.typeof(c)` shows the type of a value. If you build a mesh
# yourself, give it Explicit axes: for Auto axes, `reshard` raises an error.
#
# **In real systems.** One model can mix the modes: Auto for most of the model, Explicit where an unexpected collective is
# expensive, Manual for kernels.
#
# **Read on.** JAX documentation, "Distributed arrays and automatic parallelization", "Explicit sharding", "Manual
# parallelism with shard_map"; E. Z. Yang, "The JAX sharding type system".
