"""The command ``watch``, which checks a learner's files again after each save.

In: a course, the learner's files and key presses. Out: a screen of text and, on request, a file restored to its
handed-out state.
"""
