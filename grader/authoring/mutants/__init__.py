"""Mutation testing of the checks: do the checks notice if a reference solution is slightly wrong?

A mutant is the reference solution of a task with one changed syntax node. The grader grades each mutant like a
submission. If a mutant passes every check of its task, the task lacks a check, or the mutant is a right solution.
``solutions/equivalent_mutants.yaml`` lists mutants that are right, each with a reason.
"""
