# Mistake: the tolerance is smaller than digits shown
# Message: reports show the key as 8.03128 MiB, which the tolerance of 1e-12 rejects: give a larger rtol
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4104, 5128, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(
    points=1, unit="MiB", rtol=1e-12, params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."]
)
def tolerance_below_digits(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=tolerance_below_digits)
def tolerance_below_digits_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(tolerance_below_digits, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
