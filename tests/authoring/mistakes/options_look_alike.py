# Mistake: two options differ only in a mark of Markdown
# Message: the option 'an all-reduce' is equal to another option
"""# Which collective

What a matmul needs.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.choice(
    points=0.5,
    params={"cut": ["rows", "columns"]},
    options={"gather": "an all-gather", "reduce": "an all-reduce", "nothing": "an `all-reduce`"},
    hints=["Who has the terms of a sum?", "Look at the contracted dimension."],
)
def options_look_alike(cut):
    """`A` is cut by {{ cut }} and `B` is whole or cut likewise. What does `A @ B` need?"""
    return "nothing" if cut == "rows" else "reduce"


@exercise.misconception(of=options_look_alike)
def options_look_alike_gather(cut):
    """You gathered A first."""
    return "gather"
