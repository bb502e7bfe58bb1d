# Mistake: the key of an order lacks an item
# Message: order_lacks_an_item: the right answer is not a valid order of all items: ValueError: ['send', 'inner'] lacks wait
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.order(points=1, items={"wait": "wait for edges", "send": "send the edges", "inner": "compute the inner part"})
def order_lacks_an_item():
    """In which order does a device do these, so that the exchange runs beside compute?"""
    return ["send", "inner"]
