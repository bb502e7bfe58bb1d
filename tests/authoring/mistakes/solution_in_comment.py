# Mistake: a comment in given code is a line of the solution
# Message: a comment shows a line of solution_in_comment: of_first = rows // devices * index
"""# Blocks

Where a device's block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.given
def length(rows, devices):
    """Return the rows of a block."""
    # later: of_first = rows // devices * index
    return rows // devices


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def solution_in_comment(rows, devices, index):
    """Return the first row of a device's block."""
    of_first = rows // devices * index
    return of_first


def draw(rng):
    return [{"rows": 12 * n, "devices": n, "index": n - 1} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(solution_in_comment, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def solution_in_comment_value(seen):
    """the first row of each block"""
    expect_outcomes(seen, ints=True)


@exercise.misconception(fails=solution_in_comment_value)
def solution_in_comment_end(rows, devices, index):
    """You returned the end of the block."""
    return (index + 1) * rows // devices
