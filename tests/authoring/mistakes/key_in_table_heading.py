# Mistake: the heading of a table is the formula of an entry
# Message: columns= of key_in_table_heading shows the answer of key_in_table_heading: 2 * I * I / X
"""# Bytes

How much a device holds.
"""

from grader.exercise import Exercise, Scenario

exercise = Exercise()
SIZES = [4096, 5120, 6144, 7168, 8192, 9216, 10240, 11264]


@exercise.table(
    points=1, columns={"rows": "", "2·I·I/X": "MiB"}, params={"I": SIZES, "X": [4, 8]}, hints=["Which part?", "Divide by X."]
)
def key_in_table_heading(I, X):
    """`A` is bfloat16[{{ I }}, {{ I }}], sharded over an axis of {{ X }} devices. How many rows and how many MiB does a device hold?"""
    return {"rows": I / X, "2·I·I/X": 2 * I * I / X}


exercise.scenario(key_in_table_heading, lambda I, X: Scenario(mesh={"x": X}, arrays=[((I, I), ("x", None))]))
