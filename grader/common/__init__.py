"""Modules that all trusted parts of the grader share: observations, results, layouts of shards, files, syntax.

Learner code never sees these modules: half of the exercises ask for a layout, and these modules compute layouts. Of
the grader's packages, this package imports only ``wire``.
"""
