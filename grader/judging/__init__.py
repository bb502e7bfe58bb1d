"""Verdicts. In: an exercise, and what was observed of a submission. Out: results, each with a reason.

This package handles only data, never learner code. It must not import JAX.
"""
