# Mistake: floats are compared exactly
# Message: the check fails a program whose floats differ from the reference's floats only in the last digits
"""# Blocks

Where a block begins.
"""

from grader.exercise import Exercise
from grader.expect import expect_outcomes

exercise = Exercise()


@exercise.function(hints=["How long is a block?", "Multiply by the index."])
def float_exact(values):
    """The first row of a device's block."""
    return sum(values) / len(values)


def draw(rng):
    return [{"values": rng.random(n).tolist()} for n in (10, 50, 90)]


blocks = exercise.cases(float_exact, public=[{"values": [0.1, 0.2, 0.3, 0.7]}], hidden=draw)


@exercise.check(blocks, points=1, public=True)
def float_exact_value(seen):
    """the first row of each block"""
    expect_outcomes(seen)


@exercise.misconception(fails=float_exact_value)
def float_exact_end(values):
    """You returned the end of the block."""
    return sum(values)
