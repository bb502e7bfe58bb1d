def reads(equation, placements):
    left, out = equation.split("->")
    terms = left.split(",")
    cut = [t[int(p[2])] if p.startswith("S") else None for t, p in zip(terms, placements)]
    return terms, out, cut


def result(letters, out):
    if not letters:
        return "R"
    letter = letters[0]
    return f"S({out.index(letter)})" if letter in out else "P"


def sums_taken_as_whole(equation, placements):
    """einsum_rule: partial_dropped"""
    terms, out, cut = reads(equation, placements)
    letters = [c for c in cut if c]
    if len(set(letters)) > 1:
        raise ValueError("two letters")
    if letters and any(letters[0] in t and c is None for t, c in zip(terms, cut)):
        raise ValueError("not cut everywhere")
    return result(letters, out)


def sum_times_sum(equation, placements):
    """einsum_rule: sums_are_multiplied"""
    terms, out, cut = reads(equation, placements)
    letters = [c for c in cut if c]
    if "P" in placements:
        if letters:
            raise ValueError("a sum and a cut")
        return "P"
    if len(set(letters)) > 1 or (letters and any(letters[0] in t and not c for t, c in zip(terms, cut))):
        raise ValueError("no fit")
    return result(letters, out)


def contraction_summed_by_itself(equation, placements):
    """einsum_rule: contraction_is_whole"""
    terms, out, cut = reads(equation, placements)
    letters = [c for c in cut if c]
    if "P" in placements:
        if len(placements) - placements.count("R") > 1:
            raise ValueError("two")
        return "P"
    if len(set(letters)) > 1 or (letters and any(letters[0] in t and not c for t, c in zip(terms, cut))):
        raise ValueError("no fit")
    return "R" if letters and letters[0] not in out else result(letters, out)


def any_cut_will_do(equation, placements):
    """einsum_rule: one_cut_is_enough"""
    terms, out, cut = reads(equation, placements)
    letters = [c for c in cut if c]
    if "P" in placements:
        if len(placements) - placements.count("R") > 1:
            raise ValueError("two")
        return "P"
    if len(set(letters)) > 1:
        raise ValueError("two letters")
    return result(letters, out)


def both_cuts_on_one_axis(equation, placements):
    """einsum_rule: two_letters_on_one_axis"""
    terms, out, cut = reads(equation, placements)
    letters = [c for c in cut if c]
    if "P" in placements:
        if len(placements) - placements.count("R") > 1:
            raise ValueError("two")
        return "P"
    for letter in letters:
        if any(letter in t and not c for t, c in zip(terms, cut)):
            raise ValueError("no fit")
    return result(letters, out)


def same_dimension_number(equation, placements):
    """einsum_rule: position_kept"""
    terms, out, cut = reads(equation, placements)
    letters = [c for c in cut if c]
    if "P" in placements:
        if len(placements) - placements.count("R") > 1:
            raise ValueError("two")
        return "P"
    if len(set(letters)) > 1 or (letters and any(letters[0] in t and not c for t, c in zip(terms, cut))):
        raise ValueError("no fit")
    if not letters:
        return "R"
    return next(p for p in placements if p[0] == "S") if letters[0] in out else "P"


def sums_through_everything(op, placements):
    """elementwise_rule: every_op_keeps_a_sum"""
    if len(set(placements)) != 1:
        raise ValueError("differ")
    return placements[0]


def relu_alone_refused(op, placements):
    """elementwise_rule: one_is_added_once"""
    if len(set(placements)) != 1 or (op == "relu" and placements[0] == "P"):
        raise ValueError("differ")
    return placements[0]


def no_sum_at_all(op, placements):
    """elementwise_rule: a_sum_goes_nowhere"""
    if len(set(placements)) != 1 or "P" in placements:
        raise ValueError("reduce first")
    return placements[0]


def whole_and_sum(op, placements):
    """elementwise_rule: whole_added_to_a_sum"""
    kinds = set(placements)
    if kinds == {"P", "R"}:
        return "P"
    if len(kinds) > 1 or (op not in ("triple", "add") and "P" in kinds):
        raise ValueError("differ")
    return placements[0]


def bytes_one_pass(B, N, E, F, H, X):
    """pending_bytes: pending_once"""
    return 4 * B * N * E * H * (X - 1) / X


def bytes_of_x(B, N, E, F, H, X):
    """pending_bytes: pending_input"""
    return 8 * (X - 1) / X * B * N * E * F


def bytes_in_bfloat16(B, N, E, F, H, X):
    """pending_bytes: pending_once, pending_in_bfloat16"""
    return 2 * (X - 1) / X * 2 * B * N * E * H
