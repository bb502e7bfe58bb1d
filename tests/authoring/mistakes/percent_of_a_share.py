# Mistake: a percentage is returned, not a share
# Message: Return a share (0.25 for 25 percent)
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="percent", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def percent_of_a_share(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many percent of 1 GB does a device hold?"""
    return 100 * 2 * I * I / X / 1e9


@exercise.misconception(of=percent_of_a_share)
def percent_of_a_share_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 100 * 4 * I * I / X / 1e9


exercise.scenario(percent_of_a_share, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
