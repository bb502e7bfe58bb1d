"""Judge submissions: turn an exercise and the observations of a submission into results, each with a reason.

This package reads only data that came from a submission and never runs learner code. It must not import JAX.
"""
