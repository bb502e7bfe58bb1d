"""Trace: a source and what is asked of it in, replies out. LEARNER PYTHON RUNS IN A CONFINED CHILD, never here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from grader.batch.findings import Replies, Reply, ended_fault, load_notes, reply_of
from grader.batch.remembering import TRACES, Store
from grader.common.observation import Fault
from grader.course.config import Limits
from grader.exercise import Call
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.sandbox.allowance import backstop
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.limits import MAX_RESTARTS

GIVEN_UP = Reply(Fault("crashed", "not asked: other work of this submission ended the process or used up its time"))
NOTHING = Reply(Fault("missing", "nothing was handed in for this exercise"))


@dataclass
class Cost:
    """CPU seconds of one submission, all its files together.

    Attributes:
        limits: what it may cost.
        tracing: CPU seconds of the learner's processes.
        running: CPU seconds of the programs.
    """

    limits: Limits
    tracing: float = 0.0
    running: float = 0.0

    @property
    def tracing_left(self) -> float:
        """CPU seconds that are left for tracing; negative when the limit was passed."""
        return self.limits.total_seconds - self.tracing

    @property
    def no_more_runs(self) -> Fault | None:
        """Return the fault of a program that is not run because the limit was passed."""
        if self.running <= self.limits.total_run_seconds:
            return None
        return Fault("timeout", f"all programs together did not finish within {self.limits.total_run_seconds:g} s")


class Tracer(Protocol):
    """What asks a source."""

    store: Store

    def replies(self, source: Source, asks: Sequence[Ask], seconds: float) -> Replies: ...


@dataclass(frozen=True)
class Trace:
    """What a source was traced to.

    Attributes:
        replies: one for each ask. A secret ask of a call has the program of the open one.
        notes: what stopped the source while it was loaded.
        files: names of the files whose lines programs mention.
    """

    replies: Mapping[Ask, Reply]
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def trace(tracer: Tracer, source: Source | None, asks: Sequence[Ask], cost: Cost) -> Trace:
    """Ask everything of one source, or remember what it answered.

    Args:
        source: None if nothing was handed in.
        cost: of the submission; the CPU seconds are added to it.
    """
    if source is None:
        return Trace(dict.fromkeys(asks, NOTHING))
    asked = traced_of(asks)
    if cost.tracing_left < 0:
        found = Replies((GIVEN_UP,) * len(asked))
    else:
        key = tracer.store.keys.trace(source, asked)
        make = partial(tracer.replies, source, asked, cost.tracing_left)
        found = tracer.store.get(TRACES, key, make, source)
    cost.tracing += found.cpu
    replies = dict(zip(asked, found.each, strict=True))
    programs = {(ask.exercise, ask.program): reply for ask, reply in replies.items() if isinstance(ask.of, Call)}
    every = {ask: replies[ask] if ask in replies else programs[ask.exercise, ask.program] for ask in asks}
    return Trace(every, found.notes, found.files)


def traced_of(asks: Sequence[Ask]) -> list[Ask]:
    """Return the asks that go to the learner's process, secret ones last.

    Secret asks of calls do not go there: they run the program of the open ask on other inputs.
    """
    return sorted((a for a in asks if not (a.secret and isinstance(a.of, Call))), key=lambda ask: ask.secret)


# -- children ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What one ask sends to a child."""

    ask: Ask
    wire: dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """How a child ended, and whether it had loaded the source."""

    loaded: bool
    how: str


def requests_of(source: Source, asks: Sequence[Ask]) -> list[Request]:
    """Return what is sent to a child, in order."""
    files, ends = [c.name for c in source.chunks], dict(source.ends)
    return [Request(ask, ask.for_tracer(files) | {"after": ends.get(ask.exercise)}) for ask in asks]


class Children:
    """The children that answer for one source, one after another.

    Args:
        tracer: the worker that starts them.
        seconds: CPU time that is left for all of them.
    """

    def __init__(self, tracer: Worker, limits: Limits, source: Source, seconds: float) -> None:
        self._tracer, self._limits, self._source, self._seconds = tracer, limits, source, seconds
        self._replies: dict[int, Reply] = {}
        self._notes: list[str] = []
        self._cpu = 0.0

    def answer(self, requests: Sequence[Request]) -> Replies:
        """Return a reply for each request; secret ones, which come last, are sent when all others are answered.

        A request that ends its child is tried once more, alone. A source that ends two children while it is loaded
        is not tried again.
        """
        suspect, failed_loads = -1, 0
        over = time.monotonic() + backstop(self._limits.total_seconds)
        for _ in range(MAX_RESTARTS):
            left = [i for i in range(len(requests)) if i not in self._replies]
            if not left or self._cpu > self._seconds or time.monotonic() > over:
                break
            chosen = [suspect] if suspect in left else left
            ended = self._one_child(requests, chosen)
            left = [i for i in chosen if i not in self._replies]
            if not left:
                continue
            if not ended.loaded:
                failed_loads += 1
                if failed_loads == 2:
                    fault = ended_fault(ended.how, "your file, while it was loaded,", self._limits.trace_seconds)
                    self._replies |= dict.fromkeys(left, Reply(fault))
            elif left[0] == suspect:
                self._replies[suspect] = Reply(ended_fault(ended.how, "it", self._limits.trace_seconds))
            else:
                suspect = left[0]
        each = tuple(self._replies.get(i, GIVEN_UP) for i in range(len(requests)))
        files = tuple(c.name for c in self._source.chunks)
        return Replies(each, tuple(self._notes), self._cpu, files, self._source)

    def _one_child(self, requests: Sequence[Request], chosen: Sequence[int]) -> Ended:
        """Put the chosen requests to one child, and keep its replies."""
        source = {"name": self._source.name, "chunks": [[c.name, c.text] for c in self._source.chunks]}
        shown, secret = ([requests[i].wire for i in chosen if requests[i].ask.secret == late] for late in (False, True))
        started, loaded, left = False, False, list(chosen)
        try:
            for frame, blobs in self._tracer.trace(source, shown, secret):
                if frame.get("from") == "worker":
                    self._cpu += float(frame.get("cpu", 0))
                    return Ended(loaded, str(frame.get("end", "garbage")) if started else "worker")
                body = frame.get("body", {})
                if body.get("started"):
                    started = True
                elif body.get("loaded") and not loaded:  # a later one may tell of secret cases
                    loaded = True
                    self._notes = self._notes or load_notes(body.get("faults"))
                elif left and body.get("number") == len(chosen) - len(left):  # each request once, in order
                    i = left.pop(0)
                    self._replies[i] = reply_of(requests[i].ask, body, blobs)
        except WorkerDied:
            return Ended(loaded, "worker")
        return Ended(loaded, "garbage")
