"""Automatic mutants of every reference: would the checks notice if a solution were slightly wrong?

Authors write misconceptions; mutants are wrong solutions that no author thought of. One node of a task's body (or of a
private helper it uses) is changed, and the result is graded like a submission, with all asks of ``grade``. A mutant
that passes every check of its task is either equivalent, listed with a reason in ``solutions/equivalent_mutants.yaml``,
or shows a hole in the checks.
"""
