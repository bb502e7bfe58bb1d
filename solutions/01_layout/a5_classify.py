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
        "Take the equation apart first: which letters are summed, which are kept? Then look at their cuts, not at positions.",
        "Make a dict from letter to axes for each operand. The kept letters decide about case 4, the summed ones about 3 and 2.",
        "Case 4: collect the non-empty cuts of a kept letter in a set; more than one, or an axis in two letters' cuts.",
    ]
)
def classify(eq, spec_a, spec_b):
    """The case of a sharded einsum of two operands.

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
    params={"I": [8192, 16384], "J": [6144, 12288], "K": [7680, 10240], "X": [4, 16], "Y": [3, 8], "Z": [2, 5]},
    model="1 MB is 10^6 bytes",
)
def partial_sum_bytes(I, J, K, X, Y, Z):
    """`A[I_X, J_Y] · B[J_Y, K_Z]` with I={{ I }}, J={{ J }}, K={{ K }} on the mesh x={{ X }}, y={{ Y }}, z={{ Z }}, kept in float32.
    How many MB is the partial sum on each device, before anything is reduced?"""
    return 4 * I * K / (X * Z)


@exercise.number(
    points=0.5,
    unit="",
    params={"r": [3, 4, 5, 6], "k": [2, 3, 4]},
    model="an axis cuts one dimension or none; several axes on one dimension are a tuple, and its order matters",
)
def how_many_shardings(r, k):
    """In how many different ways can an array of {{ r }} dimensions be sharded on a mesh of {{ k }} axes? None of the sizes is 1,
    and every dimension can be divided by all of them."""
    # j axes in a row, cut into r pieces, one for each dimension
    return sum(math.perm(k, j) * math.comb(j + r - 1, r - 1) for j in range(k + 1))
