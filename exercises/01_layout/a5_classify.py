"""# A5 The four cases of an einsum

The sharding of two operands decides what their einsum costs. A *summed* letter is in both operands but not in the
output. A *kept* letter is in the output.

```
   A[I_X, J] · B[J, K_Y]   = C[I_X, K_Y]      1   nothing to do
   A[I, J_X] · B[J, K]     gather A           2   terms are missing
   A[I, J_X] · B[J_X, K]   = C[I, K]{U_X}     3   partial sums
   A[I_X, J] · B[J, K_X]   ≠ C[I_X, K_X]      4   only diagonal blocks known
```

**Write** `classify(eq, spec_a, spec_b)` for an einsum `eq` of two operands, such as `"ij,jk->ik"`. The specs are
`PartitionSpec`s. Return 1, 2, 3, 4 or `"illegal"`: the answer in the first row of this table that applies.

| answer | when |
|---|---|
| `"illegal"` | a spec names an axis twice, or has more entries than its operand has letters |
| 4 | an axis would cut two letters of the output; or a kept letter is cut in both operands, in different ways |
| 3 | a summed letter is cut in both operands, in the same way |
| 2 | a summed letter is cut in only one operand, or in both in different ways |
| 1 | none of these |

*In the same way* means by the same axes in the same order. A kept letter that is cut in only one operand is no reason
for case 4. Every letter is in the output or in both operands, and no operand has a letter twice. The given `axes_of`
returns the axes of an entry as a tuple.

**What is checked**

| check | small case |
|---|---|
| matmuls of cases 1 to 3 | `P("x", None)`, `P(None, "y")`: 1 |
| matmuls of case 4 | `P("x")`, `P(None, "x")`: 4 |
| specs that are no valid sharding | `P(None, "y", "z")` for a matrix: `"illegal"` |
| batch letters, other orders of letters, tuples of axes | below |

**Symbols.** I, J, K: sizes of letters. X, Y, Z: sizes of axes. `{U_X}`: partial sums over x.

**Small case.** `"bqhd,bkhd->bhqk"` with `P("x", None, "y")` and `P("x", "y")`. x cuts b in both operands, in the same
way. But y cuts h in one operand and k in the other, so y would cut two letters of the output: case 4. With
`P("x", None, "y")` for both operands, the einsum is case 1.

Check your work: shardlings check a5_classify
Notes on all exercises of this module: see README.md, or run shardlings show 01_layout
The text "Going further" is below the code.
"""

import math


def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def classify(eq, spec_a, spec_b):
    """Return the case of a sharded einsum of two operands.

    Args: eq such as "ij,jk->ik"; spec_a and spec_b are the PartitionSpecs of the operands.
    Returns: 1, 2, 3, 4 or "illegal".
    """
    # TODO: write this function
    raise NotImplementedError("classify")


# Question partial_sum_bytes [MB]
# `A[I_X, J_Y] · B[J_Y, K_Z]` with I=8192, J=12288, K=10240 runs on the mesh x=16, y=2, z=8.
# Partial sums are float32. How many MB is the partial sum on each device, before the devices add
# the partial sums?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
partial_sum_bytes = None  # TODO: your answer


# Question how_many_shardings [a number]
# In how many different ways can an array of 4 dimensions be sharded on a mesh of 2 axes? No axis
# has size 1, and the product of all axis sizes divides every dimension.
#
# Answer with a bare number.
# Model: an axis cuts one dimension or none; several axes on one dimension are a tuple, and its
# order matters.
how_many_shardings = None  # TODO: your answer


# ## Going further
#
# The einsum of the small case computes attention scores. The table shows what each case costs:
#
# | case | what it takes |
# |---|---|
# | `"illegal"` | JAX refuses it |
# | 4 | an all-gather of one operand first |
# | 3 | a sum over devices afterwards |
# | 2 | first gather the operand that is cut; or, if one operand is whole, slice it and sum over devices afterwards (exercise C2) |
# | 1 | nothing, or a free slice of a whole operand |
#
# **In real systems.** XLA's partitioner, DTensor's sharding propagation and JAX's explicit mode follow this table.
#
# **Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; E. Z. Yang, "Computing sharding
# with einsum".
