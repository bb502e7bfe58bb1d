# Mistake: every hidden index is 0
# Message: a function that only answers the public cases and otherwise returns 0 earns 1 point in hidden_zeros_value
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def hidden_zeros(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index


def draw(rng):
    return [{"rows": 12 * n, "devices": n, "index": 0} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(hidden_zeros, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def hidden_zeros_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=hidden_zeros_value)
def hidden_zeros_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
