# Mistake: the items of a rubric have other points than the question
# Message: rubric_of_other_points.py:13: rubric: the points of the items add up to 2, but the question has 3 points
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.written(points=3, rubric={"gathers": (1, "B is gathered"), "waits": (1, "the matmul waits for it")})
def rubric_of_other_points():
    """Why does the matmul wait before it computes anything?"""
    return "B is gathered first, and the matmul waits for it."
