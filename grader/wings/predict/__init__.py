"""Predicted and measured times of a few fixed programs on the available devices. The grader gives no points for them.

A learner first predicts the times of the programs and then measures them: this wing times calls of the programs, and
fits a model to the times. The programs run in a separate process.
"""
