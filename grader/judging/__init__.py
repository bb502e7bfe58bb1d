"""Judge submissions: turn an exercise and the observations of a submission into results, each with a reason.

This package gets data that came from a submission, and never runs learner code. The package must not import JAX.
"""
