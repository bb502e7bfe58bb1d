"""Starts, confines and ends the processes: tiers, filters, limits, the scratch folder, what may be read.

In: a role and its limits. Out: frames of untrusted answers. Knows no exercise; imports ``wire``.
"""
