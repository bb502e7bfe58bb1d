# Mistake: the key of several lists all options
# Message: several_all_apply: the right answer is not a valid list of options: ValueError: all options would be right; add an option such as 'none of these', so that some options are right and some are not
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.several(points=1, options={"ring": "a ring", "line": "a line", "tree": "a tree", "torus": "a torus"})
def several_all_apply():
    """Which of these are a topology of chips or hosts?"""
    return ["ring", "line", "tree", "torus"]
