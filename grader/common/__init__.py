"""Modules that all trusted parts of the grader share: observations, results, layouts of shards, files, syntax.

The process that runs learner code does not load these modules, because they compute layouts of shards, and half of the
exercises ask the learner to compute a layout. This package imports no package of the grader except ``wire``.
"""
