# Mistake: parameters are drawn at random
# Message: random_parameter: the list of values of n differs between two processes
"""# Bytes

How much a device holds.
"""

import numpy as np

from grader.exercise import Exercise, Scenario

exercise = Exercise()
NUMBERS = np.random.randint(1, 1 << 20, 4).tolist()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(
    points=1, unit="MiB", params={"I": SIZES, "X": [4, 8], "n": NUMBERS}, hints=["Which part?", "Divide by X."]
)
def random_parameter(I, X, n):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices, {{ n }} times. How many MiB does a device hold?"""
    return 2 * I * I / X * n


@exercise.misconception(of=random_parameter)
def random_parameter_of_float32(I, X, n):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X * (n + 17)


exercise.scenario(random_parameter, lambda I, X, n: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
