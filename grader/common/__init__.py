"""Modules that all trusted parts of the grader share: observations, results, layouts of shards, files, syntax.

These modules compute layouts of shards, and many exercises ask the learner for a layout. So the process that runs
learner code does not load these modules. Of the grader's packages, this package imports only ``wire``.
"""
