"""Modules that all trusted parts of the grader share: observations, results, layouts of shards, files, syntax.

Learner code never sees these modules, which compute layouts: half of the exercises ask for a layout. This package
imports ``wire``.
"""
