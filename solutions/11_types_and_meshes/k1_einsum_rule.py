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

## Going further

**In real systems.** DTensor and JAX's explicit sharding compute such placements for the result of every operation.

**Read on.** E. Z. Yang, "Computing sharding with einsum".
"""

import math

from grader.exercise import Exercise

exercise = Exercise(stars=2)


@exercise.function(
    hints=[
        "Which letter is cut? Which other operands have this letter, and is it in the output? When is an einsum linear in a partial sum?",
        "If no operand is P: every operand that has the cut letter must be cut along it, and no operand may be cut along another letter. If one operand is P: the other operands must be R.",
        "letter = the cut letter; return f'S({out.index(letter)})' if letter in out else 'P'",
    ]
)
def einsum_rule(equation, placements):
    """Return the placement of an einsum that every device computes from its own parts.

    Args: equation such as "ij,jk->ik"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if no placement is right.
    """
    operands, out = equation.split("->")
    terms = operands.split(",")
    if "P" in placements:
        if placements.count("R") < len(placements) - 1:
            raise ValueError("an einsum is linear in one operand at a time, and the other operands must be whole")
        return "P"
    cut = {term[int(place[2:-1])] for term, place in zip(terms, placements, strict=True) if place != "R"}
    if not cut:
        return "R"
    letter = cut.pop()
    if cut or any(letter in term and place == "R" for term, place in zip(terms, placements, strict=True)):
        raise ValueError("the parts do not fit")
    return f"S({out.index(letter)})" if letter in out else "P"


@exercise.function(
    hints=[
        "Take two devices and small numbers, one of them negative, as in the small case. What is the result, and what should it be?",
        "All four ops work on whole and cut arrays, if x and y have equal placements. Which ops have f(a + b) = f(a) + f(b)?",
        "if len(set(placements)) > 1 or ('P' in placements and op in ('relu', 'add_one')): raise ValueError",
    ]
)
def elementwise_rule(op, placements):
    """Return the placement of an elementwise function that every device computes from its own parts.

    Args: op is "triple", "add_one", "relu" or "add"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if no placement is right.
    """
    places = set(placements)
    if len(places) > 1:
        raise ValueError("the operands have different placements")
    if "P" in places and op in {"relu", "add_one"}:
        raise ValueError(f"{op} of a sum is not the sum of {op}")
    return places.pop()


@exercise.number(
    points=0.5,
    unit="MB",
    params={"B": [3, 5], "N": [96, 160], "E": [12, 20], "F": [128, 512], "H": [64, 192], "X": [4, 8, 16]},
    model="a ring all-reduce over X devices: 2·(X - 1) hops of 1/X of the array; 1 MB is 10^6 bytes",
    hints=[
        "Which array is a partial sum, and what is its shape?",
        'f is summed and cut in both operands, so the result `"bneh"` is a partial sum of full shape on each device: B · N · E · H numbers of float32.',
        "2 · (X − 1) / X · 4 bytes · B · N · E · H",
    ],
)
def pending_bytes(B, N, E, F, H, X):
    """A batch of graphs, `x[b, n, e, f]`, is float32[{{ B }}, {{ N }}, {{ E }}, {{ F }}] and has placement `S(3)` along a mesh axis of
    {{ X }} devices; the weights `w[f, h]` are float32[{{ F }}, {{ H }}] with `S(0)`. Each device runs `"bnef,fh->bneh"` on its parts,
    and a ring all-reduce makes the result whole. How many MB does each device send?"""
    return 2 * (X - 1) / X * 4 * B * N * E * H


@exercise.number(
    points=0.5,
    unit="",
    params={"X": [16, 28, 36, 40, 52, 56, 76], "Y": [28, 40, 56, 64, 92, 100, 120, 136]},
    where=lambda X, Y: math.gcd(X - 1, Y - 1) > 2 and (X - 1) % (Y - 1) > 0 and (Y - 1) % (X - 1) > 0,
    model="device (i, j) has index i along x and j along y; in a tuple the first axis makes the largest blocks",
    hints=[
        "Which part of dimension j does device (i, j) hold in each operand?",
        "Device (i, j) holds part i · Y + j in `A` and part j · X + i in `B`. Count the devices for which the two numbers are equal.",
        "for i in 0 ... X − 1 and j in 0 ... Y − 1, i · (Y − 1) = j · (X − 1) has gcd(X − 1, Y − 1) + 1 solutions",
    ],
)
def pieces_that_meet(X, Y):
    """A mesh has axes x={{ X }} and y={{ Y }}. In `A[i, j] · B[j, k]` both operands are cut along j by both axes, `A` as
    `P(None, ("x", "y"))` and `B` as `P(("y", "x"), None)`. On how many of the {{ X * Y }} devices do the columns of `A` and the rows of `B`
    have the same indices?"""
    return math.gcd(X - 1, Y - 1) + 1
