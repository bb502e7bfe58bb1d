"""Integration with nbgrader. nbgrader's commands and pages work unchanged, and no learner code enters a kernel.

folder     writes the course folder (``shardlings nbgrader init``)
check      ``check`` in a released notebook
repair     a submitted notebook, however damaged -> cells for the gradebook, code for the grader
cells      a report -> outputs of grade cells, comments of solution cells
autograder settings, workers, and stored reports
plugin     the classes that nbgrader_config.py plugs in and nbgrader calls
gradebook  rows of the gradebook
batch      a class graded in parallel (``shardlings nbgrader grade``)
handed_in  copies of submissions by nbgrader, without following links
scan       leaks in nbgrader's folders (``shardlings nbgrader scan``)

``plugin``, ``gradebook`` and ``batch`` import nbgrader when they are imported; ``handed_in``, ``folder`` and
``exchange`` import nbgrader when needed. No other module imports nbgrader.
"""

from grader.common.schemas import without_uris

without_uris()
