"""LEARNER PYTHON RUNS HERE: the tracing process. In: one source, then asks. Out: programs, plain values, faults.

All that a confined child could read of ours is this folder, ``wire`` and ``sandbox``: it holds no check, no answer and
no hidden input, and imports ``wire`` alone.
"""
