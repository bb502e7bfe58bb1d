# Mistake: the text names a parameter that does not exist
# Message: its text does not render: 'Y' is undefined
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def unknown_parameter_in_text(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ Y }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=unknown_parameter_in_text)
def unknown_parameter_in_text_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(unknown_parameter_in_text, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
