"""Checks and misconceptions of A5."""

import itertools
import math

from jax.sharding import PartitionSpec as P

from a5_classify import axes_of, classify, exercise, how_many_shardings, partial_sum_bytes
from grader.exercise import Scenario
from grader.expect import expect_outcomes

SPECS = [P(i, j) for i, j in itertools.product([None, "x", "y"], repeat=2)]
TABLE = [{"eq": "ij,jk->ik", "spec_a": a, "spec_b": b} for a, b in itertools.product(SPECS, repeat=2)]
TENSORS = ["bij,bjk->bik", "kj,bji->bki", "bqhd,bkhd->bhqk", "bsnd,ndm->bsm", "ji,kj->ki"]
# Wrong solutions fail these fixed cases, but may pass the drawn cases.
BATCH_CUT_TWICE = [
    {"eq": "bij,bjk->bik", "spec_a": P("x"), "spec_b": P("y")},
    {"eq": "bqhd,bkhd->bhqk", "spec_a": P("x", None, "y"), "spec_b": P("x", None, "z")},
]
XY, YX = ("x", "y"), ("y", "x")
SAME_ORDER_OR_NOT = [
    {"eq": "bij,bjk->bik", "spec_a": P(*a), "spec_b": P(*b)}
    for a, b in [([XY], [XY]), ([XY], [YX]), ([None, None, XY], [None, XY]), ([None, None, XY], [None, YX])]
]
ENTRIES = [None, None, "x", "y", "z", ("x", "y"), ("y", "x")]


def of_case(*answers):
    """Return the matmuls whose case is one of ``answers``."""
    return [case for case in TABLE if classify(**case) in answers]


def drawn(rng):
    """Return legal matmuls of tensors, with an equal number for each case."""
    found = {1: [], 2: [], 3: [], 4: []}
    while min(map(len, found.values())) < 25:
        eq = TENSORS[rng.integers(len(TENSORS))]
        specs = [
            [ENTRIES[i] for i in rng.integers(len(ENTRIES), size=len(part))] for part in eq.split("->")[0].split(",")
        ]
        case = {"eq": eq, "spec_a": P(*specs[0]), "spec_b": P(*specs[1])}
        answer = classify(**case)
        if answer != "illegal" and len(found[answer]) < 25:
            found[answer].append(case)
    return [*BATCH_CUT_TWICE, *SAME_ORDER_OR_NOT, *itertools.chain(*found.values())]


table_cases = exercise.cases(
    classify,
    public=[
        {"eq": "ij,jk->ik", "spec_a": P("x", None), "spec_b": P(None, "y")},
        {"eq": "ij,jk->ik", "spec_a": P("x", None), "spec_b": P("x", None)},
        {"eq": "ij,jk->ik", "spec_a": P(None, "x"), "spec_b": P("y", None)},
        {"eq": "ij,jk->ik", "spec_a": P(None, "x"), "spec_b": P("x", "y")},
    ],
    hidden=lambda rng: of_case(1, 2, 3),
)
clash_cases = exercise.cases(
    classify,
    public=[
        {"eq": "ij,jk->ik", "spec_a": P("x", "y"), "spec_b": P("y", "x")},
        {"eq": "ij,jk->ik", "spec_a": P("x"), "spec_b": P(None, "x")},
    ],
    hidden=lambda rng: of_case(4),
)
illegal_cases = exercise.cases(
    classify,
    public=[{"eq": "ij,jk->ik", "spec_a": P("x", None), "spec_b": P(None, "y", "z")}],
    hidden=lambda rng: [
        *of_case("illegal"),
        *({**case, "spec_a": P(*case["spec_a"], None)} for case in of_case(1, 2, 3, 4)[::5]),
        {"eq": "bij,bjk->bik", "spec_a": P("x"), "spec_b": P(None, ("y", "z"), "y")},
    ],
)
tensor_cases = exercise.cases(
    classify,
    public=[
        {"eq": "bqhd,bkhd->bhqk", "spec_a": P("x", None, "y"), "spec_b": P("x", None, "y")},
        {"eq": "bqhd,bkhd->bhqk", "spec_a": P("x", None, "y"), "spec_b": P("x", "y")},
        {"eq": "bij,bjk->bik", "spec_a": P(("x", "y")), "spec_b": P(("y", "x"))},
        {"eq": "bij,bjk->bik", "spec_a": P("x"), "spec_b": P()},
    ],
    hidden=drawn,
)


@exercise.check(table_cases, points=1, public=True)
def classify_matrices(seen):
    """classify: matmuls of cases 1 to 3"""
    expect_outcomes(seen)


@exercise.check(clash_cases, points=0.5, public=True, after=classify_matrices)
def classify_clash(seen):
    """classify: matmuls of case 4"""
    expect_outcomes(seen)


@exercise.check(illegal_cases, points=0.5, after=classify_matrices)
def classify_illegal(seen):
    """classify: specs that are no valid sharding"""
    expect_outcomes(seen)


@exercise.check(tensor_cases, points=0.5, after=classify_matrices)
def classify_tensors(seen):
    """classify: batch letters, other orders of letters, tuples of axes"""
    expect_outcomes(seen)


@exercise.misconception(fails=[classify_clash, classify_tensors], breaks="matmuls of case 4")
def classify_no_clash(eq, spec_a, spec_b):
    """You looked at the summed letters only, or before the kept letters. Check the kept letters first. For example, x would cut C[I_X, K_X] twice, and the local matmuls give only the diagonal blocks of C."""
    operands, kept = eq.split("->")
    cuts = [
        {letter: axes_of(entry) for letter, entry in zip(letters, spec, strict=False) if letter not in kept and entry}
        for letters, spec in zip(operands.split(","), (spec_a, spec_b), strict=True)
    ]
    answer = classify(eq, spec_a, spec_b)
    if answer != 4:
        return answer
    summed = cuts[0].keys() | cuts[1].keys()
    return 3 if any(cuts[0].get(n) == cuts[1].get(n) for n in summed) else 2 if summed else 1


@exercise.misconception(fails=classify_matrices, breaks="matmuls of cases 1 to 3")
def classify_by_shared_axis(eq, spec_a, spec_b):
    """You answered 3 because both operands share an axis. This axis must cut the summed letter in both operands: A[I_X, J] · B[J_X, K] is case 2."""
    answer = classify(eq, spec_a, spec_b)
    shared = {n for e in spec_a for n in axes_of(e)} & {n for e in spec_b for n in axes_of(e)}
    return 3 if answer != "illegal" and shared else answer


@exercise.misconception(fails=classify_matrices, breaks="matmuls of cases 1 to 3")
def classify_any_two_cuts(eq, spec_a, spec_b):
    """You answered 3 because the summed letter is cut in both operands. If different axes cut it, the blocks do not match: gather one operand."""
    operands, kept = eq.split("->")
    cut = [
        {n for n, e in zip(part, s, strict=False) if e}
        for part, s in zip(operands.split(","), (spec_a, spec_b), strict=True)
    ]
    answer = classify(eq, spec_a, spec_b)
    return 3 if answer == 2 and (cut[0] & cut[1]) - set(kept) else answer


@exercise.misconception(fails=classify_matrices, breaks="a summed letter is cut in only one operand")
def classify_one_cut_as_sum(eq, spec_a, spec_b):
    """You answered 3 although a summed letter is cut in one operand only. Partial sums need matching parts of both operands. Here the device lacks the other parts of one operand: case 2."""
    answer = classify(eq, spec_a, spec_b)
    return 3 if answer == 2 else answer


def named(spec):
    """Return the axes that a spec names."""
    return {axis for entry in spec for axis in axes_of(entry)}


@exercise.misconception(fails=classify_matrices, breaks="a spec names an axis twice")
def classify_shared_axis_illegal(eq, spec_a, spec_b):
    """You answered "illegal" because both operands share an axis. Two specs may name one axis, but one spec must not name an axis twice. Look at each spec by itself."""
    answer = classify(eq, spec_a, spec_b)
    return "illegal" if answer != 3 and named(spec_a) & named(spec_b) else answer


@exercise.misconception(form_of=classify_shared_axis_illegal)
def classify_any_shared_axis_illegal(eq, spec_a, spec_b):
    """Like `classify_shared_axis_illegal`, but this program also answers "illegal" if the axis cuts a summed letter in both operands."""
    return "illegal" if named(spec_a) & named(spec_b) else classify(eq, spec_a, spec_b)


@exercise.misconception(fails=classify_tensors, breaks="other orders of letters")
def classify_by_position(eq, spec_a, spec_b):
    """You took the last letter of the first operand and the first letter of the second as summed. Read the summed letters from the equation."""
    first, second = eq.split("->")[0].split(",")
    if len(spec_a) > len(first) or len(spec_b) > len(second):
        return "illegal"
    pad_a, pad_b = ([*s, *[None] * (len(n) - len(s))] for s, n in ((spec_a, first), (spec_b, second)))
    rest_a, rest_b = (
        tuple(n for entry in entries for n in axes_of(entry)) or None for entries in (pad_a[:-1], pad_b[1:])
    )
    return classify("ij,jk->ik", (rest_a, pad_a[-1]), (pad_b[0], rest_b))


@exercise.misconception(fails=classify_tensors, breaks=["tuples of axes", "the same axes in the same order"])
def classify_in_any_order(eq, spec_a, spec_b):
    """You took ("x", "y") and ("y", "x") for the same sharding. The two orders give a device different blocks, so the operands do not match."""
    if classify(eq, spec_a, spec_b) == "illegal":
        return "illegal"
    in_order = [[tuple(sorted(axes_of(entry))) or None for entry in spec] for spec in (spec_a, spec_b)]
    return classify(eq, *in_order)


@exercise.misconception(fails=classify_tensors, breaks="batch letters")
def classify_batch_twice(eq, spec_a, spec_b):
    """You counted the axis of a batch letter twice. Both operands have this letter, but it is one letter of the output."""
    answer = classify(eq, spec_a, spec_b)
    operands, kept = eq.split("->")
    cuts = [
        dict(zip(part, map(axes_of, s), strict=False))
        for part, s in zip(operands.split(","), (spec_a, spec_b), strict=True)
        if answer != "illegal"
    ]
    out = [axis for cut in cuts for letter in kept for axis in cut.get(letter, ())]
    return 4 if len(set(out)) < len(out) else answer


@exercise.misconception(fails=classify_tensors, breaks="A kept letter that is cut in only one operand")
def classify_batch_in_one(eq, spec_a, spec_b):
    """You answered 4 because only one operand cuts a batch letter. The other operand is whole along this letter, and each device takes its own part: no clash."""
    answer = classify(eq, spec_a, spec_b)
    operands, kept = eq.split("->")
    if answer == "illegal":
        return answer
    cuts = [
        {letter for letter, entry in zip(part, spec, strict=False) if entry}
        for part, spec in zip(operands.split(","), (spec_a, spec_b), strict=True)
    ]
    batch = set.intersection(set(kept), *map(set, operands.split(",")))
    return 4 if batch & (cuts[0] ^ cuts[1]) else answer


@exercise.misconception(fails=classify_illegal, breaks="specs that are no valid sharding")
def classify_everything(eq, spec_a, spec_b):
    """You accepted every spec as a sharding. A spec is illegal if it names an axis twice or has more entries than its operand has dimensions."""
    answer = classify(eq, spec_a, spec_b)
    return 1 if answer == "illegal" else answer


@exercise.misconception(fails=classify_illegal, breaks="more entries than its operand has letters")
def classify_long_specs(eq, spec_a, spec_b):
    """You accepted a spec with more entries than its operand has letters. Compare the two lengths: such a spec is illegal."""
    first, second = eq.split("->")[0].split(",")
    return classify(eq, spec_a[: len(first)], spec_b[: len(second)])


@exercise.misconception(of=partial_sum_bytes)
def partial_cut_by_y(I, J, K, X, Y, Z):
    """You divided by Y too. y cuts the summed letter, so each device along y holds a partial sum of full size."""
    return 4 * I * K / (X * Y * Z)


@exercise.misconception(of=partial_sum_bytes)
def partial_not_cut(I, J, K, X, Y, Z):
    """You counted all of C. x and z cut its rows and columns. Only y leaves partial sums."""
    return 4 * I * K


@exercise.misconception(of=partial_sum_bytes)
def partial_rows_only(I, J, K, X, Y, Z):
    """You cut only the rows of C. z cuts the columns of C."""
    return 4 * I * K / X


@exercise.misconception(of=partial_sum_bytes)
def partial_elements(I, J, K, X, Y, Z):
    """You counted numbers, not bytes. A float32 takes 4 bytes."""
    return I * K / (X * Z)


exercise.scenario(
    partial_sum_bytes,
    lambda I, J, K, X, Y, Z: Scenario(
        mesh={"x": X, "y": Y, "z": Z}, arrays=[((I, J), P("x", "y")), ((J, K), P("y", "z"))]
    ),
)


@exercise.misconception(of=how_many_shardings)
def shardings_in_any_order(r, k):
    """You let each axis choose a dimension, or none. Two axes on one dimension have two orders, and each order is a different layout."""
    return (r + 1) ** k


@exercise.misconception(of=how_many_shardings)
def shardings_by_all_axes(r, k):
    """You used every axis. A spec may leave out an axis: the devices along it hold copies."""
    return math.perm(k, k) * math.comb(k + r - 1, r - 1)


@exercise.misconception(of=how_many_shardings)
def shardings_without_tuples(r, k):
    """You gave each dimension at most one axis. A tuple of several axes may cut one dimension."""
    return sum(math.comb(k, j) * math.perm(r, j) for j in range(k + 1))


exercise.scenario(how_many_shardings, lambda r, k: Scenario())
