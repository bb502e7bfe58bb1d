# Mistake: a guess is right half of the time
# Message: `options` needs at least 3 entries
"""# Which collective

What a matmul needs.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.choice(
    points=0.5,
    params={"cut": ["rows", "columns"]},
    options={"nothing": "nothing", "reduce": "an all-reduce"},
    hints=["Who has the terms of a sum?", "Look at the contracted dimension."],
)
def two_options(cut):
    """`A` is cut by {{ cut }} and `B` is whole or cut likewise. What does `A @ B` need?"""
    return "nothing" if cut == "rows" else "reduce"


@exercise.misconception(of=two_options)
def two_options_gather(cut):
    """You gathered A first."""
    return "gather"
