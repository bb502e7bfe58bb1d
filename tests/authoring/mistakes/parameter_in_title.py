# Mistake: a title has a template's braces
# Message: title= of parameter_in_title has {{ I }}, which learners read as it is
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.number(
    points=1,
    unit="MiB",
    params={"I": SIZES, "X": [4, 8]},
    hints=["Which part?", "Divide by X."],
    title="Memory of {{ I }} rows",
)
def parameter_in_title(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many MiB does a device hold?"""
    return 2 * I * I / X


@exercise.misconception(of=parameter_in_title)
def parameter_in_title_of_float32(I, X):
    """You counted 4 bytes for an element: bfloat16 has 2."""
    return 4 * I * I / X


exercise.scenario(parameter_in_title, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
