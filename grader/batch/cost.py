"""The time that a submission has used, and its limits."""

from __future__ import annotations

from dataclasses import dataclass

from grader.common.observation import Fault
from grader.sandbox.limits import Limits


@dataclass
class Cost:
    """Time that all files of one submission have used together.

    A result from the cache costs as much as it cost when it was made. Otherwise one of two equal submissions could
    exceed a limit, and the other could not.

    Attributes:
        limits: the submission's limits.
        tracing: CPU seconds and idle seconds of the learner's processes.
        running: CPU seconds of the programs. A program that does not finish in time counts as ``limits.run_seconds``.
        hung: whether the keeper has ended a child of this submission for a time limit.
    """

    limits: Limits
    tracing: float = 0.0
    running: float = 0.0
    hung: bool = False

    @property
    def tracing_left(self) -> float:
        """Seconds that are left for running the learner's code; negative if the submission exceeded the limit."""
        return self.limits.total_seconds - self.tracing

    def fits(self, seconds: float) -> bool:
        """Return whether programs that cost this much, taken from the cache, would all begin within the limit."""
        return self.running + seconds <= self.limits.total_run_seconds

    @property
    def no_more_runs(self) -> Fault | None:
        """The fault for all further programs if the limit on run time is exceeded; None while time is left."""
        if self.running <= self.limits.total_run_seconds:
            return None
        return Fault("timeout", f"all programs together did not finish within {self.limits.total_run_seconds:g} s")
