# Mistake: the text asks in ms, the unit is us
# Message: the text asks 'in ms', but the grader reads a bare number as us: name the same unit in the text and in unit=...
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="us", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def unit_in_ms(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How long in ms does a device read at 1 GB/s?"""
    return 2 * I * I / X / 1e9


@exercise.misconception(of=unit_in_ms)
def unit_in_ms_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X / 1e9


exercise.scenario(unit_in_ms, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
