import math
from math import prod

from grader.hardware import CHIPS


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
    """columns_to_overlap: columns_per_chip"""
    return 2 * CHIPS[chip].bf16 / CHIPS[chip].ici_both


def scales_of_one_norm(L, H, X):
    """scale_gradients: scales_once"""
    return 2 * (X - 1) / X * 4 * H * L


def _rule(inputs, output, placements):
    cut = {letters[int(p[2:-1])] for letters, p in zip(inputs, placements) if p.startswith("S")}
    if cut:
        letter = cut.pop()
        return f"S({output.index(letter)})" if letter in output else "P"
    return "P" if "P" in placements else "R"


def output_gradient_always_first(equation, placements):
    """einsum_bwd: output_goes_first"""
    left, out = equation.split("->")
    ins = left.split(",")
    given = _rule(ins, out, placements)
    given = "R" if given == "P" else given
    result = []
    for i, letters in enumerate(ins):
        others = [j for j in range(len(ins)) if j != i]
        terms = [out] + [ins[j] for j in others]
        result.append(
            (",".join(terms) + "->" + letters, _rule(terms, letters, [given] + [placements[j] for j in others]))
        )
    return result


def never_pending_again(equation, placements):
    """einsum_bwd: pending_missed"""
    left, out = equation.split("->")
    ins = left.split(",")
    result = []
    for i, (letters, place) in enumerate(zip(ins, placements)):
        terms = [out if j == i else other for j, other in enumerate(ins)]
        result.append((",".join(terms) + "->" + letters, place))
    return result


def partial_output_has_partial_gradient(equation, placements):
    """einsum_bwd: cotangent_of_a_sum_pending"""
    left, out = equation.split("->")
    ins = left.split(",")
    given = _rule(ins, out, placements)
    result = []
    for i, letters in enumerate(ins):
        terms, places = list(ins), list(placements)
        terms[i], places[i] = out, given
        result.append((",".join(terms) + "->" + letters, _rule(terms, letters, places)))
    return result


def pending_only_if_something_is_cut(equation, placements):
    """einsum_bwd: other_operands_of_a_sum_settled"""
    left, out = equation.split("->")
    ins = left.split(",")
    shard = any(p.startswith("S") for p in placements)
    result = []
    for i, letters in enumerate(ins):
        terms = list(ins)
        terms[i] = out
        place = placements[i]
        if place == "R" and shard:
            place = "P"
        elif place == "P":
            place = "R"
        result.append((",".join(terms) + "->" + letters, place))
    return result


def one_way_of_the_all_reduce(gradients, sizes, devices):
    """gradient_bytes: one_way_round"""
    total = 0
    for equation, place in gradients:
        if place == "P":
            numbers = math.prod(sizes[letter] for letter in equation.split("->")[1])
            total += (devices - 1) * 4 * numbers // devices
    return total


def cut_gradients_reduced_too(gradients, sizes, devices):
    """gradient_bytes: all_gradients_counted"""
    total = 0
    for equation, _ in gradients:
        numbers = math.prod(sizes[letter] for letter in equation.split("->")[1])
        total += 2 * (devices - 1) * numbers * 4 / devices
    return total


def columns_on_a_chip(chip, X, S, B, I):
    """columns_to_overlap: columns_per_chip"""
    c = CHIPS[chip]
    return 2 * c.bf16 / (2 * c.ici)


def link_one_way(chip, X, S, B, I):
    """columns_to_overlap: columns_of_one_way"""
    c = CHIPS[chip]
    return 2 * X * c.bf16 / c.ici


def a_norm_per_layer(L, H, X):
    """scale_gradients: scales_once"""
    return 2 * (X - 1) / X * L * H * 4
