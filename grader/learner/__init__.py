"""LEARNER PYTHON RUNS HERE: the tracing process. In: one source, then asks. Out: programs, plain values, faults.

From this package, a confined child can read only this folder, ``wire`` and ``sandbox``. This folder holds no check, no
answer and no hidden input, and imports only ``wire``.
"""
