"""Unusually similar submissions in a class, for a person to look at. This affects no score.

In: texts of code, by student. Out: pairs of students, and the passages that they share. Nothing is executed.
"""
