"""Sandboxed processes for learner code: starting, confining and ending them.

A worker is such a process. Its role is trace, run or read, see ``main``. The grader starts a worker with a role and
with limits, sends requests, and receives frames, the messages of ``wire.frames``. Frames from a worker's child are not
trusted, because learner code runs in the child. A *tier* is a kind of sandbox, see ``tiers``. Of the other packages in
``grader``, this package imports only ``wire``.
"""
