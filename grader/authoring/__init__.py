"""Tools for authors: proofs of a course (``verify``, ``mutants``), and templates of courses and exercises.

In: a course with its solutions. Out: the course's problems, one line each.
"""
