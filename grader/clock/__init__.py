"""The clock: a program's operations laid out in time on a named chip, slice and mesh.

In: ``Operations`` of a program, and where it runs. Out: a ``Timeline``. Deterministic: whole picoseconds, and nothing
depends on names, hash seeds or the machine that computes it. ``docs/clock.md`` has every assumption and what it is
wrong about.
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
