from math import prod


def turned(equation, i):
    left, out = equation.split("->")
    terms = left.split(",")
    return ",".join(out if n == i else t for n, t in enumerate(terms)) + "->" + terms[i]


def grads(equation, placements, at):
    left, out = equation.split("->")
    terms = left.split(",")
    cut = [t[int(p[2])] for t, p in zip(terms, placements) if p[0] == "S"]
    return [(turned(equation, i), at(t, placements[i], cut, terms, out)) for i, t in enumerate(terms)]


def mine(term, cut):
    for letter in cut:
        if letter in term:
            return f"S({term.index(letter)})"
    return None


def places(equation, placements):
    def at(t, p, cut, terms, out):
        if here := mine(t, cut):
            return here
        return "P" if p == "R" and set(placements) != {"R"} else "R"

    return [place for _, place in grads(equation, placements, at)]


def never_pending(equation, placements):
    """einsum_bwd: pending_missed"""
    return grads(equation, placements, lambda t, p, cut, terms, out: mine(t, cut) or "R")


def as_the_operand(equation, placements):
    """einsum_bwd: pending_missed, cotangent_of_a_sum_pending"""
    return [(turned(equation, i), p) for i, p in enumerate(placements)]


def batch_cut_only(equation, placements):
    """einsum_bwd: only_the_batch_watched"""

    def at(t, p, cut, terms, out):
        if here := mine(t, cut):
            return here
        return "P" if p == "R" and cut and cut[0] == out[0] else "R" if p != "P" or not cut else "R"

    return grads(equation, placements, at)


def equation_kept(equation, placements):
    """einsum_bwd: letters_not_swapped"""

    return [(equation, place) for place in places(equation, placements)]


def cotangent_in_front(equation, placements):
    """einsum_bwd: output_goes_first"""
    left, out = equation.split("->")
    terms = left.split(",")

    return [
        (",".join([out, *(t for n, t in enumerate(terms) if n != i)]) + "->" + terms[i], place)
        for i, place in enumerate(places(equation, placements))
    ]


def whole_is_always_pending(equation, placements):
    """einsum_bwd: whole_reduced"""
    return grads(equation, placements, lambda t, p, cut, terms, out: mine(t, cut) or ("P" if p == "R" else "R"))


def bytes_of_all(gradients, sizes, devices):
    """gradient_bytes: all_gradients_counted"""
    return sum(2 * (devices - 1) * 4 * prod(sizes[c] for c in e.split("->")[1]) // devices for e, _ in gradients)


def bytes_of_one_pass(gradients, sizes, devices):
    """gradient_bytes: one_way_round"""
    total = 0
    for equation, place in gradients:
        if place == "P":
            total += 4 * prod(sizes[c] for c in equation.split(">")[1]) * (devices - 1) // devices
    return total


def bytes_of_whole_arrays(gradients, sizes, devices):
    """gradient_bytes: whole_gradient_each_hop"""
    return sum(2 * (devices - 1) * 4 * prod(sizes[c] for c in e.split("->")[1]) for e, p in gradients if p == "P")


def bytes_of_all_letters(gradients, sizes, devices):
    """gradient_bytes: bytes_of_the_terms"""
    total = 0
    for equation, place in gradients:
        letters = set(equation) - set(",->")
        total += (place == "P") * 2 * (devices - 1) * 4 * prod(sizes[c] for c in letters) // devices
    return total


def bytes_in_bfloat16(gradients, sizes, devices):
    """gradient_bytes: one_way_round, bytes_in_bfloat16"""
    return sum(
        2 * (devices - 1) * 2 * prod(sizes[c] for c in e.split("->")[1]) // devices for e, p in gradients if p == "P"
    )


def columns_of_a_chip(chip, X, S, B, I):
    """columns_to_hide: hidden_per_chip"""
    from grader.hardware import CHIPS

    return 2 * CHIPS[chip].bf16 / CHIPS[chip].ici_both


def scales_of_one_norm(L, H, X):
    """scale_gradients: scales_once"""
    return 2 * (X - 1) / X * 4 * H * L
