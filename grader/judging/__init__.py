"""Judge submissions: turn an exercise and the observations of a submission into results, each with a reason.

This package handles only data, never learner code. The package must not import JAX.
"""
