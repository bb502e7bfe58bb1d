# Mistake: a formula's key is in the question's text, written otherwise
# Message: the docstring of formula_in_its_text shows the answer of formula_in_its_text: V * (X - 1) / X
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "X": [4, 8, 16]})
def formula_in_its_text():
    """A ring of X devices gathers V bytes, and each sends V·(X − 1)/X. How many bytes does a device send?"""
    return "(X - 1)*V/X"
