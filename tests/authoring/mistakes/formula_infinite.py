# Mistake: the key of a formula divides by zero for values that are drawn
# Message: formula_infinite: the right answer is not a valid formula: ValueError: 'V/(X - 4)': the formula has no finite value for
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "X": [4, 8, 16]})
def formula_infinite():
    """What is V divided by the devices beyond the first four of X?"""
    return "V/(X - 4)"
