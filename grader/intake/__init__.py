"""Read submissions: folders, archives, notebooks, names, students.

Takes a path, returns a ``Submission`` with text by exercise. Executes nothing; may not import JAX, the course or the
judge.
"""
