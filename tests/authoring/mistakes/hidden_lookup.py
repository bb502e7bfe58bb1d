# Mistake: the reference knows only the public case
# Message: the reference raises KeyError: mend the reference or the case; if the error is right, name it in the statement or the docstring
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def hidden_lookup(rows, devices, index):
    """The first row of a device's block."""
    return {(12, 4, 2): 6}[rows, devices, index]


def draw(rng):
    return [{"rows": 12 * n, "devices": n, "index": n - 1} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(hidden_lookup, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def hidden_lookup_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=hidden_lookup_value)
def hidden_lookup_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
