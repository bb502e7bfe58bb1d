# Mistake: the hint has all items in the right order
# Message: hints= of order_in_hint shows the answer of order_in_hint: send the edges, compute the inner part, wait for edges
"""# Shapes

Questions about meshes.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.order(
    points=1,
    items={"wait": "wait for edges", "send": "send the edges", "inner": "compute the inner part"},
    hints=["Send the edges, compute the inner part, wait for edges.", "Really."],
)
def order_in_hint():
    """In which order does a device do these?"""
    return ["send", "inner", "wait"]
