"""The problems of an exercise, found without the process that computes its values again."""

from __future__ import annotations

from grader.authoring import verify
from grader.authoring.redrawn import Redrawn
from grader.batch.grade import Grader


def problems_of(grader: Grader, name: str = "x1_gather", seeds: int = 1) -> list[str]:
    """Return the problems that ``verify`` reports, except values that differ between processes.

    Only tests of ``redrawn`` need these values. Starting the process takes half of such a test's CPU time.
    """
    no_process = Redrawn(grader.course, [])
    return list(verify.exercise_problems(grader, name, seeds, no_process))
