"""Verdicts. In: an exercise and what was observed. Out: results with a reason each.

Sees no learner code, only data; JAX may not be imported.
"""
