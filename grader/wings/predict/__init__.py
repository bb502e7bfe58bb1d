"""Predicted and measured times of a few fixed programs on the available devices. Predictions are not graded.

A learner first predicts times, then measures: the wing times calls, and fits a model to the times. Programs run in a
separate process.
"""
