"""# C2 One operand cut along the contracting dimension

**Task.** `A[I, J_X] · B[J, K] → C[I, K]`: `A` is cut along the dimension you sum over, `B` is whole everywhere and `C`
must be whole everywhere. There are two ways; write both with `jax.shard_map`.

**Budget.** `matmul_gather_first`: one all-gather over x, of `A`, and nothing else. `matmul_slice_first`: one all-reduce
over x and nothing else; each device spends 2·I·J·K / X FLOPs.

```
   A[I, J_X]         B[J, K]     gather first   A[I, J_X] --all-gather--> A,
  +----+----+       +-------+                   C = A · B
  | x0 | x1 |   ·   | rows0 |
  +----+----+       | rows1 |    slice first    x takes rows x of B: free,
                    +-------+                   A_x · B_x = C{U_X}
                                                C{U_X} --all-reduce--> C
```

**Small case.** I=24, J=32, K=40, float32, X=4. Gathering `A` (3072 bytes) sends 3/4 · 3072 = 2304 bytes per device;
reducing `C` (3840 bytes) sends 2 · 3/4 · 3840 = 5760, but each device multiplies a quarter as much.

**JAX.** After an all-gather every device holds the same value, but `shard_map` cannot tell: `out_specs=P()` then
needs `check_vma=False`. After `psum` it can.

**In real systems**: gather first is FSDP's matmul (there it is the weight that is cut); slice first pays off where the result
is small, as in decoding: C5.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", case 2 and problem 4.

Check your work: shardlings check c2_one_operand
For all exercises of this module: README.md, or shardlings show 03_matmuls
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
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both
# directions of one link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
gather_first_time = None  # TODO: your answer


# Question slice_first_time [us]
# On the same ring (8 v5p chips, bfloat16, I=2048, J=8192, K=5120): how long does the
# communication of `matmul_slice_first` take?
#
# Answer in us (a bare number), or with a unit.
# Model: ring (the axis wraps around), bandwidth only: an all-gather takes V / W, with W both
# directions of one link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
slice_first_time = None  # TODO: your answer
