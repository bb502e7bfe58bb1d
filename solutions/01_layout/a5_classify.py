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

## Going further

The einsum of the small case computes attention scores. The table shows what each case costs:

| case | what it takes |
|---|---|
| `"illegal"` | JAX refuses it |
| 4 | an all-gather of one operand first |
| 3 | a sum over devices afterwards |
| 2 | first gather the operand that is cut; or, if one operand is whole, slice it and sum over devices afterwards (exercise C2) |
| 1 | nothing, or a free slice of a whole operand |

**In real systems.** XLA's partitioner, DTensor's sharding propagation and JAX's explicit mode follow this table.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; E. Z. Yang, "Computing sharding
with einsum".
"""

import math

from grader.exercise import Exercise

exercise = Exercise(stars=2, extension=True)


@exercise.given
def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


@exercise.function(
    hints=[
        "Take the equation apart first: which letters are summed, which are kept? Then compare how each letter is cut in the two operands. A letter may have different positions in the two operands.",
        "Make a dict from letter to axes for each operand. The kept letters decide case 4. The summed letters decide cases 3 and 2.",
        "Case 4: a kept letter is cut in both operands, but by different axes or in a different order; or one axis cuts two kept letters.",
    ]
)
def classify(eq, spec_a, spec_b):
    """Return the case of a sharded einsum of two operands.

    Args: eq such as "ij,jk->ik"; spec_a and spec_b are the PartitionSpecs of the operands.
    Returns: 1, 2, 3, 4 or "illegal".
    """
    operands, kept = eq.split("->")
    cuts = []
    for letters, spec in zip(operands.split(","), (spec_a, spec_b), strict=True):
        named = [axis for entry in spec for axis in axes_of(entry)]
        if len(spec) > len(letters) or len(set(named)) < len(named):
            return "illegal"
        cuts.append({letter: axes_of(entry) for letter, entry in zip(letters, spec, strict=False) if entry})
    a, b = cuts
    out = []
    for letter in kept:
        ways = {cut[letter] for cut in cuts if letter in cut}
        if len(ways) > 1:
            return 4
        out += [axis for axes in ways for axis in axes]
    if len(set(out)) < len(out):
        return 4
    summed = (a.keys() | b.keys()) - set(kept)
    if any(a.get(letter) == b.get(letter) for letter in summed):
        return 3
    return 2 if summed else 1


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [8192, 16384], "J": [6144, 12288], "K": [7680, 10240], "X": [4, 16], "Y": [2, 8], "Z": [2, 8]},
    where=lambda I, J, K, X, Y, Z: Y != Z,
    model="1 MB is 10^6 bytes",
    hints=[
        "Which dimensions does the partial sum have, and which of them are cut?",
        "J is summed and is not a dimension of C. The partial sum is C's block: x cuts I, z cuts K.",
        "bytes of the partial sum = 4 bytes · (I / X) rows · (K / Z) columns",
    ],
)
def partial_sum_bytes(I, J, K, X, Y, Z):
    """`A[I_X, J_Y] · B[J_Y, K_Z]` with I={{ I }}, J={{ J }}, K={{ K }} runs on the mesh x={{ X }}, y={{ Y }}, z={{ Z }}. Partial sums are float32.
    How many MB is the partial sum on each device, before the devices add the partial sums?"""
    return 4 * I * K / (X * Z)


@exercise.number(
    points=0.5,
    unit="",
    params={"r": [3, 4, 5, 6], "k": [2, 3, 4]},
    model="an axis cuts one dimension or none; several axes on one dimension are a tuple, and its order matters",
    hints=[
        "How many axes are in use, and which dimension does each cut?",
        "Choose j of the k axes and put them in an order. Then cut this sequence into r parts, one for each dimension. A part may be empty.",
        "For each j from 0 to k: k! / (k − j)! orders of j axes · C(j + r − 1, r − 1) ways to cut an order into r parts. Add these numbers.",
    ],
)
def how_many_shardings(r, k):
    """In how many different ways can an array of {{ r }} dimensions be sharded on a mesh of {{ k }} axes? No axis has
    size 1, and the product of all axis sizes divides every dimension."""
    # orders of j axes, times the ways to cut a row of j axes into r parts
    return sum(math.perm(k, j) * math.comb(j + r - 1, r - 1) for j in range(k + 1))
