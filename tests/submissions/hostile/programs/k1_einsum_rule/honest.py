"""An honest program."""


def einsum_rule(equation, placements):
    """Return the placement of an einsum that every device computes from its own parts.

    Args: equation such as "ij,jk->ik"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if no placement is right.
    """
    operands, out = equation.split("->")
    terms = operands.split(",")
    if "P" in placements:
        if placements.count("R") < len(placements) - 1:
            raise ValueError("an einsum is linear in one operand at a time, the others whole")
        return "P"
    cut = {term[int(place[2:-1])] for term, place in zip(terms, placements, strict=True) if place != "R"}
    if not cut:
        return "R"
    letter = cut.pop()
    if cut or any(letter in term and place == "R" for term, place in zip(terms, placements, strict=True)):
        raise ValueError("the parts do not fit")
    return f"S({out.index(letter)})" if letter in out else "P"


def elementwise_rule(op, placements):
    """Return the placement of an elementwise function that every device computes from its own parts.

    Args: op is "triple", "add_one", "relu" or "add"; placements is a list with "R", "S(d)" or "P" for each operand.
    Returns: "R", "S(d)" or "P". Raises ValueError if no placement is right.
    """
    places = set(placements)
    if len(places) > 1:
        raise ValueError("the operands lie differently")
    if "P" in places and op in {"relu", "add_one"}:
        raise ValueError(f"{op} of a sum is not the sum of {op}")
    return places.pop()
