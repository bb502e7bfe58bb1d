"""nbgrader: its own commands and pages work unchanged, and no learner code enters a kernel.

folder     writes the course folder (``shardlings nbgrader init``)
check      ``check`` in a released notebook
repair     a submitted notebook, however damaged -> cells for the gradebook, code for the grader
cells      a report -> outputs of grade cells, comments of solution cells
autograder settings, workers, and the reports kept
plugin     what nbgrader_config.py plugs in: the classes that nbgrader calls
gradebook  rows of the gradebook
batch      a class graded in parallel (``shardlings grade --nbgrader``)
handed_in  what students handed in, where nbgrader copies it
scan       what nbgrader's folders tell that they should not (``shardlings nbgrader scan``)

Only ``plugin``, ``gradebook`` and ``batch`` import nbgrader at once, ``handed_in``, ``folder`` and ``exchange`` when asked,
and only this package does.
"""

from grader.common.schemas import without_uris

without_uris()
