# Mistake: a hint of a misconception has a template's braces
# Message: the docstring of parameter_in_message_of_float32 has {{ I }}, which learners read as it is
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def parameter_in_message(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=parameter_in_message)
def parameter_in_message_of_float32(I, X):
    """You counted 4 bytes for each of {{ I }} elements."""
    return 4 * I * I / X


exercise.scenario(parameter_in_message, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
