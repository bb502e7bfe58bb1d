# Mistake: an expression in a text prints the key
# Message: the docstring of key_printed shows the answer of key_printed: 2 * I ** 2 / X / 2 ** 20
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def key_printed(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold? (One holds {{ 2 * I**2 / X / 2**20 }} MiB.)"""
    return 2 * I * I / X


@exercise.misconception(of=key_printed)
def key_printed_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(key_printed, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
