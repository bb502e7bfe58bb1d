"""Integration with nbgrader. nbgrader's commands and pages work unchanged, and no learner code enters a kernel.

folder     writes the course folder (``shardlings nbgrader init``)
check      has the function ``check`` of released notebooks
repair     makes cells for the gradebook and code for the grader, also from a damaged notebook
cells      converts a report to outputs of grade cells and comments of solution cells
autograder has the settings, the workers and the stored reports
plugin     has the classes that nbgrader_config.py plugs in and nbgrader calls
gradebook  reads and writes rows of the gradebook
batch      grades a class in parallel (``shardlings nbgrader grade``)
handed_in  copies submissions as nbgrader does, but follows no links
scan       finds leaks in nbgrader's folders (``shardlings nbgrader scan``)

``plugin``, ``gradebook`` and ``batch`` need an installed nbgrader. ``handed_in``, ``folder`` and ``exchange`` import
nbgrader only in functions. No other module imports nbgrader.
"""

from grader.common.schemas import without_uris

without_uris()
