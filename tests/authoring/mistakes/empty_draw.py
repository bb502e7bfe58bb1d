# Mistake: hidden draws nothing
# Message: empty_draw: the function `hidden` draws no cases; give at least one
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def empty_draw(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index


def draw(rng):
    devices = rng.integers(2, 9, 0).tolist()
    return [{"rows": 12 * n, "devices": n, "index": n - 1} for n in devices]


blocks = exercise.cases(empty_draw, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def empty_draw_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=empty_draw_value)
def empty_draw_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
