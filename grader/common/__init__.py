"""What rooms on our side of the walls share: observations, results, layouts of shards, files, syntax.

Learner code never sees it: a layout is what half of the exercises ask for. Imports ``wire``.
"""
