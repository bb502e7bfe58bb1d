"""Start, confine and end the sandboxed processes (workers) that handle submissions.

A worker has one of the roles trace, run and parse (see ``main``). The grader sends requests to a worker, and receives
frames, the messages of ``wire.frames``. Learner code runs in a child process of a worker, so the grader does not trust
the child's frames. A *tier* is a kind of sandbox, see ``tiers``. Of the other packages in ``grader``, this package
imports only ``wire``.
"""
