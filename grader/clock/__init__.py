"""The clock: lays a program's operations out in time on a named chip, slice and mesh.

Takes a program's ``Operations`` and where it runs, returns a ``Timeline``. Deterministic: whole picoseconds,
independent of names, hash seeds and the machine that computes it. ``docs/clock.md`` lists every assumption and its
errors.
"""

from grader.clock.clock import timeline
from grader.clock.collectives import ASYNCHRONOUS, Untimed
from grader.clock.compiled import replayed
from grader.clock.memory import live_memory
from grader.clock.placement import Placement, Slice, placed
from grader.clock.timeline import COMPUTE, CollectiveTime, LiveMemory, Loop, Share, Span, Timeline

__all__ = [
    "ASYNCHRONOUS",
    "COMPUTE",
    "CollectiveTime",
    "LiveMemory",
    "Loop",
    "Placement",
    "Share",
    "Slice",
    "Span",
    "Timeline",
    "Untimed",
    "live_memory",
    "placed",
    "replayed",
    "timeline",
]
