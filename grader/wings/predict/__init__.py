"""Predicted and measured times of a few fixed programs on the available devices. Predictions are not graded.

In: a prediction, made before measuring. Out: times of calls, and a fitted model. Programs run in their own process.
"""
