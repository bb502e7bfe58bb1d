"""Predicted and measured times: a few fixed programs, timed on the available devices. Nothing here is graded.

In: a prediction, made before measuring. Out: times of calls, and the fitted model. Programs run in their own process.
"""
