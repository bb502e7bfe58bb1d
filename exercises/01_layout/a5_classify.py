"""# A5 Which case is it?

What a product of two sharded arrays costs is decided by which letters are cut. A letter that both operands have and the
output has not is *summed*; the letters of the output are *kept*.

**Task.** Write `classify(eq, spec_a, spec_b)` for an einsum of two operands such as `"ij,jk->ik"`: return 1, 2, 3, 4 or
`"illegal"`. `axes_of` is given: the axes of one entry of a spec as a tuple.

| answer | when | what it takes |
|---|---|---|
| `"illegal"` | a spec names an axis twice, or has more entries than its operand has letters | JAX refuses it |
| 4 | the operands' cuts of the kept letters together are no sharding of the output: an axis would cut two letters, or a letter is cut in both operands and not the same way | gather an operand first |
| 3 | a summed letter is cut in both operands, and the same way | sum afterwards |
| 2 | a summed letter is cut in one operand, or in both and differently | gather it first; or, if the other operand is whole, slice that one and sum (C2) |
| 1 | none of these | nothing |

Where several hold, answer with the first of them in this table. "The same way" means the same tuple of axes: `("x", "y")`
and `("y", "x")` differ. A kept letter that is cut in one operand and whole in the other is no trouble: slicing is free.
Every letter is in the output or in both operands; no operand has a letter twice.

```
   A[I_X, J] · B[J, K_Y]   = C[I_X, K_Y]      1   nothing to do
   A[I, J_X] · B[J, K]     gather A           2   terms are missing
   A[I, J_X] · B[J_X, K]   = C[I, K]{U_X}     3   partial sums
   A[I_X, J] · B[J, K_X]   ≠ C[I_X, K_X]      4   only diagonal blocks known
```

**Small case.** Attention scores `"bqhd,bkhd->bhqk"` with `P("x", None, "y")` and `P("x", "y")`: b is cut the same way in
both, but y would have to cut h and k of the output, so 4. With `P("x", None, "y")` on both sides it is 1.

**In real systems** this table is what the partitioner, DTensor's sharding propagation and JAX's explicit mode go by.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; E. Z. Yang, "Computing sharding with
einsum".

Check your work: shardlings check a5_classify
For all exercises of this module: README.md, or shardlings show 01_layout
"""

import math


def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def classify(eq, spec_a, spec_b):
    """The case of a sharded einsum of two operands.

    Args: eq such as "ij,jk->ik"; spec_a and spec_b are the PartitionSpecs of the operands.
    Returns: 1, 2, 3, 4 or "illegal".
    """
    # TODO: write this function
    raise NotImplementedError("classify")


# Question partial_sum_bytes [MB]
# `A[I_X, J_Y] · B[J_Y, K_Z]` with I=8192, J=6144, K=10240 on the mesh x=16, y=8, z=2, kept in
# float32. How many MB is the partial sum on each device, before anything is reduced?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
partial_sum_bytes = None  # TODO: your answer


# Question how_many_shardings [a number]
# In how many different ways can an array of 4 dimensions be sharded on a mesh of 2 axes? None of
# the sizes is 1, and every dimension can be divided by all of them.
#
# Answer with a bare number.
# Model: an axis cuts one dimension or none; several axes on one dimension are a tuple, and its
# order matters.
how_many_shardings = None  # TODO: your answer
