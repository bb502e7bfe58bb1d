"""Grade a class with the workers of a Dask cluster. The reports equal the reports of a single machine.

The workers get a course and submissions, and return reports (module ``parcel``). Only the grading process, which runs
the command, writes reports to disk.

A worker runs learner code in the sandbox that ``--isolation`` names. The worker grades the course's solutions first, to
prove that it can grade, and then one submission per thread at a time. The module ``there`` has this code. The module
``dispatch`` prepares workers and gives submissions to Dask, which chooses a worker for each submission. Only the module
``link`` imports Dask.
"""

from __future__ import annotations

from grader.wing import Wing

WING = Wing(options={"--cluster": "options.CLUSTER"})
