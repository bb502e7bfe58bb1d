# Mistake: the text asks for GiB, the unit is MiB
# Message: the text asks 'how many GiB', but the grader reads a bare number as MiB: name the same unit in the text and in unit=...
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def unit_of_another_scale(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many GiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=unit_of_another_scale)
def unit_of_another_scale_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(unit_of_another_scale, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
