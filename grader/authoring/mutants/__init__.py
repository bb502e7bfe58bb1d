"""Mutation testing of the checks: do the checks notice if a reference solution is slightly wrong?

Misconceptions are wrong solutions by the author. A mutant is a solution that this package generates: one syntax node of
a task's body (or of a private helper that the task uses) is changed. The grader grades each mutant like a submission.
If a mutant passes every check of its task, the task lacks a check, or the mutant is a right solution.
``solutions/equivalent_mutants.yaml`` lists mutants that are right, each with a reason.
"""
