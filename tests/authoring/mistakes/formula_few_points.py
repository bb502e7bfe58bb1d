# Mistake: the symbols of a formula have too few values to tell formulas apart
# Message: formula_few_points.py:13: symbols: X needs at least 3 values; it has 2
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "X": [4, 8]})
def formula_few_points():
    """A ring of X devices gathers V bytes. How many bytes does a device send?"""
    return "(X - 1)*V/X"
