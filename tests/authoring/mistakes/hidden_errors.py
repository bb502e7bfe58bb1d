# Mistake: every hidden case is refused
# Message: a function that only answers the public cases and otherwise raises ValueError earns 1 point in hidden_errors_value
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def hidden_errors(rows, devices, index):
    """The first row of a device's block; ValueError for uneven rows."""
    if rows % devices:
        raise ValueError(rows)
    return rows // devices * index


def draw(rng):
    return [{"rows": 12 * n + 1, "devices": n, "index": n - 1} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(hidden_errors, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def hidden_errors_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=hidden_errors_value)
def hidden_errors_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
