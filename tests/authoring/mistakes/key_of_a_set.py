# Mistake: the key follows the order of a set
# Message: it must not depend on the order of a set, hash(), random numbers, the time, the folder or the machine
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def key_of_a_set(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X * len(next(iter({"a", "bb", "ccc", "dddd", "eeeee", "ffffff"})))


@exercise.misconception(of=key_of_a_set)
def key_of_a_set_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 1001 * I * I / X


exercise.scenario(key_of_a_set, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
