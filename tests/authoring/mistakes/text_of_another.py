# Mistake: a question is a copy of another one, with a new key and the old text
# Message: text_of_another_kept: its text, numbers and kind of answer are the same as in text_of_another_sent: let the two texts differ, or give each question a title
"""# Exchanges

An array of N numbers is cut among D devices.
"""

from grader.exercise import Exercise

exercise = Exercise()
SYMBOLS = {"N": [1e6, 2e6, 4e6], "D": [4, 8, 16]}


@exercise.formula(points=1, symbols=SYMBOLS)
def text_of_another_sent():
    """How many numbers does one device send in the all-to-all?"""
    return "N/D*(D - 1)/D"


@exercise.misconception(of=text_of_another_sent)
def text_of_another_sent_all():
    """A device keeps its own block."""
    return "N/D"


@exercise.formula(points=1, symbols=SYMBOLS)
def text_of_another_kept():
    """How many numbers does one device send in the all-to-all?"""
    return "N/D/D"


@exercise.misconception(of=text_of_another_kept)
def text_of_another_kept_all():
    """One of D parts stays on its device."""
    return "N/D"
