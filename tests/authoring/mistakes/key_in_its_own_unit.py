# Mistake: the function returns MiB in place of bytes
# Message: Return seconds, bytes or FLOP, not MiB
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def key_in_its_own_unit(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X / 2**20


@exercise.misconception(of=key_in_its_own_unit)
def key_in_its_own_unit_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X / 2**20


exercise.scenario(key_in_its_own_unit, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
