# Mistake: given code does what the task asks for
# Message: learners get first_row, and calling it solves given_is_solution
"""# Blocks

Where a device's block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.given
def first_row(rows, devices, index):
    """Return a row."""
    one_block = rows // devices
    return index * one_block


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def given_is_solution(rows, devices, index):
    """Return the first row of a device's block."""
    of_here = rows // devices * index
    return of_here


def draw(rng):
    return [{"rows": 12 * n, "devices": n, "index": n - 1} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(given_is_solution, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def given_is_solution_value(seen):
    """the first row of each block"""
    expect_outcomes(seen, ints=True)


@exercise.misconception(fails=given_is_solution_value)
def given_is_solution_end(rows, devices, index):
    """You returned the end of the block."""
    return (index + 1) * rows // devices
