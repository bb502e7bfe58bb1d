"""Files that are checked again whenever they are saved.

In: a course, the learner's files and keys. Out: a screen of text and, on request, a file restored to its handed-out
state.
"""
