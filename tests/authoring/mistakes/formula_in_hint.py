# Mistake: the first hint is the key of a formula question
# Message: hints= of formula_in_hint shows the answer of formula_in_hint: V - V / X
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "X": [4, 8, 16]}, hints=["It is V - V/X.", "Now write it."])
def formula_in_hint():
    """A ring of X devices gathers V bytes. How many bytes does a device send?"""
    return "(X - 1)*V/X"
