"""Whose work is more alike than is usual in a class, for a person to look at; it is part of no score.

In: texts of code, by student. Out: pairs of students, and which passages they share. Nothing is executed.
"""
