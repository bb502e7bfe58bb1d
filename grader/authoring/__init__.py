"""What an author runs: the proofs (``verify``, ``mutants``) and the beginnings of courses and exercises.

In: a course with its solutions. Out: problems, one line each.
"""
