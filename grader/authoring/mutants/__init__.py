"""Automatic mutants of every reference: would the checks notice if a solution were slightly wrong?

A misconception is a wrong solution that an author thought of; mutants are the ones nobody thought of. One node of a
task's body (or of a private helper it uses) is changed, and the result is graded like a submission, with all that
``grade`` asks. A mutant that passes every check of its task is either equivalent, which
``solutions/equivalent_mutants.yaml`` says with a reason, or shows a hole in the checks.
"""
