"""Predicted and measured: a few programs of ours, timed on the devices that are there. Nothing of this is graded.

In: a prediction, made before. Out: what calls took, and the line that fits them. Programs run in a process of their own.
"""
