# Mistake: hidden repeats the public cases
# Message: a function that only answers the public cases and otherwise returns None earns 1 point in hidden_is_public_value
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()
PUBLIC = [{"rows": 12, "devices": 4, "index": 2}, {"rows": 20, "devices": 5, "index": 3}]


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def hidden_is_public(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index


def draw(rng):
    return [PUBLIC[i] for i in rng.permutation(2)]


blocks = exercise.cases(hidden_is_public, public=PUBLIC, hidden=draw)


@exercise.check(blocks, points=1, public=True)
def hidden_is_public_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=hidden_is_public_value)
def hidden_is_public_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
