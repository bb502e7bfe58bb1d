# Mistake: a wrong answer is within the tolerance
# Message: the right answer and the answer of misconception_too_close_of_float32 are closer than the tolerance of 0.02
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def misconception_too_close(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=misconception_too_close)
def misconception_too_close_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 2.01 * I * I / X


exercise.scenario(misconception_too_close, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
