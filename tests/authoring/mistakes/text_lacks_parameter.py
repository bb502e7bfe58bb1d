# Mistake: a parameter that changes the key is not in the text
# Message: text_lacks_parameter: learners read the same text for X=4 and for X=8, but the right answers differ (8 MiB and 4 MiB): write {{ X }} into the text
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def text_lacks_parameter(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=text_lacks_parameter)
def text_lacks_parameter_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(text_lacks_parameter, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
