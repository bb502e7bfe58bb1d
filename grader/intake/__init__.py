"""What was handed in, as a ``Submission``: folders, archives, notebooks, names, students.

In: a path. Out: text by exercise. Executes nothing; may import neither JAX nor the course nor what judges.
"""
