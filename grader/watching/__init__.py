"""The command ``watch``, which checks a learner's files again after each save.

The package takes a course, the learner's files and key presses. The package shows a screen of text. If the learner
presses the key ``r``, the package restores a file to its handed-out state.
"""
