# Mistake: no drawn point shows one branch of a maximum
# Message: formula_dead_branch: V for max(V, X) (a function left out) equals the key max(V, X) at all drawn points
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "X": [4, 8, 16]})
def formula_dead_branch():
    """A message of V bytes is sent, but at least X bytes. How many bytes are sent?"""
    return "max(V, X)"
