"""LEARNER PYTHON RUNS HERE: the tracing process loads one source, and answers requests with programs, values or faults.

An *ask* is one request: to trace a task on one mesh, to call a plain function, or to return an answer. Of the grader's
code, a confined child can read only this folder, ``wire`` and ``sandbox``. This folder holds no check, no answer and no
hidden input, and imports only ``wire``.
"""
