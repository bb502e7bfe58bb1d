# Mistake: the question about a task's code names no task
# Message: code_of_no_task.py:13: `of` is the str 'heat', not a task of this exercise
"""# Rings

A question about rings.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.code(of="heat", points=1, rubric="1 point: clear names.")
def code_of_no_task():
    """Is the code of heat clear?"""
    return "Clear names."
