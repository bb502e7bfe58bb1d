# Mistake: a misconception of a formula is the right one, written in another way
# Message: formula_misconception_is_right: the right answer and the answer of all_parts are equal
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "X": [4, 8, 16]})
def formula_misconception_is_right():
    """A ring of X devices gathers V bytes. How many bytes does a device send?"""
    return "(X - 1)*V/X"


@exercise.misconception(of=formula_misconception_is_right)
def all_parts():
    """A device sends all parts but one."""
    return "V - V/X"
