import importlib

course = importlib.import_module("grader.course")


def twice(n):
    return 2 * n if course else 0
