"""Parts of timelines that all renderers share: bars, ticks, words, and a scale that leaves out repeated rounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from grader.clock.timeline import COMPUTE, LiveMemory, Loop, Span, Timeline
from grader.expect.costs import show_bytes
from grader.reports.untrusted import clean

US = 1_000_000  # Picoseconds in a microsecond.
# The letter of each kind of bar. Legends list the kinds in this order.
LETTERS = {
    "matmul": "D", "kernel": "k", "permute": "P", "all_gather": "G", "reduce_scatter": "S", "all_reduce": "R",
    "all_to_all": "T", "ragged_all_to_all": "V", "broadcast": "B",
}  # fmt: skip
WORDS = {"matmul": "matmul", "kernel": "other kernel"}


@dataclass(frozen=True)
class Cut:
    """Rounds of a loop that drawings omit, because each of them equals the second round.

    ``start``, ``end``: bounds of the omitted time, in picoseconds. Rounds 1, 2 and the last round are not omitted.
    """

    start: int
    end: int
    loop: Loop


@dataclass(frozen=True)
class Bar:
    """An operation's time on the core or on a link, drawn from ``start`` to ``end`` in the units of the scale."""

    span: Span
    start: float
    end: float
    critical: bool


@dataclass(frozen=True)
class Scale:
    """A map from picoseconds to places from 0 to ``width``.

    ``gap``: the width of each cut (omitted rounds of a loop).
    """

    step: int
    cuts: tuple[Cut, ...]
    width: float
    gap: float

    @property
    def drawn(self) -> int:
        """The picoseconds outside cuts."""
        return self.step - sum(c.end - c.start for c in self.cuts)

    @property
    def unit(self) -> float:
        """The width of a picosecond."""
        return max(self.width - self.gap * len(self.cuts), 1.0) / max(self.drawn, 1)

    def at(self, time: int) -> float:
        """Return the place (0 to ``width``) of a time. Times inside a cut get places inside the cut's gap."""
        place = 0.0
        before = 0
        for cut in self.cuts:
            if time <= cut.start:
                break
            place += (cut.start - before) * self.unit
            if time < cut.end:
                return place + self.gap * (time - cut.start) / (cut.end - cut.start)
            place, before = place + self.gap, cut.end
        return place + (time - before) * self.unit

    def ticks(self, room: float) -> list[tuple[float, int]]:
        """Return (place, time) of each tick.

        Times are round numbers. Places are at least ``room`` apart, and are not inside cuts.
        """
        stride = _round_number(room / self.unit)
        found: list[tuple[float, int]] = []
        begins = [0, *(c.end for c in self.cuts)]
        for begin, end in zip(begins, [*(c.start for c in self.cuts), self.step], strict=True):
            for time in range(-(-begin // stride) * stride, end + 1, stride):
                if not found or self.at(time) - found[-1][0] >= room:
                    found.append((self.at(time), time))
        return found


def _round_number(least: float) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... that is at least ``least``."""
    power = 10 ** max(0, math.floor(math.log10(max(least, 1))))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= least)


def cuts(timeline: Timeline) -> tuple[Cut, ...]:
    """Return the cuts (omitted rounds of loops), sorted by time, without cuts that begin inside an earlier cut."""
    long = (loop for loop in timeline.loops if loop.rounds > 3 and loop.each > 0)
    found = [Cut(loop.start + 2 * loop.each, loop.end - loop.each, loop) for loop in long]
    outer: list[Cut] = []
    for cut in sorted(found, key=lambda c: (c.start, -c.end)):
        if not outer or cut.start >= outer[-1].end:
            outer.append(cut)
    return tuple(outer)


def scaled(timeline: Timeline, width: float, gap: float) -> Scale:
    return Scale(timeline.step, cuts(timeline), width, gap)


def alike(timelines: Sequence[Timeline], width: float, gap: float) -> list[Scale]:
    """Return a scale for each timeline. A microsecond has equal width on all scales; the widest fills ``width``."""
    scales = [scaled(t, width, gap) for t in timelines]
    unit = min(scale.unit for scale in scales)
    return [replace(scale, width=scale.drawn * unit + gap * len(scale.cuts)) for scale in scales]


def bars(timeline: Timeline, lane: str, scale: Scale) -> list[Bar]:
    """Return the bars of one lane, sorted by time."""
    spans = sorted((s for s in timeline.spans if s.lane == lane), key=lambda s: (s.start, s.end, s.number))
    return [Bar(s, scale.at(s.start), scale.at(s.end), timeline.on_path(s)) for s in spans]


def kinds(timelines: Iterable[Timeline]) -> list[str]:
    """Return the kinds of operations in the timelines, in the order in which legends list kinds."""
    found = {span.kind for timeline in timelines for span in timeline.spans}
    return [k for k in LETTERS if k in found] + sorted(found - set(LETTERS))


# -- words -------------------------------------------------------------------------------------


def letter(kind: str) -> str:
    return LETTERS.get(kind, "?")


def word(kind: str) -> str:
    """Return the name that legends show for a kind of operation."""
    return WORDS.get(kind, kind)


def bar_word(kind: str) -> str:
    """Return a short name of a kind of operation, for a bar: the last word of its name."""
    return word(kind).rpartition(" ")[2]


def lane_name(lane: str) -> str:
    """Return a lane's name. ``x+`` is the link to the next device along x."""
    return lane if lane == COMPUTE else f"link {clean(lane, 40)}"


def show_us(time: int) -> str:
    """Return picoseconds as ``298.97 us``."""
    return f"{time / US:,.3f}".rstrip("0").rstrip(".") + " us"


def short_us(time: int) -> str:
    """Return picoseconds as a number of microseconds without the unit, for a tick."""
    return show_us(time).removesuffix(" us")


def place(file: str | None, line: int | None) -> str:
    """Return a text such as ``e4.py:61``; ``line 61`` for a notebook cell without a name; '' for an unknown line."""
    if line is None:
        return ""
    name = clean(file or "", 200)
    if not name or "ipykernel" in name or "<" in name:
        return f"line {line}"
    return f"{name}, line {line}" if name.startswith("cell") else f"{name.rpartition('/')[2]}:{line}"


def describe_span(span: Span) -> str:
    """Return all facts about a span (an operation's time on the core or a link) as one line of text."""
    parts = [f"{clean(span.what, 80)}: {short_us(span.start)} to {show_us(span.end)}"]
    parts += [show_bytes(span.bytes)] if span.bytes else []
    parts += [f"{span.flops:,} FLOPs"] if span.flops else []
    parts += [f"round {at} of {of}" for at, of in span.rounds]
    return ", ".join([*parts, *([where] if (where := place(span.file, span.line)) else [])])


def where_text(timeline: Timeline) -> str:
    """Return a text such as ``v5e 2x4, x on slice axes 0 and 1, profile ideal``.

    The profile is the timeline's set of rules about which collectives can overlap.
    """
    shape = "x".join(map(str, timeline.shape))
    laid = "".join(
        f", {clean(axis, 40)} on slice {'axis' if len(on) == 1 else 'axes'} {' and '.join(map(str, on))}"
        for axis, on in timeline.axes.items()
    )
    return f"{timeline.chip} {shape}{laid}, profile {clean(timeline.profile, 40)}"


def totals(timeline: Timeline) -> list[str]:
    """Return lines with a timeline's totals: time of the step, busy, overlapped and exposed times, and peak memory."""
    busy = f"core busy {show_us(timeline.busy)}, idle {show_us(timeline.idle)}"
    lines = [f"step {show_us(timeline.step)}: {busy}"]
    for kind, share in timeline.shares().items():
        parts = f"{show_us(share.overlapped)} overlapped with kernels, {show_us(share.exposed)} exposed"
        lines.append(f"{kind}: {parts} ({share.part:.0%} overlapped)")
    lines += list(dict.fromkeys(map(cut_text, cuts(timeline))))
    m = timeline.memory
    peak = f"peak memory in the order drawn, by liveness analysis: {show_bytes(m.peak)} ({held_text(m)})"
    return [*lines, peak + (f", {m.at}" if m.at else "")]


def held_text(live: LiveMemory) -> str:
    """Return the bytes at the peak by kind, such as ``1 MiB arguments, 0 B results, 2 MiB temporaries``."""
    parts = {"arguments": live.arguments, "results": live.results, "temporaries": live.temporaries}
    return ", ".join(f"{show_bytes(size)} {name}" for name, size in parts.items())


def cut_text(cut: Cut) -> str:
    loop, last = cut.loop, cut.loop.rounds - 1
    where = f" (line {loop.line})" if loop.line else ""
    left_out = "round 3 is left out, because it equals"
    if last > 3:
        left_out = f"rounds 3 to {last} are left out, because they equal"
    return f"loop of {loop.rounds} rounds{where}: {left_out} the second round; {show_us(loop.each)} each"


def merged(found: Sequence[Bar], least: float) -> list[Bar]:
    """Return the bars after merging neighbours of one kind that are narrower than ``least``."""
    drawn: list[Bar] = []
    for bar in found:
        last = drawn[-1] if drawn else None
        if (
            last is not None
            and last.span.kind == bar.span.kind
            and bar.end - bar.start < least
            and bar.start - last.end < least
            and (last.end - last.start < least or last.span.what.startswith("several "))
        ):
            both = Span(
                bar.span.lane, f"several {word(bar.span.kind)}s", bar.span.kind, last.span.start, bar.span.end, -1
            )
            drawn[-1] = Bar(both, last.start, bar.end, last.critical or bar.critical)
        else:
            drawn.append(bar)
    return drawn
