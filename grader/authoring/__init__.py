"""Author tools: the proofs (``verify``, ``mutants``) and templates of courses and exercises.

Takes a course with its solutions, returns problems, one line each.
"""
