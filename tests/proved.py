"""The problems of an exercise, found without the process that computes its values again."""

from __future__ import annotations

from grader.authoring import verify
from grader.authoring.redrawn import Redrawn
from grader.batch.grade import Grader


def problems_of(grader: Grader, name: str = "x1_gather", seeds: int = 1) -> list[str]:
    """Return the problems that ``verify`` reports, but for values that differ between processes.

    Only tests of ``redrawn`` need these values. To start a process for each test takes longer than all else.
    """
    no_process = Redrawn(grader.course, [])
    return list(verify.exercise_problems(grader.course, grader, name, seeds, no_process))
