# Mistake: a draw needs too much memory
# Message: the exercise's inputs and answers need more than 4096 MiB of memory
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def too_much_memory(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index


def draw(rng):
    rows = [bytearray(1 << 28) for _ in range(1 << 20)]
    return [{"rows": len(rows), "devices": 4, "index": 1}]


blocks = exercise.cases(too_much_memory, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def too_much_memory_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=too_much_memory_value)
def too_much_memory_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
