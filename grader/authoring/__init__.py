"""Tools for authors: proofs of a course (``verify``, ``mutants``), and templates of courses and exercises.

The proofs take a course with its solutions, and return the course's problems, one line each.
"""
