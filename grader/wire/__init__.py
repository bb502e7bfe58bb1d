"""Data that processes send to each other: frames, plain values, arrays, error texts, limits.

The grader's processes and the process that runs learner code use this folder. It contains no secrets, and imports no
other folder of ``grader``.
"""
