import math


def reads(equation, placements):
    left, out = equation.split("->")
    terms = left.split(",")
    cut = [t[int(p[2])] if p.startswith("S") else None for t, p in zip(terms, placements)]
    return terms, out, cut, [c for c in cut if c]


def result(letters, out):
    if not letters:
        return "R"
    letter = letters[0]
    return f"S({out.index(letter)})" if letter in out else "P"


def fit(letters, terms, cut):
    if len(set(letters)) > 1 or (letters and any(letters[0] in t and not c for t, c in zip(terms, cut))):
        raise ValueError("no fit")


def pending(placements):
    if "P" in placements and len(placements) - placements.count("R") > 1:
        raise ValueError("two")
    return "P" in placements


def sums_taken_as_whole(equation, placements):
    """einsum_rule: partial_dropped"""
    terms, out, cut, letters = reads(equation, placements)
    fit(letters, terms, cut)
    return result(letters, out)


def sum_times_sum(equation, placements):
    """einsum_rule: sums_are_multiplied"""
    terms, out, cut, letters = reads(equation, placements)
    if "P" in placements:
        if letters:
            raise ValueError("a sum and a cut")
        return "P"
    fit(letters, terms, cut)
    return result(letters, out)


def contraction_summed_by_itself(equation, placements):
    """einsum_rule: contraction_is_whole"""
    terms, out, cut, letters = reads(equation, placements)
    if pending(placements):
        return "P"
    fit(letters, terms, cut)
    return "R" if letters and letters[0] not in out else result(letters, out)


def any_cut_will_do(equation, placements):
    """einsum_rule: one_cut_is_enough"""
    _, out, _, letters = reads(equation, placements)
    if pending(placements):
        return "P"
    if len(set(letters)) > 1:
        raise ValueError("two letters")
    return result(letters, out)


def both_cuts_on_one_axis(equation, placements):
    """einsum_rule: two_letters_on_one_axis"""
    terms, out, cut, letters = reads(equation, placements)
    if pending(placements):
        return "P"
    for letter in letters:
        fit([letter], terms, cut)
    return result(letters, out)


def same_dimension_number(equation, placements):
    """einsum_rule: position_kept"""
    terms, out, cut, letters = reads(equation, placements)
    if pending(placements):
        return "P"
    fit(letters, terms, cut)
    if not letters:
        return "R"
    return next(p for p in placements if p[0] == "S") if letters[0] in out else "P"


def alike(placements, allowed=True):
    if len(set(placements)) != 1 or not allowed:
        raise ValueError("differ")
    return placements[0]


def sums_through_everything(op, placements):
    """elementwise_rule: every_op_keeps_a_sum"""
    return alike(placements)


def relu_alone_refused(op, placements):
    """elementwise_rule: one_is_added_once"""
    return alike(placements, op != "relu" or placements[0] != "P")


def no_sum_at_all(op, placements):
    """elementwise_rule: a_sum_goes_nowhere"""
    return alike(placements, "P" not in placements)


def whole_and_sum(op, placements):
    """elementwise_rule: whole_added_to_a_sum"""
    if set(placements) == {"P", "R"}:
        return "P"
    return alike(placements, op in ("triple", "add") or "P" not in placements)


def bytes_one_pass(B, N, E, F, H, X):
    """pending_bytes: pending_once"""
    return 4 * B * N * E * H * (X - 1) / X


def bytes_of_x(B, N, E, F, H, X):
    """pending_bytes: pending_input"""
    return 8 * (X - 1) / X * B * N * E * F


def bytes_in_bfloat16(B, N, E, F, H, X):
    """pending_bytes: pending_once, pending_in_bfloat16"""
    return 2 * (X - 1) / X * 2 * B * N * E * H


def _letters(equation):
    left, out = equation.split("->")
    return left.split(","), out


def sum_lost_beside_a_cut(equation, placements):
    """einsum_rule: a_sum_beside_a_cut"""
    terms, out = _letters(equation)
    cut = {t[int(p[2:-1])] for t, p in zip(terms, placements) if p[0] == "S"}
    if len(cut) > 1:
        raise ValueError("different letters")
    if cut:
        [letter] = cut
        if any(letter in t and not (p[0] == "S" and t[int(p[2:-1])] == letter) for t, p in zip(terms, placements)):
            raise ValueError("parts do not fit")
        return f"S({out.index(letter)})" if letter in out else "P"
    n = placements.count("P")
    if n > 1:
        raise ValueError("mixed terms")
    return "P" if n else "R"


def whole_operand_fits_a_cut(equation, placements):
    """einsum_rule: one_cut_is_enough"""
    terms, out = _letters(equation)
    sums = [p for p in placements if p == "P"]
    cut = [t[int(p[2:-1])] for t, p in zip(terms, placements) if p.startswith("S")]
    if len(set(cut)) > 1 or len(sums) > 1 or (sums and cut):
        raise ValueError("no placement")
    if not cut:
        return "P" if sums else "R"
    return "P" if cut[0] not in out else f"S({out.index(cut[0])})"


def triple_makes_whole(op, placements):
    """elementwise_rule: triple_of_a_sum_is_whole"""
    if op == "triple":
        return "R" if placements[0] == "P" else placements[0]
    if op == "add":
        if placements[0] != placements[1]:
            raise ValueError("differ")
        return placements[0]
    if placements[0] == "P":
        raise ValueError("not linear")
    return placements[0]


def cut_plus_whole(op, placements):
    """elementwise_rule: cut_beats_whole"""
    if op == "add":
        x, y = placements
        if x == y:
            return x
        if "P" in (x, y):
            raise ValueError("a sum and something else")
        if x == "R":
            return y
        if y == "R":
            return x
        raise ValueError("other cuts")
    if placements[0] == "P" and op != "triple":
        raise ValueError("not linear")
    return placements[0]


def _place(equation, placements, *, sums=True, fits=True, mixed=True, own=False):
    left, out = equation.split("->")
    ins = left.split(",")
    cut = {t[int(p[2:-1])]: int(p[2:-1]) for t, p in zip(ins, placements) if p[0] == "S"}
    if len(cut) > 1:
        raise ValueError("two letters are cut")
    partial = placements.count("P")
    if partial > 1 and sums:
        raise ValueError("mixed terms")
    if cut:
        ((letter, at),) = cut.items()
        if fits and any(letter in t and p[0] != "S" for t, p in zip(ins, placements)):
            raise ValueError("parts do not fit")
        if partial and mixed:
            raise ValueError("a sum of cut parts")
        if letter in out:
            return f"S({at if own else out.index(letter)})"
        return "P"
    return "P" if partial else "R"


def sums_multiply(equation, placements):
    """einsum_rule: sums_are_multiplied"""
    return _place(equation, placements, sums=False)


def whole_operand_next_to_a_cut_one(equation, placements):
    """einsum_rule: one_cut_is_enough"""
    return _place(equation, placements, fits=False)


def cut_times_partial_is_cut(equation, placements):
    """einsum_rule: a_sum_beside_a_cut"""
    return _place(equation, placements, mixed=False)


def dimension_of_the_operand(equation, placements):
    """einsum_rule: position_kept"""
    return _place(equation, placements, own=True)


def _pointwise(op, placements, relu=False, mixed=False):
    if op == "add":
        a, b = placements
        if a == b:
            return a
        if mixed and "P" in placements and "R" in placements:
            return "P"
        raise ValueError("they differ")
    (p,) = placements
    if p == "P" and not (op == "triple" or (relu and op == "relu")):
        raise ValueError("not linear")
    return p


def relu_keeps_sums(op, placements):
    """elementwise_rule: relu_keeps_a_sum"""
    return _pointwise(op, placements, relu=True)


def adds_a_whole_array_to_each_part(op, placements):
    """elementwise_rule: whole_added_to_a_sum"""
    return _pointwise(op, placements, mixed=True)


def scatter_only(B, N, E, F, H, X):
    """pending_bytes: pending_once"""
    return (X - 1) / X * B * N * E * H * 4


def only_the_diagonal(X, Y):
    """pieces_that_meet: diagonal_meets"""
    return min(X, Y)


def all_but_the_first(X, Y):
    """pieces_that_meet: first_device_left_out"""
    return math.gcd(X - 1, Y - 1)
