# Mistake: in each draw, the text names the right option and no other
# Message: the docstring of text_names_the_option shows the answer of text_names_the_option: nothing
"""# Which collective

What a matmul needs.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.choice(
    points=0.5,
    params={"cut": ["rows", "columns"]},
    options={"gather": "an all-gather", "reduce": "an all-reduce", "nothing": "nothing"},
    hints=["Who has the terms of a sum?", "Look at the contracted dimension."],
)
def text_names_the_option(cut):
    """`A` is cut by {{ cut }} and `B` is whole or cut likewise. What does `A @ B` need? Now think of {{ 'an all-reduce' if cut == 'columns' else 'nothing' }}."""
    return "nothing" if cut == "rows" else "reduce"


@exercise.misconception(of=text_names_the_option)
def text_names_the_option_gather(cut):
    """You gathered A first."""
    return "gather"
