# Mistake: a misconception of several is the right answer in another order
# Message: several_misconception_is_right: the right answer and the answer of no_torus are equal
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.several(points=1, options={"ring": "a ring", "line": "a line", "tree": "a tree", "torus": "a torus"})
def several_misconception_is_right():
    """Which of these wrap around at their ends?"""
    return ["ring", "torus"]


@exercise.misconception(of=several_misconception_is_right)
def no_torus():
    """A torus is made of rings."""
    return ["torus", "ring"]
