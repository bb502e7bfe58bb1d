"""Limits on a submission that a course may set. ``wire/limits.py`` has the fixed limits.

Only the grader's process imports this module, because processes that run learner code cannot import pydantic.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from grader.wire.limits import STUCK_SECONDS


class Limits(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Limits on a submission. Sizes are in MiB. Times are in seconds of CPU time unless stated otherwise.

    ``trace_seconds`` and ``total_seconds`` also count the idle time of the submission's process.

    Attributes:
        trace_seconds: limit for loading a file or one cell of a notebook, and for each request to the code.
        total_seconds: limit for all files of one submission together.
        run_seconds: limit for one program.
        total_run_seconds: limit for all programs of one submission.
        stuck_seconds: wall time after which XLA ends a program whose devices wait for each other. Values above 40,
            XLA's own limit, have no effect.
        memory_mib: address space of each worker process and of each child of a worker. A worker that uses device
            drivers has no such limit.
        file_mib: size of one file that a submission writes.
    """

    trace_seconds: float = Field(default=20.0, gt=0)
    total_seconds: float = Field(default=300.0, gt=0)
    run_seconds: float = Field(default=60.0, gt=0)
    total_run_seconds: float = Field(default=180.0, gt=0)
    stuck_seconds: float = Field(default=STUCK_SECONDS, gt=0)
    memory_mib: int = Field(default=6144, ge=1024)
    file_mib: int = Field(default=16, ge=1)
