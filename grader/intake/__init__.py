"""Read submissions: folders, archives, notebooks, names, students.

In: a path. Out: a ``Submission``, with the text for each exercise. This package executes nothing, and must not import
JAX, the course or the judge.
"""
