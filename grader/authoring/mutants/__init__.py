"""Mutation testing of the checks: do the checks notice if a reference solution is slightly wrong?

Misconceptions are wrong solutions by the author. This package makes mutants of the reference solution. In a mutant, one
syntax node of a task (or of a private helper that the task uses) is changed. The grader grades each mutant like a
submission. If a mutant passes every check of its task, the task lacks a check, or the mutant is a right solution.
``solutions/equivalent_mutants.yaml`` lists mutants that are right, each with a reason.
"""
