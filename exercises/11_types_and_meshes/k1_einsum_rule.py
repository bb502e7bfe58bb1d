"""# K1 The placement of an einsum's result

Along one mesh axis an array has a *placement*. The placement says what each device holds, and which whole array these
parts represent.

| placement | each of the N devices holds | the whole array |
|---|---|---|
| `"R"` | all of it | what any one device holds |
| `"S(d)"` | its 1/N of dimension d, and all of the other dimensions | the parts, joined along d |
| `"P"` | an array of full shape: a *partial sum* | the sum over the devices |

Every device applies one function to its parts, without communication. If the devices' results represent one whole
array, the operands' placements determine its placement. So placements are types, and a program can be checked before it
runs.

```
   "ij,jk->ik"   S(0), R   ->  S(0)     each its own rows
                 S(1), S(0) -> P        each its own terms of every sum
                 P, R      ->  P        (a + a')·b = a·b + a'·b
                 P, P      ->  none     (a + a')·(b + b') has mixed terms
                 S(1), R   ->  none     the shapes do not even fit
```

**Write** two functions. Each function returns a placement, or raises `ValueError` if no placement gives right results
for all values of the arrays. In that case a program has to slice, gather or reduce first.

| | arguments |
|---|---|
| `einsum_rule(equation, placements)` | `"ij,jk->ik"`, one placement per operand |
| `elementwise_rule(op, placements)` | `"triple"` 3·x, `"add"` x + y, `"relu"` max(x, 0), `"add_one"` x + 1 |

No operand has a letter twice. Each letter is in the output or in at least two operands. x and y have equal shapes.

**What is checked**

The reference cuts NumPy arrays into three parts and computes part by part. The arrays have positive and negative
numbers.


| check | rule |
|---|---|
| `einsum_rule`: shards | whole and cut operands; a batch of graphs, `"bnef,fh->bneh"`, cut along any dimension |
| `einsum_rule`: sums | partial sums, and `ValueError` if the result has no placement |
| `einsum_rule`: no fit | `ValueError` when parts do not fit |
| `elementwise_rule` | the four operations |

**Symbols.** N devices (in one question: N nodes, X devices); B, E, F, H sizes of b, e, f, h.

**Small case.** Two devices hold the partial sums 5 and −3 of the number 2. `triple` gives 15 and −9, which are partial
sums of 6, so the placement is `"P"`. `relu` gives 5 and 0. Their sum is 5 and not relu(2) = 2. `add_one` gives 6 and
−2. Their sum is 4, and not 2 + 1 = 3.

Check your work: shardlings check k1_einsum_rule
Notes on all exercises of this module: see README.md, or run shardlings show 11_types_and_meshes
The text "Going further" is below the code.
"""

import math


def einsum_rule(equation, placements):
    """Return the placement of an einsum that every device computes from its own parts.

    Args: equation such as "ij,jk->ik"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if no placement is right.
    """
    # TODO: write this function
    raise NotImplementedError("einsum_rule")


def elementwise_rule(op, placements):
    """Return the placement of an elementwise function that every device computes from its own parts.

    Args: op is "triple", "add_one", "relu" or "add"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if no placement is right.
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
# Model: a ring all-reduce over X devices: 2·(X - 1) hops of 1/X of the array; 1 MB is 10^6 bytes.
pending_bytes = None  # TODO: your answer


# Question pieces_that_meet [a number]
# A mesh has axes x=76 and y=100. In `A[i, j] · B[j, k]` both operands are cut along j by both
# axes, `A` as `P(None, ("x", "y"))` and `B` as `P(("y", "x"), None)`. On how many of the 7600
# devices do the columns of `A` and the rows of `B` have the same indices?
#
# Answer with a bare number.
# Model: device (i, j) has index i along x and j along y; in a tuple the first axis makes the
# largest blocks.
pieces_that_meet = None  # TODO: your answer


# ## Going further
#
# **In real systems.** DTensor and JAX's explicit sharding compute such placements for the result of every operation.
#
# **Read on.** E. Z. Yang, "Computing sharding with einsum".
