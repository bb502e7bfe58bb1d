"""Verdicts: takes an exercise and what was observed, and returns results with a reason each.

Handles only data, never learner code. Must not import JAX.
"""
