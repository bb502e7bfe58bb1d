# Mistake: no drawn point shows a term of the key
# Message: formula_dead_term: V / W for a + V / W (a term left out) equals the key a + V/W at all drawn points
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.formula(points=1, symbols={"V": [1e6, 2e6, 5e6], "W": [1e9, 2e9, 3e9], "a": [1e-12, 2e-12, 3e-12]})
def formula_dead_term():
    """A link moves W bytes a second after a latency of a seconds. How long do V bytes take?"""
    return "a + V/W"
