"""# W4 The placement of an einsum of shards

Along one mesh axis, an array has a *placement*:

- `"R"`: every device holds the whole array.
- `"S(d)"`: dimension `d` of the array is sharded.
- `"P"`: every device holds an array of the full shape, a partial sum. The array is the sum of all of them.

Every device runs an einsum on its own parts. Which placement does the result have?

**Task.** Write `einsum_rule(equation, placements)`. Return the placement of the result that is right for all arrays. If
there is none, raise `ValueError`. No operand has a letter twice, and every letter is in the output or in two operands.

**Small case.** For `"ij,jk->ik"`, `["S(0)", "R"]` gives `"S(0)"`, and `["S(1)", "S(0)"]` gives `"P"`. For
`["S(1)", "R"]`, the shapes on a device do not fit, so the function raises `ValueError`.
"""

import itertools

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, Scenario
from grader.expect import expect_outcomes

exercise = Exercise(stars=2)


@exercise.function(hints=["An einsum is linear in each operand alone.", "Which letter is cut? Who else has it?"])
def einsum_rule(equation, placements):
    """Return the placement of the result of an einsum that every device runs on its own parts.

    Args: equation such as "ij,jk->ik"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if none of these fits.
    """
    operands, out = equation.split("->")
    terms = operands.split(",")
    if "P" in placements:
        if sorted(placements)[1:] != ["R"] * (len(terms) - 1):
            raise ValueError("a product of sums is no sum of products")
        return "P"
    cut = {term[int(place[2:-1])] for term, place in zip(terms, placements, strict=True) if place != "R"}
    if not cut:
        return "R"
    letter = cut.pop()
    if cut or any(place == "R" and letter in term for term, place in zip(terms, placements, strict=True)):
        raise ValueError("the parts do not fit")
    return f"S({out.index(letter)})" if letter in out else "P"


EQUATIONS = [
    "ij,jk->ik",
    "ij,jk->ki",
    "bij,bjk->bik",
    "i,j->ij",
    "ij,ij->i",
    "sbi,io->sbo",
    "ij,jk,kl->il",
    "bqd,bkd->bqk",
]
DEVICES = 2


def parts(rng, whole, place):
    """Return the part of each device of an array of ints."""
    if place == "R":
        return [whole] * DEVICES
    if place == "P":
        first = rng.integers(-50, 50, size=whole.shape)
        return [first, whole - first]
    return np.split(whole, DEVICES, axis=int(place[2:-1]))


def simulated(rng, equation, placements):
    """Simulate the einsum on each device with random arrays. Return the result's placement; None if it has none."""
    terms, out = equation.split("->")
    sizes = {letter: DEVICES * (2 + i) for i, letter in enumerate(sorted(set(terms) - {","}))}
    wholes = [rng.integers(-50, 50, size=[sizes[letter] for letter in term]) for term in terms.split(",")]
    held = zip(*(parts(rng, whole, place) for whole, place in zip(wholes, placements, strict=True)), strict=True)
    try:
        made = [np.einsum(equation, *operands) for operands in held]
    except ValueError:
        return None
    due = np.einsum(equation, *wholes)
    for place in ["R", *(f"S({d})" for d in range(len(out))), "P"]:
        means = made[0] if place == "R" else sum(made) if place == "P" else np.concatenate(made, int(place[2:-1]))
        agree = place != "R" or all(np.array_equal(one, made[0]) for one in made)
        if agree and np.array_equal(means, due):
            return place
    return None


def every_case():
    """Yield every equation with every placement of its operands."""
    for equation in EQUATIONS:
        terms = equation.split("->")[0].split(",")
        for places in itertools.product(*(["R", "P", *(f"S({d})" for d in range(len(term)))] for term in terms)):
            yield {"equation": equation, "placements": list(places)}


def drawn(results, *, partial):
    """Return a function that draws cases; ``results``: first letters of the allowed placements, "n" for none.

    With ``partial``, each case has a partial sum; otherwise no case has one.
    """

    def draw(rng):
        cases = [case for case in every_case() if ("P" in case["placements"]) is partial]
        fitting = [case for case in cases if (simulated(rng, **case) or "none")[0] in results]
        return [fitting[i] for i in rng.permutation(len(fitting))[:40]]

    return draw


MATMUL = "ij,jk->ik"
placed = exercise.cases(
    einsum_rule,
    public=[{"equation": MATMUL, "placements": places} for places in (["R", "R"], ["S(0)", "R"], ["S(1)", "S(0)"])],
    hidden=drawn("RSP", partial=False),
)
sums = exercise.cases(
    einsum_rule,
    public=[{"equation": MATMUL, "placements": ["P", "R"]}],
    hidden=drawn("RSP", partial=True),
)
impossible = exercise.cases(
    einsum_rule,
    public=[{"equation": MATMUL, "placements": ["S(1)", "R"]}],
    hidden=drawn("n", partial=False),
)
nonlinear = exercise.cases(
    einsum_rule,
    public=[{"equation": MATMUL, "placements": ["P", "P"]}],
    hidden=drawn("n", partial=True),
)


@exercise.check(placed, points=1, public=True)
def of_shards(seen):
    """einsum_rule: whole and sharded operands"""
    expect_outcomes(seen)


@exercise.check(sums, points=1, public=True, after=of_shards)
def of_sums(seen):
    """einsum_rule: an operand that is a partial sum"""
    expect_outcomes(seen)


@exercise.check(impossible, points=1, public=True, after=of_shards)
def no_fit(seen):
    """einsum_rule: ValueError for parts that do not fit"""
    expect_outcomes(seen)


@exercise.check(nonlinear, points=1, after=of_sums)
def no_sum(seen):
    """einsum_rule: ValueError for partial sums that give no placement"""
    expect_outcomes(seen)


@exercise.misconception(fails=of_sums)
def partial_dropped(equation, placements):
    """You ignored a partial sum. The einsum is linear in this operand, so the result is a partial sum too."""
    if placements.count("P") == 1 and placements.count("R") == len(placements) - 1:
        return "R"
    return einsum_rule(equation, placements)


@exercise.misconception(fails=no_sum)
def sums_are_multiplied(equation, placements):
    """An einsum of two partial sums on each device loses all mixed terms. It is linear in one operand at a time."""
    return "P" if "P" in placements else einsum_rule(equation, placements)


@exercise.misconception(fails=of_shards)
def contraction_is_whole(equation, placements):
    """Each device summed over its own part of a sharded dimension, so the result is a partial sum."""
    found = einsum_rule(equation, placements)
    return "R" if found == "P" and "P" not in placements else found


@exercise.misconception(fails=no_fit)
def one_cut_is_enough(equation, placements):
    """You looked at one sharded operand. A second operand with this letter must be sharded along it, too."""
    try:
        return einsum_rule(equation, placements)
    except ValueError:
        if "P" in placements:
            raise
    operands, out = equation.split("->")
    cut = [term[int(place[2:-1])] for term, place in zip(operands.split(","), placements, strict=True) if place != "R"]
    return f"S({out.index(cut[0])})" if cut[0] in out else "P"


# -- questions ---------------------------------------------------------------------------------


@exercise.spec(points=1, axes=["dp", "tp"], params={"batch": ["dp", "tp"], "order": ["sbo", "bso"]})
def linear_layer(batch, order):
    """`x[s, b, i]` is sharded `P(None, "{{ batch }}", None)` and `w[i, o]` is `P(None, "{{ "tp" if batch == "dp" else "dp" }}")`. How is
    `einsum("sbi,io->{{ order }}", x, w)` sharded when nothing is sent?"""
    columns = "tp" if batch == "dp" else "dp"
    return P(None, batch, columns) if order == "sbo" else P(batch, None, columns)


@exercise.misconception(of=linear_layer)
def columns_forgotten(batch, order):
    """Every device has only the columns of its own part of w."""
    return P(None, batch) if order == "sbo" else P(batch)


exercise.scenario(
    linear_layer,
    lambda batch, order: Scenario(
        mesh={"dp": 4, "tp": 2},
        arrays=[((8, 8, 8), (None, batch)), ((8, 8), (None, "tp" if batch == "dp" else "dp"))],
    ),
)
