# Mistake: a key shows the answer
# Message: options: learners get the key 'right', which can give the answer away
"""# Which collective

What a matmul needs.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.choice(
    points=0.5,
    params={"cut": ["rows", "columns"]},
    options={"right": "nothing", "gather": "an all-gather", "reduce": "an all-reduce"},
    hints=["Who has the terms of a sum?", "Look at the contracted dimension."],
)
def telling_key(cut):
    """`A` is cut by {{ cut }} and `B` is whole or cut likewise. What does `A @ B` need?"""
    return "nothing" if cut == "rows" else "reduce"


@exercise.misconception(of=telling_key)
def telling_key_gather(cut):
    """You gathered A first."""
    return "gather"
