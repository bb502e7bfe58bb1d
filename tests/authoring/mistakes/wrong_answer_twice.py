# Mistake: two misconceptions of a question have one answer
# Message: the answer of wrong_answer_twice_gather and the answer of wrong_answer_twice_again are equal
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
def wrong_answer_twice(cut):
    """`A` is cut by {{ cut }} and `B` is whole or cut likewise. What does `A @ B` need?"""
    return "nothing" if cut == "rows" else "reduce"


@exercise.misconception(of=wrong_answer_twice)
def wrong_answer_twice_gather(cut):
    """You gathered A first."""
    return "gather"


@exercise.misconception(of=wrong_answer_twice)
def wrong_answer_twice_again(cut):
    """You looked at A alone."""
    return "gather"
