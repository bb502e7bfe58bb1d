# Mistake: the reference returns NaN
# Message: the reference returned nan, which no learner's answer can equal: mend the reference or the case
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def result_is_nan(rows, devices, index):
    """The first row of a device's block."""
    return float("nan")


def draw(rng):
    return [{"rows": 12 * n, "devices": n, "index": n - 1} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(result_is_nan, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def result_is_nan_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=result_is_nan_value)
def result_is_nan_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
