# Mistake: an option is listed twice
# Message: several_same_option_twice.py:13: `options` has 'a ring' twice
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.several(points=1, options=["a ring", "a line", "a ring", "a torus"])
def several_same_option_twice():
    """Which of these wrap around at their ends?"""
    return ["a ring", "a torus"]
