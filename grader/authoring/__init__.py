"""Author tools: the proofs (``verify``, ``mutants``) and templates of courses and exercises.

In: a course with its solutions. Out: problems, one line each.
"""
