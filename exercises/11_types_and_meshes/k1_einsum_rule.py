"""# K1 What becomes of an einsum of shards

Along one axis of the mesh an array has a *placement*: what its devices hold, and what they mean by it.

| placement | each of the N devices holds | the array that is meant |
|---|---|---|
| `"R"` | all of it | what any one of them holds |
| `"S(d)"` | its 1/N of dimension d, the others whole | the parts, put together along d |
| `"P"` | an array of full shape: a *partial sum* | the sum over the devices |

Now every device applies the same function to what it holds, and nobody talks. Is the result again an array with one of
these placements, the one that is due? Then placements are types, and a program can be checked before it runs.

**Tasks.** `einsum_rule(equation, placements)` is the placement of the result of an einsum, `elementwise_rule(op, placements)`
that of an elementwise function:

| op | result | op | result |
|---|---|---|---|
| `"triple"` | 3·x | `"relu"` | max(x, 0) |
| `"add"` | x + y | `"add_one"` | x + 1 |

Where there is no placement that is right for all arrays placed so, raise `ValueError`: somebody has to slice, gather or
reduce first. No operand has a letter twice; each letter is in the output or in two operands or more. x and y have one shape.

```
   "ij,jk->ik"   S(0), R   ->  S(0)     each its own rows
                 S(1), S(0) -> P        each its own terms of every sum
                 P, R      ->  P        (a + a')·b = a·b + a'·b
                 P, P      ->  none     (a + a')·(b + b') has mixed terms
                 S(1), R   ->  none     the shapes do not even fit
```

**Small case.** Two devices hold the partial sums 5 and -3 of the number 2. Tripled: 15 and -9, a partial sum of 6: `"P"`.
Through relu: 5 and 0, which is neither 2 nor a sum of 2. Plus one: 6 and -2, one too many.

**Checked** against arrays of NumPy, positive and negative numbers mixed, cut in three and computed part by part. One of
the equations is a batch of graphs, `"bnef,fh->bneh"`: batch, node, edge and embedding may each be cut.

**In real systems** DTensor and JAX's explicit sharding propagate types of this kind through every operation.

**Read on.** E. Z. Yang, "Computing sharding with einsum".

Check your work: shardlings check k1_einsum_rule
"""

import math


def einsum_rule(equation, placements):
    """The placement of an einsum that every device computes from its own parts.

    Args: equation such as "ij,jk->ik"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if none of them is right.
    """
    # TODO: write this function
    raise NotImplementedError("einsum_rule")


def elementwise_rule(op, placements):
    """The placement of an elementwise function that every device computes from its own parts.

    Args: op is "triple", "add_one", "relu" or "add"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if none of them is right.
    """
    # TODO: write this function
    raise NotImplementedError("elementwise_rule")


# Question pending_bytes [MB]
# A batch of graphs, `x[b, n, e, f]`, is float32[5, 96, 20, 512] and has placement `S(3)` along a
# mesh axis of 4 devices; the weights `w[f, h]` are float32[512, 192] with `S(0)`. Each device
# runs `"bnef,fh->bneh"` on its parts, and a ring all-reduce makes the result whole. How many MB
# does each device send?
#
# Answer in MB (a bare number), or with a unit.
# Model: a ring all-reduce of N chunks: 2·(N - 1) hops of one chunk; 1 MB is 10^6 bytes.
pending_bytes = None  # TODO: your answer


# Question pieces_that_meet [a number]
# A mesh has axes x=9 and y=13. In `A[i, j] · B[j, k]` both operands are cut along j by both axes,
# `A` as `P(None, ("x", "y"))` and `B` as `P(("y", "x"), None)`. On how many of the 117 devices do
# the columns of `A` and the rows of `B` have the same indices?
#
# Answer with a bare number.
# Model: device (i, j) of the mesh, i along x and j along y; a tuple cuts by its first axis first.
pieces_that_meet = None  # TODO: your answer
