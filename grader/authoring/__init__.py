"""Tools for course authors: the tests of a course (``verify``, ``mutants``), and templates of courses and exercises.

``verify`` and ``mutants`` take a course with its solutions, and report the course's problems, one line each.
"""
