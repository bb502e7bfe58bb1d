# Mistake: an option refers to its place among options, whose order is drawn
# Message: option_above: the option 'nothing' contains 'above', which learners could take for another option
"""# Which collective

What a matmul needs.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.choice(
    points=0.5,
    params={"cut": ["rows", "columns"]},
    options={"gather": "an all-gather", "reduce": "an all-reduce", "nothing": "none of the above"},
    hints=["Who has the terms of a sum?", "Look at the contracted dimension."],
)
def option_above(cut):
    """`A` is cut by {{ cut }} and `B` is whole or cut likewise. What does `A @ B` need?"""
    return "nothing" if cut == "rows" else "reduce"


@exercise.misconception(of=option_above)
def option_above_gather(cut):
    """You gathered A first."""
    return "gather"
