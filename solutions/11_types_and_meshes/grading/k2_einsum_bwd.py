"""K2: checks, misconceptions and alternatives."""

import itertools

from grader.exercise import Scenario
from grader.expect import Failure, expect_outcomes
from k2_einsum_bwd import columns_to_overlap, einsum_bwd, exercise, gradient_bytes, scale_gradients


def einsum_rule(equation, placements):
    """Return the placement of the output, as in K1; None if no placement is right."""
    inputs, out = equation.split("->")
    inputs, others = inputs.split(","), [place for place in placements if place != "R"]
    if "P" in others:
        return "P" if len(others) == 1 else None
    cut = {term[int(place[2:-1])] for term, place in zip(inputs, placements, strict=True) if place != "R"}
    if len(cut) > 1 or any(cut & set(term) and place == "R" for term, place in zip(inputs, placements, strict=True)):
        return None
    return next((f"S({out.index(letter)})" if letter in out else "P" for letter in cut), "R")


EQUATIONS = [
    "sbi,io->sbo", "sbh,h->sbh", "ij,jk->ki", "bij,bjk->bik", "bnef,fh->nebh", "ij,ij->i", "ij,jk,kl->il", "bqhd,bkhd->bhqk",
]  # fmt: skip
SIZES = dict(zip("abcdefghijklmnopqrs", itertools.cycle([12, 24, 36, 60, 84]), strict=False))


def every_case():
    """List every equation with all fitting placements of its operands, of the gradients, and of the output."""
    for equation in EQUATIONS:
        terms = equation.split("->")[0].split(",")
        for places in itertools.product(*(["R", "P", *(f"S({d})" for d in range(len(term)))] for term in terms)):
            case = {"equation": equation, "placements": list(places)}
            if out := einsum_rule(**case):
                yield case, [place for _, place in einsum_bwd(**case)], out


def drawn(admit, most=40):
    """Draw cases that ``admit`` accepts. ``admit`` gets the placements of operands, of gradients, and of the output."""

    def draw(rng):
        cases = [case for case, found, out in every_case() if admit(case["placements"], found, out)]
        return [cases[i] for i in rng.permutation(len(cases))[:most]]

    return draw


def sized(rng):
    """Draw einsums with sizes, on 2 to 12 devices; half of them have a pending gradient."""
    for admit in (lambda places, found, out: "P" in found, lambda places, found, out: "P" not in found):
        for case in drawn(admit, most=25)(rng):
            sizes = dict(zip(SIZES, (12 * rng.integers(1, 9, len(SIZES))).tolist(), strict=True))
            used = {letter: sizes[letter] for letter in case["equation"] if letter.isalpha()}
            yield {"gradients": einsum_bwd(**case), "sizes": used, "devices": int(rng.choice([2, 3, 4, 6, 12]))}


COLUMNS = {"equation": "sbi,io->sbo", "placements": ["R", "S(1)"]}
SCALE = {"equation": "sbh,h->sbh", "placements": ["S(0)", "R"]}
ROWS = {"equation": "ij,jk->ik", "placements": ["S(1)", "S(0)"]}
turned = exercise.cases(einsum_bwd, public=[COLUMNS, ROWS], hidden=drawn(lambda places, found, out: True))
settled = exercise.cases(
    einsum_bwd,
    public=[{"equation": "ij,jk->ik", "placements": ["R", "R"]}, {"equation": "bij,bjk->bik", "placements": ["S(0)", "S(0)"]}],
    hidden=drawn(lambda places, found, out: "P" not in [*places, *found, out]),
)  # fmt: skip
pending = exercise.cases(
    einsum_bwd,
    public=[COLUMNS, SCALE, {"equation": "bij,jk->bik", "placements": ["S(0)", "R"]}],
    hidden=drawn(lambda places, found, out: "P" in found and "P" not in [*places, out]),
)
reduced = exercise.cases(
    einsum_bwd,
    public=[ROWS],
    hidden=drawn(lambda places, found, out: out == "P"),
)
volumes = exercise.cases(
    gradient_bytes,
    public=[
        {
            "gradients": [("sbo,io->sbi", "P"), ("sbi,sbo->io", "S(1)")],
            "sizes": {"s": 24, "b": 3, "i": 8, "o": 12},
            "devices": 4,
        },
        {"gradients": [("sbh,h->sbh", "S(0)"), ("sbh,sbh->h", "P")], "sizes": {"s": 12, "b": 3, "h": 8}, "devices": 4},
    ],
    hidden=sized,
)


@exercise.helper
def expect_gradients(seen, part):
    """Compare the equation (``part`` 0) or the placement (``part`` 1) of every gradient."""
    for args, got, want in seen.outcomes:
        due = [gradient[part] for gradient in want.value]
        try:
            found = [(*gradient,)[part] for gradient in got.value]
            plain = all(len(gradient) == 2 for gradient in got.value)
        except (TypeError, IndexError):
            found, plain = None, got.error is not None
        call = f"for {args['equation']!r} with {args['placements']}"
        if not plain:
            raise Failure(
                f"{call if seen.public else 'for a hidden case'} it returned no list of (equation, placement)"
            )
        if found != due:
            raised = f"raised {got.error}" if got.error else f"gives the gradients {found}"
            told = f"{call} it {raised}, expected: {due}"
            raise Failure(told if seen.public else "a gradient of a hidden case is wrong", staff=told)


@exercise.check(turned, points=0.75, public=True)
def bwd_equations(seen):
    """einsum_bwd: the equations of the gradients"""
    expect_gradients(seen, 0)


@exercise.check(settled, points=0.5, public=True)
def bwd_settled(seen):
    """einsum_bwd: gradients with their operand's placement"""
    expect_gradients(seen, 1)


@exercise.check(pending, points=0.75, public=True)
def bwd_pending(seen):
    """einsum_bwd: pending gradients of whole operands"""
    expect_gradients(seen, 1)


@exercise.check(reduced, points=0.5, public=True)
def bwd_of_sums(seen):
    """einsum_bwd: gradients if the output or an operand is a partial sum"""
    expect_gradients(seen, 1)


@exercise.check(volumes, points=0.5, public=True)
def bytes_pending(seen):
    """gradient_bytes: bytes of the all-reduces of pending gradients"""
    expect_outcomes(seen, rtol=1e-9)


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(of=einsum_bwd, fails=bwd_equations, breaks="the equation of each gradient")
def letters_not_swapped(equation, placements):
    """You kept the equation. A gradient is computed from the output's gradient and has the letters of its operand: swap
    the operand and the output."""
    return [(equation, place) for _, place in einsum_bwd(equation, placements)]


@exercise.misconception(of=einsum_bwd, fails=bwd_equations, breaks="the equation of each gradient")
def output_goes_first(equation, placements):
    """You put the output's gradient first or last. Put it in the operand's place, so that the other operands keep their
    order."""
    operands, out = equation.split("->")
    terms = operands.split(",")
    moved = [",".join([out, *terms[:i], *terms[i + 1 :]]) + "->" + term for i, term in enumerate(terms)]
    return [(eq, place) for eq, (_, place) in zip(moved, einsum_bwd(equation, placements), strict=True)]


@exercise.misconception(form_of=output_goes_first)
def output_goes_last(equation, placements):
    """Like `output_goes_first`, but the output's gradient comes last."""
    operands, out = equation.split("->")
    terms = operands.split(",")
    moved = [",".join([*terms[:i], *terms[i + 1 :], out]) + "->" + term for i, term in enumerate(terms)]
    return [(eq, place) for eq, (_, place) in zip(moved, einsum_bwd(equation, placements), strict=True)]


@exercise.misconception(
    of=einsum_bwd, fails=[bwd_pending, bwd_of_sums], breaks="the placement of its operand, or pending"
)
def pending_missed(equation, placements):
    """You treated every gradient as complete. If devices multiply a whole operand by different parts, each has only a
    share of the operand's gradient: "P"."""
    return [(eq, "R" if place == "P" else place) for eq, place in einsum_bwd(equation, placements)]


@exercise.misconception(form_of=pending_missed, breaks="the placement of its operand, or pending")
def operands_placements_kept(equation, placements):
    """Like `pending_missed`, but a partial sum has a pending gradient."""
    return [(eq, place) for (eq, _), place in zip(einsum_bwd(equation, placements), placements, strict=True)]


@exercise.misconception(of=einsum_bwd, fails=bwd_pending, breaks="the placement of its operand, or pending")
def only_the_batch_watched(equation, placements):
    """You considered only a cut batch. Any cut letter that the operand lacks makes the operand's gradient pending, also the
    letter of a sequence or of columns."""
    terms = equation.split("->")[0].split(",")
    cut = {term[int(place[2:-1])] for term, place in zip(terms, placements, strict=True) if place[0] == "S"}
    pending = "P" in [*placements, einsum_rule(equation, placements)] or "b" in cut
    return [(eq, "R" if place == "P" and not pending else place) for eq, place in einsum_bwd(equation, placements)]


@exercise.misconception(of=einsum_bwd, fails=bwd_of_sums, breaks="the output or an operand is a partial sum")
def cotangent_of_a_sum_pending(equation, placements):
    """You treated the gradient of a partial sum as a partial sum. A sum passes its gradient unchanged to each summand,
    so this gradient is "R". A reduction would make it N times too large."""
    if einsum_rule(equation, placements) != "P":
        return einsum_bwd(equation, placements)
    return [(eq, "P") for eq, _ in einsum_bwd(equation, placements)]


@exercise.misconception(of=einsum_bwd, fails=bwd_of_sums, breaks="the output or an operand is a partial sum")
def other_operands_of_a_sum_settled(equation, placements):
    """If an operand is a partial sum, each device multiplies the other operands by its own part of the sum. So their gradients are pending."""
    gradients = einsum_bwd(equation, placements)
    return [(eq, "R") if place == "P" and "P" in placements else (eq, place) for eq, place in gradients]


@exercise.misconception(
    of=einsum_bwd, fails=[bwd_settled, bwd_of_sums], breaks="the placement of its operand, or pending"
)
def whole_reduced(equation, placements):
    """You reduced gradients that are already complete on each device, which counts them N times. Reduce a gradient
    only if the devices multiplied its operand by different parts."""
    return [(eq, "P" if place == "R" else place) for eq, place in einsum_bwd(equation, placements)]


@exercise.misconception(of=gradient_bytes, fails=bytes_pending, breaks="the all-reduces of pending gradients")
def all_gradients_counted(gradients, sizes, devices):
    """You counted every gradient. Only pending gradients are reduced."""
    return gradient_bytes([(eq, "P") for eq, _ in gradients], sizes, devices)


@exercise.misconception(of=gradient_bytes, fails=bytes_pending, breaks="2 (N−1)/N · 4 bytes per number")
def one_way_round(gradients, sizes, devices):
    """Either you counted half of an all-reduce, or two bytes per number. An all-reduce is a reduce-scatter and an all-gather, each of N - 1 hops. A float32 has four bytes."""
    return gradient_bytes(gradients, sizes, devices) // 2


@exercise.misconception(of=gradient_bytes, fails=bytes_pending, breaks="2 (N−1)/N · 4 bytes per number")
def own_chunk_sent_too(gradients, sizes, devices):
    """You let a device send all N chunks in each half of the all-reduce. Each half has N - 1 hops of one chunk."""
    return gradient_bytes(gradients, sizes, devices) * devices // (devices - 1)


@exercise.misconception(of=gradient_bytes, fails=bytes_pending, breaks="2 (N−1)/N · 4 bytes per number")
def whole_gradient_each_hop(gradients, sizes, devices):
    """You sent the whole gradient in each hop. A ring all-reduce sends chunks of 1/N."""
    return gradient_bytes(gradients, sizes, devices) * devices


@exercise.misconception(of=gradient_bytes, fails=bytes_pending, breaks="2 (N−1)/N · 4 bytes per number")
def bytes_of_the_terms(gradients, sizes, devices):
    """You multiplied the sizes of all letters in the equation, which counts multiplications. The array that is sent has
    only the letters after the arrow."""
    every = [("->" + "".join(sorted(set(eq) - set(",->"))), place) for eq, place in gradients]
    return gradient_bytes(every, sizes, devices)


@exercise.misconception(of=columns_to_overlap)
def columns_of_one_pass(**drawn):
    """Your answer is too low by a factor of two. An all-reduce is two passes of V / W. V has 2 bytes per number, and a
    matmul has 2 FLOPs per multiplication."""
    return columns_to_overlap(**drawn) / 2


@exercise.misconception(of=columns_to_overlap)
def columns_of_one_way(**drawn):
    """Your answer is too high by a factor of two. Use both directions of the link, 2 bytes per number, and 2 FLOPs per
    multiplication."""
    return columns_to_overlap(**drawn) * 2


@exercise.misconception(of=columns_to_overlap)
def columns_per_chip(X, **rest):
    """You gave the columns of one chip. Each chip multiplies o / X columns, so the whole dimension is X times as
    large."""
    return columns_to_overlap(X=X, **rest) / X


@exercise.misconception(of=scale_gradients)
def scales_once(**drawn):
    """Your answer is too low by a factor of two. Each layer has two norms, and an all-reduce has two passes."""
    return scale_gradients(**drawn) / 2


@exercise.misconception(of=scale_gradients)
def scales_all_chunks(X, **rest):
    """You let each device send all N chunks twice. Each half of an all-reduce has N - 1 hops of one chunk."""
    return scale_gradients(X=X, **rest) * X / (X - 1)


@exercise.misconception(of=scale_gradients)
def scales_cut(X, **rest):
    """You divided the gradient by the number of devices once too often. The scale is whole, so each device holds a
    partial sum of full shape."""
    return scale_gradients(X=X, **rest) / X


exercise.scenario(
    columns_to_overlap,
    lambda chip, X, S, B, I: Scenario(chip=chip, rings=(X,), mesh={"x": X}),
    published=[2550, 850, 8192, 10200, 12.8],
)
exercise.scenario(scale_gradients, lambda L, H, X: Scenario(mesh={"x": X}, arrays=[((96 * X, 2, H), ("x",))]))


# -- other styles ------------------------------------------------------------------------------


@exercise.alternative(of=einsum_bwd)
def by_the_rule_of_k1(equation, placements):
    """Apply the forward rule to the equation in which the output's gradient replaces the operand."""

    def rule(equation, placements):
        inputs, out = equation.split("->")
        if "P" in placements:
            return "P"
        for term, place in zip(inputs.split(","), placements, strict=False):
            if place != "R":
                letter = term[int(place[2:-1])]
                return f"S({out.index(letter)})" if letter in out else "P"
        return "R"

    result = rule(equation, placements)
    inputs, out = equation.split("->")
    inputs = inputs.split(",")
    gradients = ()
    for i in range(len(inputs)):
        terms, places = list(inputs), list(placements)
        terms[i], places[i] = out, "R" if result == "P" else result
        turned = f"{','.join(terms)}->{inputs[i]}"
        gradients += ((turned, rule(turned, places)),)
    return gradients


@exercise.alternative(of=gradient_bytes)
def chunk_by_chunk(gradients, sizes, devices):
    """Count chunks and hops, in floats."""
    total = 0.0
    for gradient in gradients:
        if "P" in gradient[1]:
            chunk = 4.0 / devices
            for letter in gradient[0][gradient[0].index(">") + 1 :]:
                chunk *= sizes[letter]
            total += chunk * (devices - 1) + chunk * (devices - 1)
    return total
