"""Judge submissions: return a result with a reason for each check and question.

This package never runs learner code, and must not import JAX.
"""
