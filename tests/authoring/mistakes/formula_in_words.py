# Mistake: the statement gives the formula in words
# Passes: a search for text does not understand a sentence. `verify` prints the question with its key, and a second reader sees it.
"""# Bytes

How much a device holds: two bytes for each of the I times I elements, divided by X.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(points=1, unit="MiB", params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."])
def formula_in_words(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=formula_in_words)
def formula_in_words_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(formula_in_words, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
