"""K1: checks, misconceptions and alternatives."""

import contextlib
import itertools
import math

import numpy as np

from grader.exercise import Scenario
from grader.expect import Failure, expect_outcomes
from k1_einsum_rule import einsum_rule, elementwise_rule, exercise, pending_bytes, pieces_that_meet


@exercise.helper
def parts(rng, whole, place, devices):
    """Return each device's part of an integer array; partial sums are random and of both signs."""
    if place == "R":
        return [whole] * devices
    if place == "P":
        some = [rng.integers(-50, 50, size=whole.shape) for _ in range(devices - 1)]
        return [*some, whole - sum(some)]
    return np.split(whole, devices, axis=int(place[2:-1]))


@exercise.helper
def placement_of(held, due):
    """Return the placement for which these parts represent the expected array; None if no placement does."""
    for place in ["R", *(f"S({d})" for d in range(due.ndim)), "P"]:
        if place == "R":
            meant = held[0] if all(np.array_equal(part, held[0]) for part in held) else None
        else:
            meant = sum(held) if place == "P" else np.concatenate(held, axis=int(place[2:-1]))
        if meant is not None and np.array_equal(meant, due):
            return place
    return None


@exercise.helper
def tried(rng, fn, shapes, placements, devices):
    """Find the placement of the result of ``fn`` by trial: draw arrays, cut them, compute on each device, and
    compare."""
    wholes = [rng.integers(-50, 50, size=shape) for shape in shapes]
    held = zip(
        *(parts(rng, whole, place, devices) for whole, place in zip(wholes, placements, strict=True)), strict=True
    )
    with contextlib.suppress(ValueError, IndexError):  # parts that do not fit
        return placement_of([fn(*operands) for operands in held], fn(*wholes))
    return None


@exercise.helper
def by_einsum(equation, placements, devices=3):
    """Find the placement of an einsum's result by trial."""
    lists = equation.partition("->")[0].split(",")
    sizes = {letter: devices * (2 + i % 3) for i, letter in enumerate(sorted({*"".join(lists)}))}
    shapes = [[sizes[letter] for letter in letters] for letters in lists]
    return tried(np.random.default_rng(7), lambda *held: np.einsum(equation, *held), shapes, placements, devices)


@exercise.helper
def by_element(op, placements, devices=3):
    """Find the placement of an elementwise function's result by trial."""
    ops = {"triple": lambda x: 3 * x, "add": np.add, "relu": lambda x: np.maximum(x, 0), "add_one": lambda x: x + 1}
    shapes = [[2 * devices, devices, 4 * devices]] * len(placements)
    return tried(np.random.default_rng(7), ops[op], shapes, placements, devices)


EQUATIONS = [
    "ij,jk->ik",
    "ij,jk->ki",
    "bij,bjk->bik",
    "i,j->ij",
    "ij,ij->i",
    "sbi,io->sbo",
    "ij,jk,kl->il",
    "sbh,h->sbh",
]
GRAPHS = ["bnef,fh->bneh", "bnef,fh->nebh", "bnef,bnf->bne"]
MATMUL = "ij,jk->ik"


def every_placement(terms):
    return itertools.product(*(["R", "P", *(f"S({d})" for d in range(len(term)))] for term in terms))


def drawn(equations, admit, most=30):
    """Draw at most ``most`` cases for each kind of placement that `by_einsum` returns."""

    def draw(rng):
        found = {}
        for equation in equations:
            for places in every_placement(equation.split("->")[0].split(",")):
                case = {"equation": equation, "placements": list(places)}
                result = by_einsum(**case)
                if admit(places, result):
                    found.setdefault((result or "none")[0], []).append(case)
        return [cases[i] for cases in found.values() for i in rng.permutation(len(cases))[:most]]

    return draw


def matmuls(*placements):
    return [{"equation": MATMUL, "placements": list(places)} for places in placements]


placed = exercise.cases(
    einsum_rule,
    public=matmuls(("R", "R"), ("S(0)", "R"), ("S(1)", "S(0)")),
    hidden=drawn(EQUATIONS, lambda places, result: "P" not in places and result),
)
graphs = exercise.cases(
    einsum_rule,
    public=[{"equation": GRAPHS[0], "placements": [place, "R"]} for place in ("S(0)", "S(1)", "S(2)")],
    hidden=drawn(GRAPHS, lambda places, result: "P" not in places and result),
)
sums = exercise.cases(
    einsum_rule,
    public=matmuls(("P", "R")),
    hidden=drawn([*EQUATIONS, *GRAPHS], lambda places, result: "P" in places and result),
)
apart = exercise.cases(
    einsum_rule,
    public=matmuls(("S(1)", "R")),
    hidden=drawn([*EQUATIONS, *GRAPHS], lambda places, result: "P" not in places and not result),
)
mixed = exercise.cases(
    einsum_rule,
    public=matmuls(("P", "P")),
    hidden=drawn([*EQUATIONS, *GRAPHS], lambda places, result: "P" in places and not result, most=60),
)
ELEMENTWISE = [
    {"op": op, "placements": list(places)}
    for op in ("triple", "add", "relu", "add_one")
    for places in itertools.product(["R", "S(0)", "S(1)", "S(2)", "P"], repeat=2 if op == "add" else 1)
]
exact = exercise.cases(
    elementwise_rule,
    public=[{"op": "triple", "placements": ["S(1)"]}, {"op": "add", "placements": ["S(0)", "S(0)"]}],
    hidden=lambda rng: [case for case in ELEMENTWISE if "P" not in case["placements"]],
)
of_a_sum = exercise.cases(
    elementwise_rule,
    public=[{"op": op, "placements": ["P"]} for op in ("triple", "relu", "add_one")],
    hidden=lambda rng: [case for case in ELEMENTWISE if "P" in case["placements"]],
)


@exercise.helper
def expect_as_tried(seen, trial):
    """Compare the rule with a trial, which cuts arrays and computes part by part."""
    for args, got, _ in seen.outcomes:
        if got.value != (due := trial(**args)) and seen.public and isinstance(got.value, str):
            meant = f"the parts have placement {due}" if due else "no placement gives the right result"
            call = ", ".join(f"{name}={value!r}" for name, value in args.items())
            raise Failure(f"for {call} it returned {got.value!r}; on three devices, {meant}", actual=got.value)
    expect_outcomes(seen)


@exercise.check(placed, points=0.5, public=True)
def of_shards(seen):
    """einsum_rule: whole and cut operands, compared with parts computed by NumPy"""
    expect_as_tried(seen, by_einsum)


@exercise.check(graphs, points=0.5, public=True)
def of_graphs(seen):
    """einsum_rule: a batch with four dimensions; each dimension may be cut"""
    expect_as_tried(seen, by_einsum)


@exercise.check(sums, points=0.5, public=True, after=of_shards)
def of_sums(seen):
    """einsum_rule: operands that are partial sums"""
    expect_as_tried(seen, by_einsum)


@exercise.check(apart, points=0.5, public=True, after=of_shards)
def no_fit(seen):
    """einsum_rule: ValueError when parts do not fit"""
    expect_as_tried(seen, by_einsum)


@exercise.check(mixed, points=0.5, after=of_sums)
def no_sum(seen):
    """einsum_rule: ValueError if partial sums do not give a partial sum of the result"""
    expect_as_tried(seen, by_einsum)


@exercise.check(exact, points=0.25, public=True)
def elementwise_exact(seen):
    """elementwise_rule: whole and cut operands"""
    expect_as_tried(seen, by_element)


@exercise.check(of_a_sum, points=0.25, public=True)
def elementwise_sums(seen):
    """elementwise_rule: partial sums of mixed signs"""
    expect_as_tried(seen, by_element)


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(of=einsum_rule, fails=of_sums, breaks="partial sums, and")
def partial_dropped(equation, placements):
    """You forgot that an operand is a partial sum. An einsum is linear in one operand, so its result is a partial sum
    too."""
    if placements.count("P") == 1 and placements.count("R") == len(placements) - 1:
        return "R"
    return einsum_rule(equation, placements)


@exercise.misconception(of=einsum_rule, fails=no_sum, breaks="`ValueError` if the result has no placement")
def sums_are_multiplied(equation, placements):
    """You multiplied two partial sums device by device, which loses all mixed terms. An einsum is linear in only one
    operand at a time."""
    if placements.count("P") > 1:
        return "P"
    return einsum_rule(equation, placements)


@exercise.misconception(of=einsum_rule, fails=no_sum, breaks="`ValueError` if the result has no placement")
def a_sum_beside_a_cut(equation, placements):
    """You combined a partial sum with a cut operand. Each device multiplies its own partial sum only by its own part of
    the other operand. The products with the other parts are missing."""
    if placements.count("P") == 1:
        return "P"
    return einsum_rule(equation, placements)


@exercise.misconception(form_of=a_sum_beside_a_cut)
def a_sum_lost_beside_a_cut(equation, placements):
    """Like `a_sum_beside_a_cut`, but the result has the placement that the cut gives."""
    if "P" in placements and any(place[0] == "S" for place in placements):
        return einsum_rule(equation, ["R" if place == "P" else place for place in placements])
    return einsum_rule(equation, placements)


@exercise.misconception(of=einsum_rule, fails=[of_shards, of_graphs], breaks="whole and cut operands")
def contraction_is_whole(equation, placements):
    """You treated the contraction of cut operands as a whole result. Each device has summed only its own terms, so the
    result is a partial sum."""
    found = einsum_rule(equation, placements)
    return "R" if found == "P" and "P" not in placements else found


@exercise.misconception(of=einsum_rule, fails=no_fit, breaks="`ValueError` when parts do not fit")
def one_cut_is_enough(equation, placements):
    """You looked at the cut of one operand. Every other operand with the cut letter must be cut along this letter too, or the parts
    do not fit."""
    if "P" in placements:
        return einsum_rule(equation, placements)
    operands, out = equation.split("->")
    cut = [term[int(place[2:-1])] for term, place in zip(operands.split(","), placements, strict=True) if place != "R"]
    if not cut:
        return "R"
    return f"S({out.index(cut[0])})" if cut[0] in out else "P"


@exercise.misconception(form_of=one_cut_is_enough)
def one_cut_is_enough_for_whole_operands(equation, placements):
    """Like `one_cut_is_enough`, but two different cuts are refused."""
    operands, out = equation.split("->")
    cut = {t[int(place[2:-1])] for t, place in zip(operands.split(","), placements, strict=True) if place[0] == "S"}
    if "P" in placements or len(cut) != 1:
        return einsum_rule(equation, placements)
    [letter] = cut
    return f"S({out.index(letter)})" if letter in out else "P"


@exercise.misconception(of=einsum_rule, fails=no_fit, breaks="`ValueError` when parts do not fit")
def two_letters_on_one_axis(equation, placements):
    """You let one mesh axis cut two letters, one in each operand. Each device then computes only the block of its own
    index, so only the diagonal blocks exist."""
    operands, out = equation.split("->")
    terms = operands.split(",")
    try:
        return einsum_rule(equation, placements)
    except ValueError:
        cut = [term[int(place[2:-1])] for term, place in zip(terms, placements, strict=True) if place[0] == "S"]
        if len(set(cut)) < 2 or "P" in placements:
            raise
        return f"S({out.index(cut[0])})" if cut[0] in out else "P"


def an_operands_position(seen):
    """For `gives`: require a cut operand's placement where the result is cut, and the right outcome elsewhere."""
    for args, got, want in seen.outcomes:
        cut = want.value is not None and want.value[0] == "S"
        right = [place for place in args["placements"] if place[0] == "S"] if cut else [want.value]
        if got.value not in right:
            raise Failure("the placement is not an operand's")


@exercise.misconception(
    of=einsum_rule, fails=[of_shards, of_graphs], gives=an_operands_position, breaks="whole and cut operands"
)
def position_kept(equation, placements):
    """You kept the operand's dimension number. Look the letter up in the output, where it may have another position."""
    found = einsum_rule(equation, placements)
    return next(place for place in placements if place[0] == "S") if found[0] == "S" else found


@exercise.misconception(of=einsum_rule, fails=[of_shards, of_graphs], breaks="whole and cut operands")
def counted_from_one(equation, placements):
    """You counted dimensions from 1. The first letter is dimension 0."""
    found = einsum_rule(equation, placements)
    return f"S({int(found[2:-1]) + 1})" if found[0] == "S" else found


@exercise.misconception(of=einsum_rule, fails=of_graphs, breaks="cut along any dimension")
def only_the_first_is_batch(equation, placements):
    """You allowed a cut only along dimension 0. Every letter of the output may be cut: b, n and e."""
    terms = equation.split("->")[0].split(",")
    if any(len(term) > 3 and place in ("S(1)", "S(2)") for term, place in zip(terms, placements, strict=True)):
        raise ValueError("only the batch can be cut")
    return einsum_rule(equation, placements)


@exercise.misconception(of=elementwise_rule, fails=elementwise_sums, breaks="the four operations")
def triple_of_a_sum_is_whole(op, placements):
    """You treated the triple of a partial sum as a whole array. Each device triples its own summand, so the result is still a partial sum."""
    return "R" if (op, placements) == ("triple", ["P"]) else elementwise_rule(op, placements)


@exercise.misconception(of=elementwise_rule, fails=elementwise_sums, breaks="the four operations")
def every_op_keeps_a_sum(op, placements):
    """You accepted partial sums for relu and + 1. relu is linear only on positive numbers: try 5 and -3. With + 1 every
    device adds 1, so the sum grows by N."""
    if len(set(placements)) > 1:
        raise ValueError("the operands have different placements")
    return placements[0]


@exercise.misconception(of=elementwise_rule, fails=elementwise_sums, breaks="the four operations")
def relu_keeps_a_sum(op, placements):
    """You accepted partial sums for relu. relu is linear only on positive numbers: try 5 and -3."""
    return placements[0] if op == "relu" else elementwise_rule(op, placements)


@exercise.misconception(of=elementwise_rule, fails=elementwise_sums, breaks="the four operations")
def one_is_added_once(op, placements):
    """You accepted partial sums for + 1. Every device adds 1 to its summand, so the sum grows by N. Add a bias after
    the reduction."""
    if op == "add_one":
        return placements[0]
    return elementwise_rule(op, placements)


@exercise.misconception(of=elementwise_rule, fails=elementwise_sums, breaks="the four operations")
def a_sum_goes_nowhere(op, placements):
    """You refused all partial sums. Linear operations (3·x, the sum of two partial sums) may come before the
    reduction."""
    if "P" in placements:
        raise ValueError("reduce first")
    return elementwise_rule(op, placements)


@exercise.misconception(of=elementwise_rule, fails=elementwise_sums, breaks="the four operations")
def whole_added_to_a_sum(op, placements):
    """You added a whole array to a partial sum. Every device adds the whole array, so the sum contains it N times."""
    if sorted(placements) == ["P", "R"]:
        return "P"
    return elementwise_rule(op, placements)


@exercise.misconception(of=elementwise_rule, fails=elementwise_exact, breaks="the four operations")
def cut_beats_whole(op, placements):
    """You added a whole array to a cut array. The shapes differ, so slice the whole array first."""
    cuts = {place for place in placements if place != "R"}
    if "R" in placements and len(cuts) == 1 and "P" not in cuts:
        return cuts.pop()
    return elementwise_rule(op, placements)


@exercise.misconception(of=pending_bytes)
def pending_once(**drawn):
    """You counted half of the hops. A ring all-reduce is a reduce-scatter and an all-gather: 2·(X - 1) hops."""
    return pending_bytes(**drawn) / 2


@exercise.misconception(of=pending_bytes)
def pending_all_chunks(X, **rest):
    """You counted X hops for each half of the all-reduce. Each half needs X - 1 hops."""
    return pending_bytes(X=X, **rest) * X / (X - 1)


@exercise.misconception(of=pending_bytes)
def pending_shard(X, **rest):
    """You reduced 1/X of the result. The cut letter is summed, so each device holds an array of full shape."""
    return pending_bytes(X=X, **rest) / X


@exercise.misconception(of=pending_bytes)
def pending_input(F, H, **rest):
    """You reduced x. The partial sum is the result, which has h in place of f."""
    return pending_bytes(F=F, H=H, **rest) * F / H


@exercise.misconception(of=pieces_that_meet)
def all_pieces_meet(X, Y):
    """You treated the two orders as equal. With ("x", "y") device (i, j) holds part i·Y + j. With ("y", "x") it
    holds part j·X + i. On most devices the two numbers differ."""
    return X * Y


@exercise.misconception(of=pieces_that_meet)
def diagonal_meets(X, Y):
    """You counted the devices with i = j. The parts are i·Y + j and j·X + i. If X and Y differ, i = j does not make
    them equal."""
    return min(X, Y)


@exercise.misconception(of=pieces_that_meet)
def first_device_left_out(X, Y):
    """You left out device (0, 0): its parts have index 0 in both operands."""
    return math.gcd(X - 1, Y - 1)


@exercise.misconception(of=pieces_that_meet)
def corners_meet(X, Y):
    """You counted only the first and the last device. i·(Y - 1) = j·(X - 1) has more solutions if X - 1 and Y - 1 share
    a factor."""
    return 2


exercise.scenario(
    pending_bytes,
    lambda B, N, E, F, H, X: Scenario(
        mesh={"x": X}, arrays=[((B, N, E, F), (None, None, None, "x")), ((F, H), ("x",))]
    ),
)
exercise.scenario(
    pieces_that_meet,
    lambda X, Y: Scenario(
        mesh={"x": X, "y": Y}, arrays=[((3, X * Y), (None, ("x", "y"))), ((X * Y, 5), (("y", "x"), None))]
    ),
)


# -- other styles ------------------------------------------------------------------------------


@exercise.alternative(of=einsum_rule)
def by_letter(equation, placements):
    """Loop over the letters of the output and the summed letters, and look at the cuts of each letter."""
    inputs, out = equation.split("->")
    inputs = inputs.split(",")
    if "P" in placements:
        others = [place for place in placements if place != "R"]
        if others != ["P"]:
            raise ValueError
        return "P"
    result = "R"
    for letter in sorted(set("".join(inputs))):
        ways = {
            place == f"S({term.index(letter)})"
            for term, place in zip(inputs, placements, strict=False)
            if letter in term
        }
        if ways == {True, False}:
            raise ValueError(letter)
        if ways == {True}:
            if result != "R":
                raise ValueError("two letters on one axis")
            result = f"S({out.index(letter)})" if letter in out else "P"
    return result


@exercise.alternative(of=einsum_rule)
def by_trial(equation, placements):
    """Find the placement by trial: cut random arrays, compute on two devices and compare."""
    import numpy as np

    rng = np.random.default_rng(0)
    inputs, out = equation.split("->")
    inputs = inputs.split(",")
    sizes = {letter: 2 * (2 + i % 2) for i, letter in enumerate(sorted(set("".join(inputs))))}
    wholes = [rng.normal(size=[sizes[letter] for letter in term]) for term in inputs]
    per_device = [[], []]
    for whole, place in zip(wholes, placements, strict=False):
        if place == "R":
            halves = [whole, whole]
        elif place == "P":
            first = rng.normal(size=whole.shape)
            halves = [first, whole - first]
        else:
            halves = np.split(whole, 2, axis=int(place[2:-1]))
        for device, half in zip(per_device, halves, strict=False):
            device.append(half)
    one, other = (np.einsum(equation, *operands) for operands in per_device)
    due = np.einsum(equation, *wholes)
    if one.shape == due.shape and np.allclose(one, due) and np.allclose(other, due):
        return "R"
    for d in range(len(out)):
        joined = np.concatenate([one, other], axis=d)
        if joined.shape == due.shape and np.allclose(joined, due):
            return f"S({d})"
    if one.shape == due.shape and np.allclose(one + other, due):
        return "P"
    raise ValueError("none")


@exercise.alternative(of=elementwise_rule)
def by_linearity(op, placements):
    """First test whether the function is linear."""
    first, *rest = placements
    linear = op in ("triple", "add")
    if any(place != first for place in rest) or (first == "P" and not linear):
        raise ValueError(f"{op} of {placements}")
    return first
