# Mistake: hidden cases come from another generator
# Message: random_draw: two draws with one seed give different hidden cases: draw only with the given rng
"""# Blocks

Where a block begins.
"""

import random

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def random_draw(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index


def draw(rng):
    devices = [random.randint(2, 9) for _ in range(8)]
    return [{"rows": 12 * n, "devices": n, "index": n - 1} for n in devices]


blocks = exercise.cases(random_draw, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def random_draw_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=random_draw_value)
def random_draw_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
