"""Trace a submission's source (a file or notebook): send all requests to it, and read all replies.

LEARNER PYTHON RUNS IN A CONFINED CHILD, never in this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.batch.findings import Replies, Reply
from grader.batch.remembering import TRACES
from grader.batch.workers import GIVEN_UP, Workers
from grader.common.observation import Fault
from grader.course.config import Limits
from grader.exercise import Call
from grader.intake.submission import Source
from grader.judging.plan import Ask

NOTHING = Reply(Fault("missing", "nothing was handed in for this exercise"))


@dataclass
class Cost:
    """Time that all files of one submission have used together.

    Attributes:
        limits: the submission's limits.
        tracing: CPU seconds and idle seconds of the learner's processes.
        running: CPU seconds of the programs. A program that does not finish in time counts as ``limits.run_seconds``.
        hung: how many exercises have reached a time limit in a learner's process.
    """

    limits: Limits
    tracing: float = 0.0
    running: float = 0.0
    hung: int = 0

    @property
    def tracing_left(self) -> float:
        """Seconds that are left for running the learner's code; negative if the submission exceeded the limit."""
        return self.limits.total_seconds - self.tracing

    @property
    def no_more_runs(self) -> Fault | None:
        """The fault for all further programs if the limit on run time is exceeded; None while time is left."""
        if self.running <= self.limits.total_run_seconds:
            return None
        return Fault("timeout", f"all programs together did not finish within {self.limits.total_run_seconds:g} s")


@dataclass(frozen=True)
class Trace:
    """The result of tracing a source (one file or notebook of a submission).

    Attributes:
        replies: the reply to each request. The reply to a call with hidden inputs is the program that was traced for
            public inputs.
        notes: errors that occurred while the source was loaded.
        files: the names by which programs refer to the source's files or notebook cells.
    """

    replies: Mapping[Ask, Reply]
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def trace(workers: Workers, source: Source | None, asks: Sequence[Ask], cost: Cost) -> Trace:
    """Return a source's replies to all requests, from child processes that run the source or from the cache.

    Args:
        source: a file or notebook; None if nothing was handed in.
        cost: the submission's cost so far. This function adds the seconds of tracing.
    """
    if source is None:
        return Trace(dict.fromkeys(asks, NOTHING))
    asked = traced_of(asks)
    if cost.tracing_left < 0:
        found = Replies((GIVEN_UP,) * len(asked))
    else:
        store, key = workers.store, workers.store.keys.trace(source, asked)
        found = store.find(TRACES, key, source) or store.keep(
            TRACES, key, workers.replies(source, asked, cost.tracing_left, cost.hung), source
        )
    cost.tracing += found.cpu
    cost.hung = max(cost.hung, found.hung)
    replies = dict(zip(asked, found.each, strict=True))
    programs = {(ask.exercise, ask.program): reply for ask, reply in replies.items() if isinstance(ask.of, Call)}
    every = {ask: replies[ask] if ask in replies else programs[ask.exercise, ask.program] for ask in asks}
    return Trace(every, found.notes, found.files)


def traced_of(asks: Sequence[Ask]) -> list[Ask]:
    """Return the requests that go to the learner's process. Requests with hidden inputs come last.

    A call with hidden inputs is left out: the learner's program is traced for public inputs, and the grader then runs
    this program on the hidden inputs.
    """
    return sorted(
        (a for a in asks if not (a.hidden_inputs and isinstance(a.of, Call))), key=lambda ask: ask.hidden_inputs
    )
