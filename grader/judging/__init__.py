"""Judge submissions: turn what a submission's run produced into results for checks and questions, each with a reason.

This package never runs learner code, and must not import JAX.
"""
