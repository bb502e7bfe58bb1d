"""Limits on a submission that a course may set. Limits that a course cannot set are in ``wire/limits.py``.

Only the grader's process imports this module. A process that runs learner code cannot import pydantic, so it receives
the limits as numbers.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from grader.wire.limits import STUCK_SECONDS


class Limits(BaseModel, frozen=True, extra="forbid"):
    """Limits on a submission. Sizes are in MiB. Times are in seconds of CPU time unless stated otherwise.

    In ``trace_seconds`` and ``total_seconds``, the time for which the submission's process is idle counts, too.

    Attributes:
        trace_seconds: limit for loading the code, and the same limit again for each request to the code.
        total_seconds: limit for all files of one submission together.
        run_seconds: limit for one program.
        total_run_seconds: limit for all programs of one submission.
        stuck_seconds: wall time after which XLA ends a program whose devices wait for each other. Values above 40,
            XLA's own limit, have no effect.
        memory_mib: address space of each worker process and of each child of a worker, whether the process runs the
            grader's code or a submission's. A worker that uses device drivers has no such limit.
        file_mib: size of one file that a submission writes.
    """

    trace_seconds: float = Field(default=20.0, gt=0)
    total_seconds: float = Field(default=300.0, gt=0)
    run_seconds: float = Field(default=60.0, gt=0)
    total_run_seconds: float = Field(default=180.0, gt=0)
    stuck_seconds: float = Field(default=STUCK_SECONDS, gt=0)
    memory_mib: int = Field(default=6144, ge=1024)
    file_mib: int = Field(default=16, ge=1)
