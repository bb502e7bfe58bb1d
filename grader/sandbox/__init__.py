"""Start, confine and end the sandboxed processes (workers) that handle submissions.

A worker has a role, trace, run or read (see ``main``), and limits. The grader sends requests to a worker, and receives
frames, the messages of ``wire.frames``. Frames from a worker's child are not trusted, because learner code runs in the
child. A *tier* is a kind of sandbox, see ``tiers``. Of the other packages in ``grader``, this package imports only
``wire``.
"""
