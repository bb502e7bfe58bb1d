# Mistake: the key of a formula has a symbol that is not declared
# Message: formula_unknown_symbol: the right answer is not a valid formula: ValueError: 'V/W': there is no symbol 'W': the symbols are V, X
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "X": [4, 8, 16]})
def formula_unknown_symbol():
    """How long does it take to send V bytes over a link of W bytes a second?"""
    return "V/W"
