# Mistake: the reference follows the order of a set
# Message: reference_of_a_set: the expected outcome with rows=
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def reference_of_a_set(rows, devices, index):
    """The first row of a device's block."""
    return rows // devices * index + len(list({"a", "bb", "ccc", "dddd", "eeeee", "ffffff"})[0])


def draw(rng):
    return [{"rows": 12 * n, "devices": n, "index": n - 1} for n in rng.integers(2, 9, 9).tolist()]


blocks = exercise.cases(reference_of_a_set, public=[{"rows": 12, "devices": 4, "index": 2}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def reference_of_a_set_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=reference_of_a_set_value)
def reference_of_a_set_end(rows, devices, index):
    """You returned the end of the block."""
    return rows // devices * (index + 1)
