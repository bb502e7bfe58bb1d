# Mistake: the hidden cases never end
# Message: endless_cases: the function `hidden` draws more than 10,000 cases; draw fewer
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def endless_cases(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index


def draw(rng):
    while True:
        yield {"rows": 12, "devices": 4, "index": int(rng.integers(4))}


blocks = exercise.cases(endless_cases, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def endless_cases_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=endless_cases_value)
def endless_cases_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
