"""Modules that all trusted parts of the grader share: observations, results, layouts of shards, files, syntax.

Learner code never sees these modules, because they compute layouts, and half of the exercises ask for a layout. Of the
grader's packages, this package imports only ``wire``.
"""
