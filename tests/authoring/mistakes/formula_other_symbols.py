# Mistake: the text does not explain the symbols of a formula
# Message: formula_other_symbols: no text says what the symbol V means: name it in the question's text or in the statement
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "X": [4, 8, 16]})
def formula_other_symbols():
    """A ring of N devices gathers B bytes. How many bytes does a device send?"""
    return "(X - 1)*V/X"
