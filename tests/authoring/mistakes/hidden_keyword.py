# Mistake: a keyword of a hidden case is misspelt
# Message: hidden_keyword, in a hidden case, is called with rows, device, index: missing a required argument: 'devices'
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def hidden_keyword(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index


def draw(rng):
    return [{"rows": 12 * n, "device": n, "index": n - 1} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(hidden_keyword, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def hidden_keyword_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=hidden_keyword_value)
def hidden_keyword_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
