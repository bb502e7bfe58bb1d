# Mistake: the key of several names an option that does not exist
# Message: several_unknown_key: the right answer is not a valid list of options: ValueError: 'loop' is not one of the options ring, line, tree, torus
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.several(points=1, options={"ring": "a ring", "line": "a line", "tree": "a tree", "torus": "a torus"})
def several_unknown_key():
    """Which of these wrap around at their ends?"""
    return ["ring", "loop"]
