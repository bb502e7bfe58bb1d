"""The *clock*, the course's model of time on a chip. It computes when each operation of a program runs on a slice.

The function ``timeline`` takes a program's ``Operations`` and a slice of chips, and returns a ``Timeline``. All times
are whole numbers of picoseconds. The result does not depend on names, hash seeds or the machine. ``docs/clock.md``
lists every assumption of the clock and the resulting errors.
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
