# Mistake: a given function returns the key of a question
# Message: learners get size, which returns the answer of given_is_key: leave size out
"""# Bytes

How much.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.given
def size(n, parts):
    """Bytes."""
    return 2 * n * n / parts


@exercise.number(
    points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."]
)
def given_is_key(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=given_is_key)
def given_is_key_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(given_is_key, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
