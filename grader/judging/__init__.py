"""Judge submissions: turn the observations of a submission into results for checks and questions, each with a reason.

This package reads data that a submission's run produced. It never runs learner code. The package must not import JAX.
"""
