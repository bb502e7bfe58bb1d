# Mistake: the text names all right options and no wrong one
# Message: the docstring of several_in_text shows the answer of several_in_text: a ring, a torus
"""# Shapes

Questions about meshes.
"""

from grader.exercise import Exercise

exercise = Exercise()


@exercise.several(
    points=1,
    options={"ring": "a ring", "line": "a line", "tree": "a tree", "torus": "a torus"},
    hints=["Walk on.", "Really."],
)
def several_in_text():
    """Like a ring and a torus, some graphs have a cycle. Which of these have a cycle?"""
    return ["ring", "torus"]
