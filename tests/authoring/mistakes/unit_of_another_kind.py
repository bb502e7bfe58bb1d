# Mistake: the text asks for MiB, the unit is a time
# Message: unit_of_another_kind: the text asks 'how many MiB' (an amount of data), but unit='ms' is for a time
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="ms", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def unit_of_another_kind(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=unit_of_another_kind)
def unit_of_another_kind_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(unit_of_another_kind, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
