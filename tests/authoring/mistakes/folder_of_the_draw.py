# Mistake: hidden cases depend on the folder
# Message: folder_of_the_draw: each process draws different inputs: draw only with the given rng
"""# Blocks

Where a block begins.
"""

import os

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def folder_of_the_draw(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index


def draw(rng):
    size = sum(os.getcwd().encode())
    return [{"rows": 12 * n + 12 * size, "devices": 4, "index": n % 4} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(folder_of_the_draw, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def folder_of_the_draw_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=folder_of_the_draw_value)
def folder_of_the_draw_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
