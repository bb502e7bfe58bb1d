"""# C2 One operand cut along the contracting dimension

In `A[I, J_X] · B[J, K]` only `A` is cut along `J`, the dimension over which the matmul sums. `B` is whole on every
device, and `C` must be whole too. You can gather `A` and multiply, or you can take the matching rows of `B`, multiply,
and sum over devices.

```
   A[I, J_X]         B[J, K]     gather first   A[I, J_X] --all-gather--> A,
  +----+----+       +-------+                   C = A · B
  | x0 | x1 |   ·   | rows0 |
  +----+----+       | rows1 |    slice first    device x slices B: free,
                    +-------+                   A_x · B_x = C{U_X}
                                                C{U_X} --all-reduce--> C
```

**Write** `matmul_gather_first(a, b, *, mesh)` and `matmul_slice_first(a, b, *, mesh)`, both with `jax.shard_map`.

| | shape | layout |
|---|---|---|
| `a` | float32[I, J] | `P(None, "x")`, a block is [I, J/X] |
| `b` | float32[J, K] | whole on every device |
| returns | float32[I, K] | whole on every device |

**What is checked**

| function | check | rule, per device | small case |
|---|---|---|---|
| both | C equals A @ B on every device | | |
| both | in `shard_map`; C is whole on every device | `P()` | |
| gather first | one all-gather of A over x and no other collective | a device sends at most 4·I·J·(1 − 1/X) bytes | 2304 bytes |
| slice first | one all-reduce over x and no other collective | | 5760 bytes |
| slice first | 1/X of the FLOPs | at most 2·I·J·K / X | 15,360 FLOPs |

After an all-gather `shard_map` cannot see that all devices hold the same value, so `out_specs=P()` needs
`check_vma=False`. After `psum`, `shard_map` can see this.

**Symbols.** I, J, K: dimensions of the matmul. X: devices along x. `{U_X}`: partial sums over x. V: bytes of the array
that is gathered or reduced. W: both-way bandwidth of a link.

**Small case.** I=24, J=32, K=40, float32, x=4. `A` has 3072 bytes: the all-gather sends 3/4 · 3072 = 2304 bytes per
device. `C` has 3840 bytes: the all-reduce sends 2 · 3/4 · 3840 = 5760 bytes, but each device computes only a quarter of
the 61,440 FLOPs.

Check your work: shardlings check c2_one_operand
Notes on all exercises of this module: see README.md, or run shardlings show 03_matmuls
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def matmul_gather_first(a, b, *, mesh):
    """Multiply A[I, J_X] by B[J, K] into C[I, K]: gather A, then multiply.

    Args: a is float32[I, J] sharded P(None, 'x'); b is float32[J, K], whole; mesh has an axis 'x'.
    Returns: float32[I, K], whole on every device.
    """
    # TODO: write this function
    raise NotImplementedError("matmul_gather_first")


def matmul_slice_first(a, b, *, mesh):
    """Multiply A[I, J_X] by B[J, K] into C[I, K]: slice B, multiply, all-reduce.

    Args and Returns: as for matmul_gather_first.
    """
    # TODO: write this function
    raise NotImplementedError("matmul_slice_first")


# Question gather_first_time [us]
# In bfloat16, with I=4096, J=14336, K=5120 on a ring of 8 v5p chips: how long does the
# communication of `matmul_gather_first` take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the
# bandwidth of a link in both directions.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
gather_first_time = None  # TODO: your answer


# Question slice_first_time [us]
# In bfloat16, with I=2048, J=8192, K=5120 on a ring of 8 v5p chips: how long does the
# communication of `matmul_slice_first` take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, where W is the
# bandwidth of a link in both directions.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways); 3D torus, an axis wraps
# only if its size is a multiple of 4 and the slice is full 4x4x4 cubes; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
slice_first_time = None  # TODO: your answer


# ## Going further
#
# **In real systems.** FSDP gathers first: its weight is the operand that is cut. Slicing first is faster where the result
# is small, as in decoding (exercise C5).
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 2 and problem 4.
