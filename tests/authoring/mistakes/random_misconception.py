# Mistake: a wrong answer is drawn at random
# Message: the answer of random_misconception_of_float32 with I=11264, X=8 differs between two processes
"""# Bytes

How much a device holds.
"""

import random

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def random_misconception(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=random_misconception)
def random_misconception_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X * random.randint(1000, 9000)


exercise.scenario(random_misconception, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
