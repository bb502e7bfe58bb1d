# Mistake: the items are declared in the right order, and learners get the declaration
# Message: learners see the items as you declared them, in the right order: declare them in another order
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.order(points=1, items={"send": "send the edges", "inner": "compute the inner part", "wait": "wait for edges"})
def order_as_declared():
    """In which order does a device do these, so that the exchange runs beside compute?"""
    return ["send", "inner", "wait"]
